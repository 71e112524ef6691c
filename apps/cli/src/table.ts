import { stripVTControlCharacters } from "node:util";

/**
 * Lines of columns that are as wide as their widest cell, two spaces apart. Cells may be painted.
 * Columns named in `right` are flush right, as figures are.
 */
export function table(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  right: readonly string[] = [],
): readonly string[] {
  const all = [header, ...rows];
  const widths = header.map((_, column) =>
    Math.max(...all.map((row) => widthOf(row[column] ?? ""))),
  );
  return all.map((row) =>
    header
      .map((name, column) => {
        const cell = row[column] ?? "";
        const gap = " ".repeat((widths[column] ?? 0) - widthOf(cell));
        return right.includes(name) ? gap + cell : cell + gap;
      })
      .join("  ")
      .trimEnd(),
  );
}

function widthOf(text: string): number {
  return stripVTControlCharacters(text).length;
}
