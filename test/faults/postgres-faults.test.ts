import { execFile } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { MillraceApiError } from "@millrace/client";
import { eventually, freeze, thaw } from "@millrace/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { cpuTaken } from "../support/cpu.ts";
import { openInstallation, type Installation } from "../support/installation.ts";
import { expectNothingLeft } from "../support/leftovers.ts";

let installation: Installation;
beforeAll(async () => {
  installation = await openInstallation({ ownPostgres: true, env: { MILLRACE_GRACE: "PT1S" } });
});
afterAll(() => installation?.close());

test("C27: statements cancelled and backends terminated under load leave no broken transaction in a pool", async () => {
  const { client, stack, query } = installation;
  await client.definitions.register({
    id: "c27",
    steps: [
      { stepId: "one", type: "TASK", taskId: "noop", transitions: { default: "two" } },
      { stepId: "two", type: "TASK", taskId: "noop" },
    ],
  });
  const disturbing = new AbortController();
  const disturb = (async () => {
    for (let round = 0; !disturbing.signal.aborted; round += 1) {
      const act = round % 5 === 0 ? "pg_terminate_backend" : "pg_cancel_backend";
      await query(
        `select ${act}(pid) from pg_stat_activity
         where application_name like 'millrace%' and state <> 'idle' and pid <> pg_backend_pid()
         order by random() limit 2`,
      ).catch(() => {});
      await sleep(10);
    }
  })();

  const accepted = new Set<string>();
  const refused: number[] = [];
  const lane = async (name: number) => {
    for (let index = 0; index < 30; index += 1) {
      const key = `c27-${name}-${index}`;
      // Twice at once under one key: the unique constraint is met, too.
      const twice = [1, 2].map(() =>
        client.instances.start({ workflowId: "c27" }, { idempotencyKey: key }).then(
          ({ id }) => void accepted.add(id),
          (error: unknown) => {
            if (!(error instanceof MillraceApiError)) throw error;
            refused.push(error.status);
          },
        ),
      );
      await Promise.all(twice);
    }
  };
  await Promise.all(Array.from({ length: 10 }, (_, name) => lane(name)));
  disturbing.abort();
  await disturb;

  expect(refused.filter((status) => status !== 503)).toEqual([]);
  expect(accepted.size).toBeLessThanOrEqual(300);
  await eventually(
    "every accepted start to complete",
    async () => {
      const [row] = await query<{ open: number }>(
        "select count(*)::int as open from workflow_instances where workflow_id = 'c27' and status <> 'COMPLETED'",
      );
      return row?.open === 0;
    },
    // Sooner than the rows are looked at whose jobs nobody came to add.
    { timeoutMs: 20_000, intervalMs: 250 },
  );
  const [stored] = await query<{ count: number }>(
    "select count(*)::int as count from workflow_instances where workflow_id = 'c27' and id = any($1::uuid[])",
    [[...accepted]],
  );
  expect(stored?.count).toBe(accepted.size);
  expect(installation.logs()).not.toContain("25P02");
  await eventually("the pool to be at rest", async () => {
    const text = await fetch(`${stack.apiUrl}/metrics`).then((response) => response.text());
    const state = (name: string) =>
      Number(
        new RegExp(`^millrace_pool_connections\\{state="${name}"\\} (\\d+)`, "m").exec(text)?.[1],
      );
    const [waiting, busy] = [state("waiting"), state("open") - state("idle")];
    // The answer itself may hold a connection.
    if (waiting === 0 && busy <= 1) return true;
    throw new Error(`${busy} connections are in use, ${waiting} calls wait`);
  });
  await expectNothingLeft(installation);
}, 180_000);

test("with Postgres away, Redis too, all processes wait without spinning, none ends, and the work goes on once they are back", async () => {
  const { client, stack } = installation;
  await client.definitions.register({
    id: "both_away",
    steps: [
      {
        stepId: "one",
        type: "TASK",
        taskId: "witness",
        input: { ms: 500 },
        transitions: { default: "two" },
      },
      { stepId: "two", type: "TASK", taskId: "noop" },
    ],
  });
  const starts = Array.from({ length: 10 }, () =>
    client.instances.start({ workflowId: "both_away" }),
  );
  const ids = (await Promise.all(starts)).map(({ id }) => id);
  const pids = stack.pids();

  await stack.postgres?.stop("immediate");
  await stack.redis?.stop("kill");
  const refused = await client.instances.get(ids[0] ?? "").catch((error: unknown) => error);
  const readiness = await client.readiness();
  const taken = await cpuTaken(Object.values(pids).flat(), 3_000);
  await stack.postgres?.restart();
  await stack.redis?.start();
  const ended = await Promise.all(
    ids.map((id) => client.instances.wait(id, { timeoutMs: 60_000 })),
  );

  expect(refused).toMatchObject({ status: 503 });
  expect(readiness).toMatchObject({
    status: "unavailable",
    checks: { postgres: { status: "down" }, redis: { status: "down" } },
  });
  expect(Math.max(0, ...taken)).toBeLessThan(1_500);
  expect(stack.pids()).toEqual(pids);
  expect(new Set(ended.map(({ status }) => status))).toEqual(new Set(["COMPLETED"]));
  await expectNothingLeft(installation);
}, 120_000);

