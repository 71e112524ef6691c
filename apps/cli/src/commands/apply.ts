import { readFile } from "node:fs/promises";
import { MillraceApiError, type MillraceClient } from "@millrace/client";
import type { Problem, WorkflowDefinition } from "@millrace/contract";
import { type Command, type Context, defineCommand } from "../command.ts";
import { readDocuments, type SourceDocument, type SourceProblem } from "../documents.ts";
import { messageOf, UsageError } from "../errors.ts";
import { EXIT } from "../exit-codes.ts";
import { type Output, printable } from "../output.ts";

interface Applied {
  readonly place: string;
  readonly id: string;
  readonly version: number;
  readonly contentHash: string;
  /** False when the latest version has this content already. */
  readonly created: boolean;
  readonly warnings: readonly SourceProblem[];
}

export const apply: Command = defineCommand({
  name: "apply",
  summary: "register workflow definitions from JSON or YAML files",
  isClient: true,
  arguments: [{ name: "file", description: "definitions, or - for the input", isRest: true }],
  options: {
    "dry-run": { type: "boolean", description: "only check; register nothing" },
  },
  details: [
    "All files are checked before the first is registered: with any problem in any of them nothing " +
      "is registered, and each problem is printed as <file>:<JSON pointer>. A YAML file may hold " +
      "several definitions, separated by `---`.",
    "New content of a known id becomes its next version; instances stay on the version they started " +
      "with. The same content again changes nothing.",
  ],
  examples: ["millrace apply order.yaml", "millrace apply --dry-run definitions/*.json"],
  run: async (context, { options, positionals }) => {
    const { output, client } = context;
    const { documents, problems } = await readAll(positionals, context);
    if (problems.length > 0) return refuse(output, problems);

    const checked = await checkAll(client, documents);
    if (checked.problems.length > 0) return refuse(output, checked.problems);
    if (options["dry-run"]) {
      output.json({ results: checked.results, problems: [] });
      if (!output.isJson) for (const each of checked.results) printResult(output, each, "valid");
      return EXIT.done;
    }

    const results: Applied[] = [];
    for (const document of documents) {
      const { created, warnings, ...answer } = await client.definitions.register(
        document.value as WorkflowDefinition,
      );
      const { place } = document;
      const located = warnings.map((each) => locate(document, each));
      results.push({ place, ...answer, created, warnings: located });
    }
    output.json({ results, problems: [] });
    if (!output.isJson) {
      for (const each of results) printResult(output, each, each.created ? "new" : "unchanged");
    }
    return EXIT.done;
  },
});

async function readAll(
  files: readonly string[],
  { readInput }: Context,
): Promise<{
  readonly documents: readonly SourceDocument[];
  readonly problems: readonly SourceProblem[];
}> {
  if (files.filter((file) => file === "-").length > 1) throw new UsageError("- is given twice");
  const read = await Promise.all(
    files.map(async (file) => {
      try {
        const text = file === "-" ? await readInput() : await readFile(file, "utf8");
        return readDocuments(file, text);
      } catch (error) {
        const problem = { place: file, code: "UNREADABLE", message: messageOf(error) };
        return { documents: [], problems: [problem] };
      }
    }),
  );
  return {
    documents: read.flatMap(({ documents }) => documents),
    problems: read.flatMap(({ problems }) => problems),
  };
}

async function checkAll(
  client: MillraceClient,
  documents: readonly SourceDocument[],
): Promise<{ readonly results: readonly Applied[]; readonly problems: readonly SourceProblem[] }> {
  const results: Applied[] = [];
  const problems: SourceProblem[] = [];
  for (const document of documents) {
    const { place } = document;
    try {
      const answer = await client.definitions.validate(document.value as WorkflowDefinition);
      if (answer.valid) {
        const { valid: _, warnings, ...rest } = answer;
        const located = warnings.map((each) => locate(document, each));
        results.push({ place, ...rest, created: false, warnings: located });
      } else {
        problems.push(...answer.problems.map((each) => locate(document, each)));
      }
    } catch (error) {
      // As when the document as a whole is too large, or no object.
      if (!(error instanceof MillraceApiError) || error.status >= 500) throw error;
      const { errors = [], detail } = error.problem;
      problems.push(...errors.map((each) => locate(document, each)));
      if (errors.length === 0) problems.push({ place, code: error.code, message: detail });
    }
  }
  return { results, problems };
}

function locate(document: SourceDocument, { path, code, message }: Problem): SourceProblem {
  const line = document.lineOf(path);
  const where = line === undefined ? "" : ` (line ${line})`;
  return { place: `${document.place}:${path || "/"}${where}`, code, message };
}

function refuse(output: Output, problems: readonly SourceProblem[]) {
  output.json({ results: [], problems });
  if (!output.isJson) {
    for (const each of problems) output.line(problemLine(output, each, "red"));
    const count = problems.length === 1 ? "One problem" : `${problems.length} problems`;
    output.note(`${count}; nothing was registered.`);
  }
  return EXIT.failed;
}

function printResult(output: Output, applied: Applied, what: "new" | "unchanged" | "valid"): void {
  const { place, id, version, warnings } = applied;
  const versionText = what === "valid" ? "" : ` version ${version}`;
  output.line(`${place}: ${output.paint("bold", id)}${versionText} (${what})`);
  for (const each of warnings) output.line(`warning: ${problemLine(output, each, "yellow")}`);
}

function problemLine(
  output: Output,
  { place, code, message }: SourceProblem,
  colour: "red" | "yellow",
): string {
  return `${printable(place)}: ${output.paint(colour, printable(message))} [${code}]`;
}
