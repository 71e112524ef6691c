import { expect, test } from "vitest";
import { judge } from "../oracle.ts";
import type { RequestRecord } from "../record.ts";
import { forge, found } from "./forgery.ts";

/** The promises broken where the queue of that step is paused so long before it begins, and resumed after that. */
function brokenBy({ before, after = 1 }: { before: number; after?: number }): readonly string[] {
  const record = forge("retried", 0, ({ requests, told }) => {
    const { receivedAt } = found(told("run", "after")[0], "run of after");
    const ask = (operation: RequestRecord["operation"], at: number) =>
      requests.push({
        caseNumber: undefined,
        operation,
        subject: "side",
        status: 200,
        sentAt: at,
        answeredAt: at,
      });
    ask("pause queue", receivedAt - before);
    ask("resume queue", receivedAt + after);
  });
  return judge(record).map(({ promise }) => promise);
}

test("a step begins while its queue is paused", () => {
  expect(brokenBy({ before: 5_001 })).toContain("queue pause");
});

test("it holds where the step was on its way, and where the resume had been asked for", () => {
  expect(brokenBy({ before: 4_999 })).not.toContain("queue pause");
  expect(brokenBy({ before: 20_000, after: -1 })).not.toContain("queue pause");
});