test("while Postgres stands still no worker beats, and none of them counts as dead for it", async () => {
  const { client, query, ledger } = installation;
  ledger.clear();
  await client.definitions.register({
    id: "still",
    steps: [{ stepId: "nap", type: "TASK", taskId: "witness", input: { ms: 3_000 } }],
  });
  const starts = Array.from({ length: 12 }, () => client.instances.start({ workflowId: "still" }));
  const ids = (await Promise.all(starts)).map(({ id }) => id);
  // The first may have ended by the time the last begins.
  const begun = () => new Set(ledger.entries.map(({ instance }) => instance));
  await eventually("all to run", () => ids.every((id) => begun().has(id)), { timeoutMs: 60_000 });

  const pids = await postgresPids();
  for (const pid of pids) freeze(pid);
  await sleep(7_000);
  for (const pid of pids) thaw(pid);
  const ended = await Promise.all(
    ids.map((id) => client.instances.wait(id, { timeoutMs: 60_000 })),
  );

  expect(new Set(ended.map(({ status }) => status))).toEqual(new Set(["COMPLETED"]));
  const dead = await query(
    // What a worker could not let go of itself before it went on is taken from it, and counts for no death.
    `select s.path, l as lapse, (select jsonb_agg(to_jsonb(w)) from workers w) as workers
     from step_executions s cross join lateral jsonb_array_elements(coalesce(s.lapse_log, '[]')) l
     where s.instance_id = any ($1::uuid[]) and not exists (
       select from workers v
       where v.id = (l ->> 'workerId')::uuid and v.exit = 'went on under another id')`,
    [ids],
  );
  expect(dead).toEqual([]);
  await expectNothingLeft(installation);
}, 120_000);

test.each([
  {
    how: "is away",
    takeAway: async () => {
      await installation.stack.postgres?.stop("immediate");
      return () => installation.stack.postgres?.restart();
    },
  },
  {
    how: "stands still",
    takeAway: async () => {
      const pids = await postgresPids();
      for (const pid of pids) freeze(pid);
      return async () => pids.forEach(thaw);
    },
  },
])(
  "whoever is asked to end while Postgres $how exits 0, and others do what it could not hand over",
  async ({ how, takeAway }) => {
    const { client, stack, events, ledger } = installation;
    ledger.clear();
    const workflowId = `left_${how.replaceAll(" ", "_")}`;
    await client.definitions.register({
      id: workflowId,
      steps: [
        { stepId: "nap", type: "TASK", taskId: "witness", input: { ms: 5_000, stubborn: true } },
      ],
    });
    const { id } = await client.instances.start({ workflowId });
    await eventually("it to run", () => ledger.entries.length === 1);
    const pids = Object.values(stack.pids()).flat();

    const bringBack = await takeAway();
    for (const pid of pids) process.kill(pid, "SIGTERM");
    const exits = await eventually(
      "all to end",
      () => {
        const ended = events.filter(({ kind, pid }) => kind === "restarting" && pids.includes(pid));
        return ended.length === pids.length
          ? ended.map(({ name, exit }) => ({ name, exit }))
          : undefined;
      },
      { timeoutMs: 30_000 },
    );
    await bringBack();
    const isBack = () => client.instances.get(id).then(Boolean, () => false);
    await eventually("an API to answer again", isBack, { timeoutMs: 60_000 });
    const { status } = await client.instances.wait(id, { timeoutMs: 60_000 });

    for (const { name, exit } of exits) {
      expect({ name, exit }).toEqual({ name, exit: { code: 0, signal: null } });
    }
    expect(status).toBe("COMPLETED");
    await expectNothingLeft(installation);
  },
  120_000,
);

async function postgresPids(): Promise<readonly number[]> {
  const main = installation.stack.postgres?.pid ?? 0;
  const { stdout } = await promisify(execFile)("pgrep", ["-P", String(main)]);
  return [main, ...stdout.trim().split("\n").map(Number)];
}
