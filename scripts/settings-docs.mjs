// Writes docs/settings.md and .env.example from the table of settings. Run it after a change of the
// table (npm run build, then node scripts/settings-docs.mjs); a test says when that was forgotten.
import { writeFile } from "node:fs/promises";
import { fileURLToPath, pathToFileURL } from "node:url";

/** @param {Readonly<Record<string, import("@millrace/runtime").Setting>>} settings */
export function settingsDocuments(settings) {
  const entries = Object.entries(settings);
  return { "docs/settings.md": table(entries), ".env.example": example(entries) };
}

function table(entries) {
  const rows = entries.map(([name, { form, about, programs, isRequired, ...rest }]) => [
    `\`${name}\``,
    `${form}${isRequired ? "; required" : ""}`,
    rest.default === undefined ? "" : rest.default === "" ? "none" : `\`${rest.default}\``,
    programs.join(", "),
    about,
  ]);
  return `# Settings

Settings are environment variables. Each program checks all of its own when it starts and names
everything that is wrong with them at once; it then exits with code 2. A variable that is empty counts
as absent.

<!-- Written by scripts/settings-docs.mjs from packages/runtime/src/settings.ts. -->

${markdownTable(["Variable", "Value", "Default", "Read by", "What it does"], rows)}
`;
}

/** Padded as the formatter would. */
function markdownTable(head, rows) {
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => row[column].length)),
  );
  const line = (cells) =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column])).join(" | ")} |`;
  return [head, widths.map((width) => "-".repeat(width)), ...rows].map(line).join("\n");
}

function example(entries) {
  const blocks = entries.map(([name, { form, about, programs, example: given, ...rest }]) => {
    const value = given ?? rest.default ?? "";
    return `${comment(`${about} (${form}; ${programs.join(", ")})`)}\n# ${name}=${value}`;
  });
  return `# What each program reads; see docs/settings.md. Written by scripts/settings-docs.mjs.\n\n${blocks.join("\n\n")}\n`;
}

/** Lines of at most 100 characters. */
function comment(text) {
  const lines = [""];
  for (const word of text.replaceAll("`", "").split(" ")) {
    if (`${lines.at(-1)} ${word}`.length > 97) lines.push(word);
    else lines[lines.length - 1] = `${lines.at(-1)} ${word}`.trim();
  }
  return lines.map((line) => `# ${line}`).join("\n");
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const { SETTINGS } = await import("../packages/runtime/dist/settings.js");
  for (const [path, content] of Object.entries(settingsDocuments(SETTINGS))) {
    await writeFile(fileURLToPath(new URL(`../${path}`, import.meta.url)), content);
  }
}
