import { Writable } from "node:stream";
import type { InstanceView } from "@millrace/contract";
import { expect, test } from "vitest";
import { openProgress } from "../src/demo/progress.ts";
import { openOutput } from "../src/output.ts";
import { instance } from "./instances.ts";

function recorder(isTTY: boolean) {
  let text = "";
  const stdout = Object.assign(
    new Writable({
      write(chunk, _encoding, done) {
        text += String(chunk);
        done();
      },
    }),
    { isTTY, columns: 100 },
  );
  const output = openOutput({ stdout, stderr: stdout, isJson: false, isColoured: false });
  return { output, text: () => text };
}

function seen(...statuses: InstanceView["status"][]): ReadonlyMap<string, InstanceView> {
  return new Map(statuses.map((status, index) => [String(index), instance({ status })]));
}

test("in a terminal the table is drawn over itself", () => {
  const { output, text } = recorder(true);
  const progress = openProgress({ output, total: 2, pathOf: () => "paid", clock: () => 0 });

  progress.show(seen("RUNNING"));
  progress.show(seen("COMPLETED", "WAITING_FOR_EVENT"));

  const [first = "", second = ""] = text().split("\u001b[3A\u001b[0J");
  expect(first).toContain("1 of 2 orders started: 1 running, 0 waiting, 0 undoing, 0 ended");
  expect(second).toContain("2 of 2 orders started: 0 running, 1 waiting, 0 undoing, 1 ended");
  expect(second.trimEnd().split("\n")).toHaveLength(3);
});

test("elsewhere there is a line now and then, when something has changed", () => {
  const { output, text } = recorder(false);
  let now = 0;
  const progress = openProgress({ output, total: 2, pathOf: () => "paid", clock: () => now });

  progress.show(seen("RUNNING"));
  now = 500;
  progress.show(seen("RUNNING", "RUNNING"));
  now = 1_500;
  progress.show(seen("RUNNING", "RUNNING"));
  now = 3_000;
  progress.show(seen("RUNNING", "RUNNING"));

  expect(text().split("\n")).toEqual([
    "  0.0 s  1 of 2 orders started: 1 running, 0 waiting, 0 undoing, 0 ended",
    "  1.5 s  2 of 2 orders started: 2 running, 0 waiting, 0 undoing, 0 ended",
    "",
  ]);
});
