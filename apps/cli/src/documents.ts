import { readFile } from "node:fs/promises";
import { faultOfNumber, jsonFaults, type Problem, scanJson } from "@millrace/contract";
import { type Document, isCollection, LineCounter, parseAllDocuments, visit } from "yaml";
import { CommandError, messageOf } from "./errors.ts";

/** Larger ones are no definitions, and the API would refuse them. */
const MAX_BYTES = 5_000_000;

/** One definition in a file; a YAML file may hold several. */
export interface SourceDocument {
  /** The file, and the number of the document in it when there are several: `all.yaml#2`. */
  readonly place: string;
  readonly value: unknown;
  /** The line, from 1, of what a JSON pointer names, or of the nearest thing around it. */
  lineOf(pointer: string): number | undefined;
}

export interface SourceProblem {
  /** As `order.yaml:3:7`, or a file and a pointer. */
  readonly place: string;
  readonly message: string;
  readonly code: string;
}

export interface SourceDocuments {
  readonly documents: readonly SourceDocument[];
  readonly problems: readonly SourceProblem[];
}

/**
 * Reads one file, for a command that can do nothing without it.
 *
 * @throws {CommandError} With the first thing that is wrong.
 */
export async function readDocumentFile(
  file: string,
  read: () => Promise<string> = () => readFile(file, "utf8"),
): Promise<readonly SourceDocument[]> {
  const text = await read().catch((error: unknown) => {
    throw new CommandError("UNREADABLE", `${file}: ${messageOf(error)}`);
  });
  const { documents, problems } = readDocuments(file, text);
  const [problem] = problems;
  if (problem) throw new CommandError(problem.code, `${problem.place}: ${problem.message}`);
  return documents;
}

/** Reads the text of a JSON or YAML file. With any problem there are no documents. */
export function readDocuments(file: string, text: string): SourceDocuments {
  const problem = (place: string, code: string, message: string): SourceDocuments => ({
    documents: [],
    problems: [{ place, code, message }],
  });
  const content = text.replace(/^\uFEFF/, "");
  if (content.length > MAX_BYTES) return problem(file, "TOO_LONG", "is larger than 5 MB");
  if (content.trim() === "") return problem(file, "EMPTY_FILE", "is empty");
  return /\.json$/i.test(file) ? readJson(file, content) : readYaml(file, content);
}

function readJson(file: string, text: string): SourceDocuments {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const place = placeInJson(file, text, messageOf(error));
    // What follows quotes the text.
    const message = messageOf(error).replace(/, (?:\.{3})?".*/s, "");
    return { documents: [], problems: [{ place, code: "MALFORMED_JSON", message }] };
  }
  const scan = scanJson(text);
  const faults = "faults" in scan ? scan.faults : [];
  if (faults.length > 0)
    return { documents: [], problems: faults.map((fault) => inFile(file, fault)) };
  // JSON is YAML too, and the YAML parser knows where things are.
  const lines = new LineCounter();
  const [document] = parseAllDocuments(text, { ...yamlOptions, lineCounter: lines });
  const repeated = document?.errors.find(({ code }) => code === "DUPLICATE_KEY");
  if (repeated) {
    const { line, col } = lines.linePos(repeated.pos[0]);
    const message = "this key occurs twice in its object";
    return {
      documents: [],
      problems: [{ place: `${file}:${line}:${col}`, code: "DUPLICATE_KEY", message }],
    };
  }
  return { documents: [sourceDocument(file, value, document, lines)], problems: [] };
}

