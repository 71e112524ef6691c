import type { InstanceView, StepView } from "@millrace/contract";
import type { CasePlan } from "../load-plan.ts";
import type { FaultRecord, InstanceRecord, RequestRecord, RunRecord, Seen } from "../record.ts";

/** Everything in the record that concerns one case. */
export interface Evidence {
  readonly plan: CasePlan;
  readonly requests: readonly RequestRecord[];
  /** Every instance of the case's workflow that bears its correlation id. */
  readonly instances: readonly InstanceRecord[];
  /** Those of other workflows that do: children have it from their parents. */
  readonly children: readonly InstanceRecord[];
  /** The only one of them, or the one that its start was answered with. */
  readonly instance: InstanceRecord | undefined;
  /** What the tasks of that instance told the ledger, in order. */
  readonly told: readonly Told[];
  /** What those of its children did. */
  readonly toldByChildren: readonly Told[];
  /** What anybody ever saw of that instance, its end included, by the time of the answer. */
  readonly sightings: readonly Sighting[];
  /** Of each event of the run, the instances whose wait it has satisfied. */
  readonly takers: ReadonlyMap<string, readonly string[]>;
  /** Of the whole run. */
  readonly faults: readonly FaultRecord[];
}

/** An entry of the ledger, as `chaos-step.mjs` makes them. */
export interface Told {
  readonly seq: number;
  readonly at: number;
  readonly kind: string;
  readonly step: string;
  /** Which item of a MAP. */
  readonly branch: string | undefined;
  readonly attempt: number;
  readonly deliveries: number;
  readonly key: string;
  readonly pid: number;
  readonly saw: unknown;
  readonly marker: unknown;
  /** Of the run that ends with it: the number of the entry with which it began. */
  readonly run: unknown;
}

export interface Sighting extends Pick<Seen, "status" | "version"> {
  readonly sentAt: number;
  readonly answeredAt: number;
}

export function evidenceOf(record: RunRecord): readonly Evidence[] {
  const requests = groupBy(record.requests, ({ caseNumber }) => caseNumber);
  const instances = groupBy(record.instances, ({ view }) => view.correlationId);
  const entries = groupBy(record.entries, ({ instance }) => instance);
  const sightings = sightingsOf(record);
  const takers = takersOf(record);
  return record.cases.map((plan) => {
    const own = requests.get(plan.number) ?? [];
    const related = instances.get(plan.key) ?? [];
    const found = related.filter(({ view }) => view.workflowId === plan.workflowId);
    const children = related.filter(({ view }) => view.workflowId !== plan.workflowId);
    const id = idAnswered(own);
    const instance = found.find(({ view }) => view.id === id) ?? found[0];
    return {
      plan,
      requests: own,
      instances: found,
      children,
      instance,
      told: (entries.get(instance?.view.id ?? "") ?? []).map(toTold),
      toldByChildren: children.flatMap(({ view }) => (entries.get(view.id) ?? []).map(toTold)),
      sightings: sightings.get(instance?.view.id ?? "") ?? [],
      takers,
      faults: record.faults,
    };
  });
}

/** Whether the answer means that the request was accepted. */
export function isAccepted({ status }: RequestRecord): boolean {
  return status !== undefined && status >= 200 && status < 300;
}

/** Accepted, or in doubt: a connection that broke, or a commit whose answer the server never had. */
export function mayHaveHappened({ status }: RequestRecord): boolean {
  return status === undefined || status < 300 || status >= 500;
}

/** When it had had its effect, if any: what is in doubt may still be at work after its client has gone. */
export function overAt(request: RequestRecord): number {
  return isAccepted(request) ? request.answeredAt : Infinity;
}

export function accepted(
  { requests }: Evidence,
  operation: RequestRecord["operation"],
): readonly RequestRecord[] {
  return requests.filter((each) => each.operation === operation && isAccepted(each));
}

function idAnswered(requests: readonly RequestRecord[]): string | undefined {
  return requests.find((each) => each.operation === "start" && isAccepted(each))?.seen?.[0]?.id;
}

/** Of steps and compensation steps alike. */
export function stepsOf(view: InstanceView): readonly (readonly [string, StepView])[] {
  return Object.entries({ ...view.state.steps, ...view.compensation?.steps });
}

export function entriesOf({ told }: Evidence, kind: string, step: string): readonly Told[] {
  return told.filter((each) => each.kind === kind && each.step === step);
}

export function firstRun(evidence: Evidence, step: string): Told | undefined {
  return entriesOf(evidence, "run", step)[0];
}

/** The keys under which it ran, in the order in which each came first: of its executions. */
export function keysOf(entries: readonly Told[]): readonly string[] {
  return [...new Set(entries.filter(({ kind }) => kind === "run").map(({ key }) => key))];
}

/** The number of the ledger's entry that a stored output names. */
export function recordIn(output: unknown): number | undefined {
  if (typeof output !== "object" || output === null || !("record" in output)) return undefined;
  return typeof output.record === "number" ? output.record : undefined;
}

/** The entry that the stored output of a step names: the outcome that counted. */
export function storedOutcome(evidence: Evidence, step: string): Told | undefined {
  const { instance, told } = evidence;
  const view = instance && stepsOf(instance.view).find(([id]) => id === step)?.[1];
  const record = recordIn(view?.output);
  return told.find(({ seq }) => seq === record);
}

/** `PT1.5S` in ms; what the load's plan has, no more. */
export function msOf(duration: unknown): number {
  return Number(String(duration).slice(2, -1)) * 1_000;
}

export function groupBy<Key, Value>(
  values: readonly Value[],
  keyOf: (value: Value) => Key,
): ReadonlyMap<Key, Value[]> {
  const groups = new Map<Key, Value[]>();
  for (const value of values) {
    const key = keyOf(value);
    const group = groups.get(key);
    if (group) group.push(value);
    else groups.set(key, [value]);
  }
  return groups;
}

function takersOf({ instances }: RunRecord): ReadonlyMap<string, readonly string[]> {
  const taken = instances.flatMap(({ view: { id, state } }) => {
    const { status, output } = state.steps["wait"] ?? {};
    return status === "COMPLETED" ? [{ id, event: (output as { id: string }).id }] : [];
  });
  return new Map(
    [...groupBy(taken, ({ event }) => event)].map(([event, of]) => [event, of.map(({ id }) => id)]),
  );
}

function sightingsOf({ requests, instances }: RunRecord): ReadonlyMap<string, Sighting[]> {
  const all: (Sighting & { readonly id: string })[] = requests.flatMap(
    ({ seen = [], sentAt, answeredAt }) => seen.map((each) => ({ ...each, sentAt, answeredAt })),
  );
  // What is read at the end comes after every answer.
  for (const { view, viewAgain } of instances) {
    all.push({ ...view, sentAt: Infinity, answeredAt: Infinity });
    if (viewAgain) all.push({ ...viewAgain, sentAt: Infinity, answeredAt: Infinity });
  }
  return groupBy(
    all.toSorted((a, b) => a.answeredAt - b.answeredAt),
    ({ id }) => id,
  );
}

function toTold({
  seq,
  receivedAt,
  step,
  branch,
  attempt,
  idempotencyKey,
  details,
}: RunRecord["entries"][number]): Told {
  const { kind, deliveries, pid, saw, marker, run } = details;
  return {
    seq,
    at: receivedAt,
    kind: String(kind),
    step,
    branch,
    attempt,
    deliveries: Number(deliveries),
    key: idempotencyKey,
    pid: Number(pid),
    saw,
    marker,
    run,
  };
}
