import { expect, test } from "vitest";
import { judge } from "../oracle.ts";
import type { StreamedRecord } from "../record.ts";
import { quiet } from "./forgery.ts";

const whole: readonly StreamedRecord[] = quiet.instances.flatMap(({ view, history }) =>
  history.map(({ version = 0, type }) => ({ instanceId: view.id, version, type })),
);

function brokenBy(streamed: readonly StreamedRecord[]): readonly string[] {
  const instances = quiet.instances.map((each) => ({ ...each, viewAgain: each.view }));
  return judge({ ...quiet, instances, streamed }).flatMap(({ promise, what }) =>
    promise === "stream" ? [what] : [],
  );
}

test("stream: a change is lost, told twice, or told too early", () => {
  const [first, second] = whole as [StreamedRecord, StreamedRecord];
  const at = Math.floor(whole.length / 2);

  expect(brokenBy(whole.toSpliced(at, 1))).toHaveLength(1);
  expect(brokenBy(whole.slice(0, -1))).toHaveLength(1);
  expect(brokenBy([...whole, ...whole.slice(-1)])).toHaveLength(1);
  expect(brokenBy([second, first, ...whole.slice(2)])).toHaveLength(1);
  expect(brokenBy([])).toHaveLength(quiet.instances.length);
});

test("stream: instances may be told in any order beside each other", () => {
  const byVersion = whole.toSorted((a, b) => a.version - b.version);

  expect(brokenBy(whole)).toEqual([]);
  expect(brokenBy(byVersion)).toEqual([]);
});
