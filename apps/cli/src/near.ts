/** Up to three known names that may have been meant, nearest first. */
function nearNames(name: string, known: readonly string[]): readonly string[] {
  if (name.length > 40) return [];
  const wanted = name.toLowerCase();
  return known
    .map((each) => ({ each, far: farness(wanted, each.toLowerCase()) }))
    .filter(({ each, far }) => far <= (each.length < 4 ? 1 : Math.max(2, each.length / 3)))
    .toSorted((a, b) => a.far - b.far)
    .slice(0, 3)
    .map(({ each }) => each);
}

/** A sentence's end, as `; did you mean start?`, or nothing. */
export function didYouMean(name: string, known: readonly string[]): string {
  const near = nearNames(name, known);
  return near.length > 0 ? `; did you mean ${near.join(" or ")}?` : "";
}

/** A beginning of a name is near it; otherwise Levenshtein's distance counts. */
function farness(wanted: string, known: string): number {
  if (wanted.length >= 2 && known.startsWith(wanted)) return 0;
  let previous = Array.from({ length: known.length + 1 }, (_, index) => index);
  for (let row = 1; row <= wanted.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= known.length; column += 1) {
      const isSame = wanted[row - 1] === known[column - 1];
      const replaced = (previous[column - 1] ?? 0) + (isSame ? 0 : 1);
      const edited = Math.min((previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1);
      current.push(Math.min(replaced, edited));
    }
    previous = current;
  }
  return previous[known.length] ?? 0;
}
