import type {
  CompensationStepView,
  ErrorView,
  InstanceStatus,
  InstanceView,
  StepStatus,
  StepExecutionView,
  StepView,
  WaitView,
} from "@millrace/contract";
import { jsonLine, type Output, printable, shorten, type Style } from "./output.ts";
import { table } from "./table.ts";
import { clockText, durationBetween, timeText } from "./times.ts";

/**
 * An instance for people: what it is, then a tree of its steps in the order in which they began,
 * each with what went wrong or what it waits for, then its compensation.
 *
 * @param most Characters of a shown value.
 */
export function instanceLines(
  output: Output,
  instance: InstanceView,
  most = Math.max(60, output.columns - 16),
): readonly string[] {
  const { paint } = output;
  const head = `${printable(instance.workflowId)} version ${instance.workflowVersion}`;
  return [
    `${paint("bold", head)}  ${statusText(output, instance.status)}  ${instance.id}`,
    ...facts(instance, most).map(([name, value]) => `  ${paint("dim", name.padEnd(12))}${value}`),
    ...stepLines(output, instance, most),
    ...compensationLines(output, instance, most),
  ];
}

/** Executions of steps, each with its path and its pass. */
export function executionLines(
  output: Output,
  executions: readonly StepExecutionView[],
  most = Math.max(60, output.columns - 16),
): readonly string[] {
  if (executions.length === 0) return ["nothing has run there"];
  const branches = executions.map((step) => ({
    cells: cellsOf(output, passText(step), step),
    remarks: stepRemarks(step, [], most),
  }));
  return tree(output, branches);
}

function passText({ path, iteration = 1 }: StepExecutionView): string {
  return iteration === 1 ? path : `${path} #${iteration}`;
}

function facts(instance: InstanceView, most: number): readonly (readonly [string, string])[] {
  const { createdAt, startedAt, completedAt, cancellation, error, pause } = instance;
  const { correlationId, startEventId, parent } = instance;
  const ran = durationBetween(startedAt ?? createdAt, completedAt);
  const ended = completedAt === null ? "" : `, settled ${clockText(completedAt)}`;
  return [
    ["created", `${timeText(createdAt)} UTC${ended}${ran === undefined ? "" : ` (${ran})`}`],
    ...(startEventId === null ? [] : [["started by event", printable(startEventId)] as const]),
    ...(correlationId === null ? [] : [["correlation", printable(correlationId)] as const]),
    ...(parent === null
      ? []
      : [["child of", `${parent.instanceId} at ${printable(parent.path)}`] as const]),
    ["input", jsonLine(instance.input, most)],
    ...(Object.keys(instance.state.variables).length === 0
      ? []
      : [["variables", jsonLine(instance.state.variables, most)] as const]),
    ...(instance.output === null ? [] : [["output", jsonLine(instance.output, most)] as const]),
    ...(error === null ? [] : [["error", errorText(error, most)] as const]),
    ...(pause === null ? [] : [["paused", pauseText(pause, most)] as const]),
    ...(cancellation === null
      ? []
      : [["cancelled", cancellationText(cancellation, most)] as const]),
  ];
}

function pauseText(
  { by, at, reason, until }: NonNullable<InstanceView["pause"]>,
  most: number,
): string {
  const end = until === null ? "" : `, until ${timeText(until)} UTC`;
  const why = reason === null ? "" : `: ${printable(reason)}`;
  return shorten(`by ${printable(by)} at ${timeText(at)} UTC${end}${why}`, most);
}

function cancellationText(
  { reason, requestedBy, source, shouldCompensate }: NonNullable<InstanceView["cancellation"]>,
  most: number,
): string {
  const how = shouldCompensate ? "" : ", without compensation";
  return shorten(
    `${printable(reason ?? "no reason given")} (${source}, by ${printable(requestedBy)}${how})`,
    most,
  );
}

function errorText({ kind, type, message, stepId }: ErrorView, most: number): string {
  const where = stepId === null ? "" : ` at ${printable(stepId)}`;
  const name = kind === type ? kind : `${kind} ${printable(type)}`;
  return shorten(`${name}${where}: ${printable(message)}`, most);
}

