import { openDatabase } from "@millrace/store";
import { expect, test } from "vitest";
import { describeStartFailure } from "../src/start-failure.ts";

test("what keeps a program from starting is told with what caused it, and a circle of causes once round", () => {
  const full = new Error("EMFILE: too many open files");
  const failed = new Error("the beat thread failed", { cause: full });

  const told = describeStartFailure(failed);
  full.cause = failed;
  const round = describeStartFailure(failed);

  expect(told).toMatch(/^could not start: Error: the beat thread failed\n/);
  expect(told).toMatch(/\ncaused by Error: EMFILE: too many open files\n/);
  expect(round.split("caused by").length).toBeLessThan(6);
});

test("a Unix socket that is not there is told with what to look at", async () => {
  const url = "postgres:///millrace?user=u&host=/no/such/folder";
  const { now, close } = await openDatabase({ url });

  const error: unknown = await now().catch((refused: unknown) => refused);
  await close();

  expect(describeStartFailure(error)).toBe(
    "could not start: Postgres cannot be reached: connect ENOENT /no/such/folder/.s.PGSQL.5432. Does it run, and does DATABASE_URL say where?",
  );
});
