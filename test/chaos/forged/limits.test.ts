import { expect, test } from "vitest";
import { crowd } from "../load-plan.ts";
import { judge } from "../oracle.ts";
import { found, quiet } from "./forgery.ts";

const told = (instance: string, step: string, kind: string) =>
  found(
    quiet.entries.find(
      (each) => each.instance === instance && each.step === step && each.details["kind"] === kind,
    ),
    `${kind} of ${step}`,
  );

/** In the order in which they begin. There are two slots. */
const [one = "", two = "", three = ""] = quiet.instances
  .flatMap(({ view }) => (view.workflowId === "limited" ? view.id : []))
  .toSorted((a, b) => told(a, "one", "run").receivedAt - told(b, "one", "run").receivedAt);

/** The promises broken where these begin their first step at that moment. */
function brokenBy(instances: readonly string[], receivedAt: number): readonly string[] {
  const runs = new Set(instances.map((each) => told(each, "one", "run")));
  const entries = quiet.entries.map((each) => (runs.has(each) ? { ...each, receivedAt } : each));
  const seen = quiet.instances.map((each) => ({ ...each, viewAgain: each.view }));
  return judge({ ...quiet, entries, instances: seen }).map(({ promise }) => promise);
}

test("P10: three instances run where there are two slots", () => {
  expect(brokenBy([two, three], told(one, "one", "run").receivedAt)).toContain("P10");
  expect(brokenBy([two, three], told(one, "one", "outcome").receivedAt - 1)).toContain("P10");
});

test("P10 holds where two of them run, and where the third begins at the moment at which one has ended a step", () => {
  expect(brokenBy([three], told(one, "one", "run").receivedAt)).not.toContain("P10");
  expect(brokenBy([two, three], told(one, "one", "outcome").receivedAt)).not.toContain("P10");
});

/** The promises broken where so many instances, each of another workflow, are of one user and begin at one moment. */
function brokenByUser(count: number): readonly string[] {
  const firsts = Object.entries({ delay: "before", retried: "before", limited: "one" })
    .slice(0, count)
    .map(([workflowId, step]) => {
      const instance = quiet.instances.find(({ view }) => view.workflowId === workflowId);
      return told(instance?.view.id ?? "", step, "run");
    });
  const receivedAt = found(firsts[0], "run").receivedAt;
  const entries = quiet.entries.map((each) =>
    firsts.includes(each) ? { ...each, receivedAt } : each,
  );
  const instances = quiet.instances.map(({ view: seen, history }) => {
    const isHers = firsts.some(({ instance }) => instance === seen.id);
    const view = isHers ? { ...seen, userId: crowd.userId } : seen;
    return { view, viewAgain: view, history };
  });
  return judge({ ...quiet, entries, instances }).map(({ promise }) => promise);
}

test("P10: three instances of a user run who may have two, each of another workflow", () => {
  expect(brokenByUser(3)).toContain("P10");
  expect(brokenByUser(2)).not.toContain("P10");
});