interface Branch {
  readonly cells: readonly string[];
  /** Below the line of the step. */
  readonly remarks: readonly string[];
}

function stepLines(output: Output, instance: InstanceView, most: number): readonly string[] {
  const { completed, total } = instance.progress;
  const waits = instance.state.waitingFor;
  const branches = inTheirPlace(namedSteps(instance)).map(({ path, step }) => {
    const { under, name } = placeOf(path);
    return {
      cells: cellsOf(output, `${"  ".repeat(depthOf(under))}${name}`, step),
      remarks: stepRemarks(
        step,
        waits.filter((wait) => (wait.path ?? wait.stepId) === path),
        most,
      ),
    };
  });
  const title = `steps ${output.paint("dim", `(${completed} of ${total} completed)`)}`;
  return [title, ...tree(output, branches)];
}

function cellsOf(output: Output, name: string, step: StepView): readonly string[] {
  return [
    mark(output, step.status),
    printable(name),
    stepStatusText(output, step.status),
    step.type ?? "",
    clockText(step.startedAt),
    durationBetween(step.startedAt, step.completedAt) ?? "",
    attemptsText(step.attempts),
  ];
}

interface NamedStep {
  readonly path: string;
  readonly step: StepView;
}

/** Once each: the latest of those in items stands under its step id as well. */
function namedSteps({ state }: InstanceView): readonly NamedStep[] {
  return Object.entries(state.steps).flatMap(([name, step]) => {
    const { path = name } = step;
    return path !== name && path.includes("[") ? [] : [{ path, step }];
  });
}

/** What is inside a step comes below it, in the order in which it began. */
function inTheirPlace(steps: readonly NamedStep[]): readonly NamedStep[] {
  const known = new Set(steps.map(({ path }) => path));
  const inside = new Map<string | undefined, NamedStep[]>();
  for (const each of steps) {
    const { under } = placeOf(each.path);
    const around = under !== undefined && known.has(under) ? under : undefined;
    inside.set(around, [...(inside.get(around) ?? []), each]);
  }
  const list = (around: string | undefined): readonly NamedStep[] =>
    (inside.get(around) ?? [])
      .toSorted((a, b) => startOf(a.step) - startOf(b.step))
      .flatMap((each) => [each, ...list(each.path)]);
  return list(undefined);
}

/** Under `ship`, `[3].label`; under `checkout`, `card.charge`. */
function placeOf(path: string): { readonly under: string | undefined; readonly name: string } {
  const inItem = /^(.*)(\[\d+\]\.[^.[\]]+)$/.exec(path);
  const inBranch = /^(.*)\.([^.[\]]+\.[^.[\]]+)$/.exec(path);
  const [, under, name = path] = inItem ?? inBranch ?? [];
  return { under, name };
}

function depthOf(under: string | undefined): number {
  return under === undefined ? 0 : 1 + depthOf(placeOf(under).under);
}

/** Steps that have begun in their order, then those that wait for their turn. */
function startOf({ startedAt, completedAt }: StepView): number {
  const time = startedAt ?? completedAt;
  return time === null ? Number.POSITIVE_INFINITY : Date.parse(time);
}

function stepRemarks(
  { status, error, nextAttemptAt, blocked, progress, output, items, childId }: StepView,
  waits: readonly WaitView[],
  most: number,
): readonly string[] {
  return [
    ...(error === null ? [] : [errorText({ ...error, stepId: null }, most)]),
    ...(items ? [itemsText(items)] : []),
    ...(nextAttemptAt ? [`next attempt at ${clockText(nextAttemptAt)}`] : []),
    ...(childId ? [`child ${childId}`] : []),
    ...(blocked ? [`no worker takes it: ${printable(blocked)}`] : []),
    ...(status === "RUNNING" && progress ? [`progress ${jsonLine(progress, most - 9)}`] : []),
    ...waits.map((wait) => shorten(waitText(wait), most)),
    ...(output !== null ? [`→ ${jsonLine(output, most - 2)}`] : []),
  ];
}

function itemsText({ count, completed, failed, active }: NonNullable<StepView["items"]>): string {
  const parts = [`${completed} of ${count} items completed`];
  if (failed > 0) parts.push(`${failed} failed`);
  if (active > 0) parts.push(`${active} active`);
  return parts.join(", ");
}