function readYaml(file: string, text: string): SourceDocuments {
  const lines = new LineCounter();
  const parsed = parseAllDocuments(text, { ...yamlOptions, lineCounter: lines });
  const documents: SourceDocument[] = [];
  const problems: SourceProblem[] = [];
  for (const [index, document] of parsed.entries()) {
    const place = parsed.length > 1 ? `${file}#${index + 1}` : file;
    for (const { pos, message } of document.errors) {
      const { line, col } = lines.linePos(pos[0]);
      problems.push({ place: `${file}:${line}:${col}`, code: "MALFORMED_YAML", message });
    }
    if (document.errors.length > 0) continue;
    try {
      const value: unknown = document.toJS({ maxAliasCount: 100 });
      // An empty document, as after a `---` at the end, is nothing.
      if (value === null) continue;
      // What JSON could say, and is wrong with it, is for who takes the document to tell.
      const faults = jsonFaults(value).filter(({ code }) => notJson.has(code));
      problems.push(
        ...faults.map((fault) => inFile(place, fault)),
        ...changedNumbers(file, document, lines),
      );
      documents.push(sourceDocument(place, value, document, lines));
    } catch (error) {
      problems.push({ place, code: "MALFORMED_YAML", message: messageOf(error) });
    }
  }
  if (problems.length > 0) return { documents: [], problems };
  if (documents.length > 0) return { documents, problems };
  return { documents, problems: [{ place: file, code: "EMPTY_FILE", message: "is empty" }] };
}

function inFile(place: string, { path, code, message }: Problem): SourceProblem {
  return { place: `${place}:${path}`, code, message };
}

/** Numbers that would not be sent as they stand in the file. */
function changedNumbers(file: string, document: Document, lines: LineCounter): SourceProblem[] {
  const problems: SourceProblem[] = [];
  visit(document, {
    Scalar(_, { value, source, range }) {
      if (typeof value !== "number" || !Number.isFinite(value) || source === undefined) return;
      const digits = source.replace(/^\+/, "");
      const message = faultOfNumber(isDecimal.test(digits) ? digits : BigInt(digits).toString());
      if (message === undefined) return;
      const { line, col } = lines.linePos(range?.[0] ?? 0);
      problems.push({ place: `${file}:${line}:${col}`, code: "BAD_NUMBER", message });
    },
  });
  return problems;
}

/** Otherwise a number of YAML is in hexadecimal or octal digits. */
const isDecimal = /^-?[\d.]+(?:e[-+]?\d+)?$/i;

const notJson: ReadonlySet<string> = new Set(["NOT_JSON", "TOO_DEEP"]);

/** YAML 1.2's own types only: `2026-01-31` and `yes` are texts, as they are in JSON. */
const yamlOptions = { version: "1.2", schema: "core", prettyErrors: false } as const;

function sourceDocument(
  place: string,
  value: unknown,
  document: Document | undefined,
  lines: LineCounter,
): SourceDocument {
  return {
    place,
    value,
    lineOf: (pointer) => {
      let node: unknown = document?.contents;
      for (const segment of segmentsOf(pointer)) {
        if (!isCollection(node)) break;
        // What is missing has the line of what it is missing from.
        const next = node.get(/^\d+$/.test(segment) ? Number(segment) : segment, true);
        if (next === undefined) break;
        node = next;
      }
      const start = (node as { range?: readonly number[] | null } | null | undefined)?.range?.[0];
      return start === undefined ? undefined : lines.linePos(start).line;
    },
  };
}

function segmentsOf(pointer: string): readonly string[] {
  return pointer
    .split("/")
    .slice(1)
    .map((segment) => segment.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** V8 names the place of some faults only; where a value is missing or malformed it names none. */
function placeInJson(file: string, text: string, message: string): string {
  const position = /at position (\d+)/.exec(message)?.[1];
  const offset = position === undefined ? offsetOfFault(text) : Number(position);
  const before = text.slice(0, offset).split("\n");
  return `${file}:${before.length}:${(before.at(-1) ?? "").length + 1}`;
}

const JSON_TOKEN =
  /\s+|[[\]{},:]|"(?:[^"\\\p{Cc}]|\\(?:["\\/bfnrt]|u[\da-f]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?|true|false|null/iuy;

/** The first thing that is no token, or that stands where a value should. */
function offsetOfFault(text: string): number {
  let former = ",";
  for (let offset = 0; offset < text.length;) {
    JSON_TOKEN.lastIndex = offset;
    const token = JSON_TOKEN.exec(text)?.[0];
    if (token === undefined) return offset;
    offset += token.length;
    if (token.trim() === "") continue;
    const isValueDue = former === "," || former === ":" || former === "[";
    const isNone = token === "," || token === ":" || token === "}" || token === "]";
    if (isValueDue && isNone && former + token !== "[]") return offset - token.length;
    former = token;
  }
  return text.length;
}
