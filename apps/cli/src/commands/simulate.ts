import { parseJson, Scenario, type SimulationView } from "@millrace/contract";
import {
  compileDefinition,
  scenarioProblems,
  simulate as simulateScenario,
  validateDefinition,
} from "@millrace/engine";
import { openCalendars } from "@millrace/holidays";
import { type Command, defineCommand } from "../command.ts";
import { readDocumentFile, type SourceDocument } from "../documents.ts";
import { CommandError } from "../errors.ts";
import { EXIT } from "../exit-codes.ts";
import { jsonLine, type Output, printable } from "../output.ts";
import { timeText } from "../times.ts";

export const simulate: Command = defineCommand({
  name: "simulate",
  summary: "run a definition on a virtual clock with mocked tasks; no server is needed",
  isClient: false,
  arguments: [{ name: "file", description: "a definition, JSON or YAML" }],
  options: {
    scenario: {
      type: "string",
      short: "s",
      value: "file",
      description: "what tasks answer and what happens; without it tasks answer null after 1 s",
    },
  },
  details: [
    "A scenario holds the input, a result for each attempt of each task (an output or an error, and " +
      "how long it takes), events and a cancel at given times, and the calendars that delays count by. No task runs, nothing is stored. The " +
      "exit code is 1 when the definition or the scenario is wrong.",
  ],
  examples: ["millrace simulate order.yaml --scenario paid.json"],
  run: async ({ output }, { options, positionals }) => {
    const [file = ""] = positionals;
    const source = await readOne(file);
    // It is needed by nothing else, and takes its time to be loaded.
    const { compileInputSchema, faultsOfInputSchema, formats } =
      await import("@millrace/input-schema");
    const { document, problems: found = [] } = validateDefinition(source.value, formats);
    const problems = [...faultsOfInputSchema(source.value, found), ...found];
    if (document === undefined || problems.length > 0) return refuse(output, source, problems);

    const definition = compileDefinition(document, 1);
    const scenario = options.scenario === undefined ? undefined : await readOne(options.scenario);
    const parsed = parseJson(Scenario, scenario?.value ?? {});
    const faults = parsed.problems ?? scenarioProblems(definition, parsed.data);
    if (parsed.problems || faults.length > 0) return refuse(output, scenario ?? source, faults);

    const opened = await openCalendars(parsed.data);
    if ("problems" in opened) return refuse(output, scenario ?? source, opened.problems);

    const violations = compileInputSchema(document)(parsed.data.input ?? {});
    if (violations.length > 0) return refuse(output, scenario ?? source, violations);

    const result = simulateScenario(definition, parsed.data, opened.calendars);
    const view: SimulationView = { workflowId: document.id, workflowVersion: null, ...result };
    output.json(view);
    if (!output.isJson) print(output, view);
    return EXIT.done;
  },
});

async function readOne(file: string): Promise<SourceDocument> {
  const documents = await readDocumentFile(file);
  const [document] = documents;
  if (document === undefined || documents.length > 1) {
    throw new CommandError(
      "NOT_ONE_DOCUMENT",
      `${file} has ${documents.length} documents, not one`,
    );
  }
  return document;
}

interface Fault {
  readonly path: string;
  readonly code: string;
  readonly message: string;
}

function refuse(output: Output, source: SourceDocument, problems: readonly Fault[]): number {
  output.json({ problems });
  if (output.isJson) return EXIT.failed;
  for (const { path, code, message } of problems) {
    const line = source.lineOf(path);
    const place = `${source.place}:${path}${line === undefined ? "" : ` (line ${line})`}`;
    output.line(`${printable(place)}: ${printable(message)} [${code}]`);
  }
  output.note("Nothing was simulated.");
  return EXIT.failed;
}

function print(output: Output, view: SimulationView): void {
  const { instance, transcript, coverage, unmocked, outcome } = view;
  for (const { at, what, changes, status } of transcript) {
    const follows = changes.map(({ executionId, status: step, error }) =>
      printable(`${executionId.replace(/#1$/, "")} ${step}${error ? ` (${error})` : ""}`),
    );
    output.line(`${timeText(at)}  ${printable(what)}`);
    output.line(`    ${[...follows, `instance ${status}`].join(", ")}`);
  }
  output.line();
  output.line(`${outcome}: ${instance.status}`);
  if (instance.error) output.line(`error      ${printable(instance.error.message)}`);
  output.line(`output     ${jsonLine(instance.output)}`);
  const { compensation } = instance;
  if (compensation) {
    const undone = compensation.completed.join(", ") || "nothing";
    output.line(`undone     ${printable(undone)} (${compensation.status})`);
  }
  output.line(`path       ${printable(view.path.join(" → ").replaceAll("#1", ""))}`);
  output.line(`coverage   ${coverage.taken} of ${coverage.total} transitions`);
  if (coverage.unreached.length > 0) {
    output.line(`unreached  ${printable(coverage.unreached.join(", "))}`);
  }
  if (unmocked.length > 0) {
    output.note(`No results were given for ${printable(unmocked.join(", "))}: null after 1 s.`);
  }
}