function waitText({ kind, eventPattern, eventCondition, since, until }: WaitView): string {
  const what = kind === "DELAY" ? "waits" : `waits for ${printable(eventPattern ?? "an event")}`;
  const condition = eventCondition ? ` where ${printable(eventCondition)}` : "";
  const end = until ? `, until ${timeText(until)}` : "";
  return `${what} since ${clockText(since)}${end}${condition}`;
}

function compensationLines(
  output: Output,
  { compensation }: InstanceView,
  most: number,
): readonly string[] {
  if (compensation === null) return [];
  const { status, plan, steps, failed, uncertain } = compensation;
  const colour = status === "COMPLETED" ? "green" : status === "IN_PROGRESS" ? "blue" : "red";
  const branches = plan.map((stepId) => {
    const step = steps[stepId];
    const failure = failed.find((each) => each.stepId === stepId);
    return {
      cells: [
        mark(output, step?.status ?? "PENDING"),
        printable(stepId),
        stepStatusText(output, step?.status ?? "PENDING"),
        step?.compensationFor ? `for ${printable(step.compensationFor)}` : "",
        clockText(step?.startedAt ?? null),
        durationBetween(step?.startedAt, step?.completedAt) ?? "",
        attemptsText(step?.attempts ?? 0),
      ],
      remarks: compensationRemarks(step, failure?.error, most),
    };
  });
  const doubt = uncertain.map((stepId) => `  outcome unknown: ${printable(stepId)}`);
  return [`compensation ${output.paint(colour, status)}`, ...tree(output, branches), ...doubt];
}

function compensationRemarks(
  step: CompensationStepView | undefined,
  failure: string | undefined,
  most: number,
): readonly string[] {
  if (step?.error) return [errorText({ ...step.error, stepId: null }, most)];
  if (failure !== undefined) return [shorten(printable(failure), most)];
  if (step?.nextAttemptAt) return [`next attempt at ${clockText(step.nextAttemptAt)}`];
  return step?.output ? [`→ ${jsonLine(step.output, most - 2)}`] : [];
}

function tree({ paint }: Output, branches: readonly Branch[]): readonly string[] {
  const lines = table(
    ["", "", "", "", "", "", ""],
    branches.map(({ cells }) => cells),
  ).slice(1);
  return branches.flatMap(({ remarks }, index) => {
    const isLast = index === branches.length - 1;
    const trunk = paint("dim", isLast ? "   " : "│  ");
    return [
      `  ${paint("dim", isLast ? "└─ " : "├─ ")}${lines[index]}`,
      ...remarks.map((remark) => `  ${trunk}   ${paint("dim", remark)}`),
    ];
  });
}

function attemptsText(attempts: number): string {
  return attempts > 1 ? `${attempts} attempts` : "";
}

const STATUS_STYLES: Readonly<Record<InstanceStatus, Style>> = {
  CREATED: "dim",
  RUNNING: "blue",
  WAITING_FOR_EVENT: "cyan",
  PAUSED: "yellow",
  COMPLETED: "green",
  FAILED: "red",
  CANCELLED: "yellow",
};

export function statusText({ paint }: Output, status: InstanceStatus): string {
  return paint(STATUS_STYLES[status] ?? "dim", status);
}

const STEP_STYLES: Readonly<Record<StepStatus, readonly [Style, string]>> = {
  PENDING: ["dim", "·"],
  RUNNING: ["blue", "▶"],
  WAITING: ["cyan", "…"],
  RETRYING: ["yellow", "↻"],
  COMPLETED: ["green", "✔"],
  FAILED: ["red", "✘"],
  SKIPPED: ["dim", "↷"],
  CANCELLED: ["yellow", "■"],
};

function stepStatusText({ paint }: Output, status: StepStatus): string {
  return paint(STEP_STYLES[status]?.[0] ?? "dim", status);
}

function mark({ paint }: Output, status: StepStatus): string {
  const [style, sign] = STEP_STYLES[status] ?? ["dim", "?"];
  return paint(style, sign);
}
