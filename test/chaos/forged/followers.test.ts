import { expect, test } from "vitest";
import { followedBy } from "../definitions.ts";
import { judge } from "../oracle.ts";
import type { RequestRecord } from "../record.ts";
import { found, quiet } from "./forgery.ts";

const registered: RequestRecord = {
  caseNumber: undefined,
  operation: "register",
  subject: "follower",
  status: 201,
  sentAt: 0,
  answeredAt: 0,
};

/** The promises broken where each end of a `map` has started so many. */
function brokenBy(count: number): readonly string[] {
  const seen = quiet.instances.map((each) => ({ ...each, viewAgain: each.view }));
  const ended = seen.filter(({ view }) => view.workflowId === "map" && view.status === "COMPLETED");
  found(ended[0], "map that has completed");
  const followers = ended.flatMap((each) =>
    Array.from({ length: count }, () => {
      const correlationId = followedBy(each.view.correlationId ?? "");
      const view = { ...each.view, workflowId: "follower", correlationId };
      return { ...each, view, viewAgain: view };
    }),
  );
  const requests = [...quiet.requests, registered];
  const instances = [...seen, ...followers];
  return judge({ ...quiet, requests, instances }).map(({ promise }) => promise);
}

test("P4: an end starts nobody who listens to it, or two", () => {
  expect(brokenBy(0)).toContain("P4");
  expect(brokenBy(2)).toContain("P4");
  expect(brokenBy(1)).not.toContain("P4");
});
