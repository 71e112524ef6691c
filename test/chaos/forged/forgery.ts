import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { HistoryEntry, InstanceView, StepView } from "@millrace/contract";
import type { CasePlan, Scenario } from "../load-plan.ts";
import { judge } from "../oracle.ts";
import type { FaultRecord, RequestRecord, RunRecord } from "../record.ts";

// An oracle that finds nothing proves nothing unless it can find something. The fixture is the record
// of a real run in which all was well, one case of each kind; each forgery breaks one promise in it.

/** A case of the fixture, to be tampered with. */
export interface Forgery {
  readonly plan: Loose<CasePlan>;
  readonly requests: Loose<RequestRecord>[];
  readonly entries: Loose<RunRecord["entries"][number]>[];
  readonly faults: FaultRecord[];
  readonly instances: { view: View; viewAgain: View; history: Loose<HistoryEntry>[] }[];
  readonly view: View;
  readonly history: Loose<HistoryEntry>[];
  step(stepId: string): Loose<StepView>;
  request(operation: RequestRecord["operation"]): Loose<RequestRecord>;
  told(kind: string, step: string): Loose<RunRecord["entries"][number]>[];
}

export type Loose<T> = { -readonly [Key in keyof T]: T[Key] } & {
  details?: Record<string, unknown>;
};
type View = Loose<InstanceView>;

export const quiet = JSON.parse(
  readFileSync(join(import.meta.dirname, "../../fixtures/chaos/quiet.json"), "utf8"),
) as RunRecord;

/** The n-th case of that scenario, alone, as a record of its own. */
export function forge(
  scenario: Scenario,
  index: number,
  tamper: (forgery: Forgery) => void,
): RunRecord {
  const plan = structuredClone(quiet.cases.filter((each) => each.scenario === scenario)[index]);
  if (!plan) throw new Error(`the fixture has no ${scenario} ${index}`);
  const instances = quiet.instances
    .filter(({ view }) => view.correlationId === plan.key)
    .map(({ view, history }) => structuredClone({ view, viewAgain: view, history }));
  // Children bear its correlation id, too.
  const own = instances.find(({ view: { workflowId } }) => workflowId === plan.workflowId);
  const { view, history } = own ?? {};
  const ids = new Set(instances.map(({ view: { id } }) => id));
  if (!view || !history) throw new Error(`the fixture has no instance of ${plan.key}`);
  const record = structuredClone({
    cases: [plan],
    requests: quiet.requests.filter(({ caseNumber }) => caseNumber === plan.number),
    entries: quiet.entries.filter(({ instance }) => ids.has(instance)),
    faults: [],
    schedules: [],
  });
  const forgery = {
    ...record,
    instances,
    plan,
    view,
    history,
    step: (stepId: string) => found(view.state.steps[stepId], stepId),
    request: (operation: string) =>
      found(
        record.requests.find((each) => each.operation === operation),
        operation,
      ),
    told: (kind: string, step: string) =>
      record.entries.filter((each) => each.details["kind"] === kind && each.step === step),
  };
  tamper(forgery as unknown as Forgery);
  return { ...record, instances };
}

export function found<T>(value: T | undefined, name: string): T {
  if (value === undefined) throw new Error(`the fixture has no ${name}`);
  return value;
}

export type Forgeries = readonly (readonly [
  promise: string,
  what: string,
  scenario: Scenario,
  tamper: (forgery: Forgery) => void,
  index?: number,
])[];

/** The promises that the oracle finds broken in the n-th case of that scenario, once tampered with. */
export function broken(
  scenario: Scenario,
  tamper: (forgery: Forgery) => void,
  index: number,
): readonly string[] {
  return judge(forge(scenario, index, tamper)).map(({ promise }) => promise);
}

export const lastChange = (history: Loose<HistoryEntry>[], type: string) =>
  found(
    history.findLast((each) => each.type === type),
    type,
  );

/** One more answer of that operation, with such a status, between `sentAt` and `answeredAt`. */
export function ask(
  { requests, plan, view }: Forgery,
  operation: RequestRecord["operation"],
  status: number | undefined,
  [sentAt, answeredAt]: readonly [number, number],
): void {
  requests.push({
    caseNumber: plan.number,
    operation,
    subject: view.id,
    status,
    sentAt,
    answeredAt,
  });
}

/** When it became so, by the history: the n-th time. */
export function timeOf({ history }: Forgery, status: string, index = 0): number {
  const changes = history.filter(
    ({ type, data }) => type === "workflow.status" && (data as { to: string }).to === status,
  );
  return Date.parse(found(changes[index], status).at);
}

export function without({ requests }: Forgery, operation: RequestRecord["operation"]): void {
  const gone = requests.filter((each) => each.operation === operation);
  for (const each of gone) requests.splice(requests.indexOf(each), 1);
}
