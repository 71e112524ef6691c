import { expect, test } from "vitest";
import { judge } from "../oracle.ts";
import { found, quiet } from "./forgery.ts";

const told = (instance: string, step: string, kind: string) =>
  found(
    quiet.entries.find(
      (each) => each.instance === instance && each.step === step && each.details["kind"] === kind,
    ),
    `${kind} of ${step}`,
  );

/** In the order in which they begin. */
const limited = quiet.instances
  .flatMap(({ view }) => (view.workflowId === "limited" ? view.id : []))
  .toSorted((a, b) => told(a, "one", "run").receivedAt - told(b, "one", "run").receivedAt);

/** The promises broken where one instance begins its first step at that moment. */
function brokenBy(instance: string, receivedAt: number): readonly string[] {
  const run = told(instance, "one", "run");
  const entries = quiet.entries.map((each) => (each === run ? { ...run, receivedAt } : each));
  const instances = quiet.instances.map((each) => ({ ...each, viewAgain: each.view }));
  return judge({ ...quiet, entries, instances }).map(({ promise }) => promise);
}

test("P10: an instance runs while another one has the only slot", () => {
  const [other = "", , one = ""] = limited;

  expect(brokenBy(one, told(other, "one", "run").receivedAt)).toContain("P10");
  expect(brokenBy(one, told(other, "two", "outcome").receivedAt - 1)).toContain("P10");
});

test("P10 holds where one begins at the moment at which another one has ended a step", () => {
  const [other = "", , one = ""] = limited;

  expect(brokenBy(one, told(other, "two", "outcome").receivedAt)).not.toContain("P10");
});
