import { randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { MillraceApiError, MillraceClient } from "@millrace/client";
import { isSettled, type InstanceView, type WorkflowDefinition } from "@millrace/contract";
import { createDatabase, eventually } from "@millrace/testkit";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { align, type AlignOptions, type Race } from "../support/aligned.ts";
import { openGates } from "../support/gates.ts";
import { openInstallation, type Installation } from "../support/installation.ts";
import { expectNothingLeft } from "../support/leftovers.ts";
import { expectConsistent } from "../support/consistent.ts";

// Commit, then look, on both sides: whoever of the wait and the event commits second sees the first.
// The event and the wait go through processes of their own, and meet in the same milliseconds.

let installation: Installation;
let opener: MillraceClient;
let publisher: MillraceClient;
beforeAll(async () => {
  installation = await openInstallation({ apis: 2 });
  const [one, other] = installation.stack.apiUrls;
  opener = new MillraceClient({ baseUrl: one });
  publisher = new MillraceClient({ baseUrl: other });
});
afterAll(async () => {
  try {
    await expectConsistent(installation.stack.apiUrl);
  } finally {
    await installation?.close();
  }
});

const alignment: AlignOptions = { lanes: 4, staggerMs: [-2, -1, 0, 0, 0, 1, 2, 3] };

const condition = "event.payload.pair === workflow.input.pair";

/**
 * The wait, and after it a second one that the same event would satisfy too, were it delivered
 * twice: each instance must come to its end by the time-out of the second.
 */
const waits: WorkflowDefinition["steps"] = [
  {
    stepId: "first",
    type: "EVENT_WAIT",
    eventPattern: "pair.met",
    eventCondition: condition,
    lookback: "PT1M",
    transitions: { default: "second" },
  },
  {
    stepId: "second",
    type: "EVENT_WAIT",
    eventPattern: "pair.met",
    eventCondition: condition,
    lookback: "PT1M",
    eventTimeout: { duration: "PT1S", timeoutHandlerStepId: "once" },
    transitions: { default: "twice" },
  },
  { stepId: "twice", type: "END", outcome: "FAILED", error: { type: "Twice", message: "twice" } },
  { stepId: "once", type: "END", outcome: "COMPLETED", output: "${ steps.first.output.id }" },
];

test("200 starts whose first step waits, each against its event: none lost, none doubled", async ({
  annotate,
}) => {
  await opener.definitions.register({ id: "start_against_event", steps: waits });
  const delivered: number[] = [];
  const pairs = pairsOf(200);

  const races = pairs.map((pair): Race => ({
    open: () =>
      opener.instances.start({
        workflowId: "start_against_event",
        input: { pair },
        correlationId: "starts",
      }),
    publish: async () => delivered.push(await publish(pair)),
  }));
  await align(races, alignment);

  expect(await wrongPairs("starts", pairs)).toEqual([]);
  await expectNothingLeft(installation);
  await annotate(sidesOf(delivered));
}, 120_000);

test("200 results of tasks that open a wait, each against its event: none lost, none doubled", async ({
  annotate,
}) => {
  await opener.definitions.register({
    id: "result_against_event",
    steps: [
      { stepId: "gate", type: "TASK", taskId: "gate", transitions: { default: "first" } },
      ...waits.map((step) => ({
        ...step,
        ...("lookback" in step ? { lookback: "instance" } : {}),
      })),
    ] as WorkflowDefinition["steps"],
  });
  const gates = openGates(installation.ledger);
  const delivered: number[] = [];
  const pairs = pairsOf(200);

  for (let from = 0; from < pairs.length; from += 100) {
    const batch = pairs.slice(from, from + 100);
    const { results } = await opener.instances.startBatch(
      batch.map((pair) => ({
        workflowId: "result_against_event",
        input: { pair },
        correlationId: "results",
      })),
    );
    const ids = results.map(({ instance }) => instance?.id ?? "");
    await eventually("the tasks to stand at their gates", () => ids.every(gates.isWaiting), {
      timeoutMs: 60_000,
    });
    const races = batch.map((pair, index): Race => ({
      open: async () => gates.open(ids[index] ?? ""),
      publish: async () => delivered.push(await publish(pair)),
    }));
    // The result takes a few milliseconds from the gate to its commit.
    await align(races, { lanes: 4, staggerMs: [0, 0, 1, 2, 3, 4, 6, 8] });
  }

  expect(await wrongPairs("results", pairs)).toEqual([]);
  await expectNothingLeft(installation);
  await annotate(sidesOf(delivered));
}, 120_000);

test("the same alignment loses pairs when each side is one statement, and none when it looks after its commit", async ({
  annotate,
}) => {
  const database = await createDatabase();
  const openers = new pg.Pool({ connectionString: database.url, max: 8 });
  const publishers = new pg.Pool({ connectionString: database.url, max: 8 });
  try {
    await openers.query(scratchTables);
    const scratch = { openers, publishers };
    const pairs = pairsOf(600);
    await align(
      pairs.map((pair) => oneStatementEach(scratch, pair)),
      alignment,
    );
    const lostByOne = await unmatchedPairs(openers);
    await openers.query("truncate scratch.waits, scratch.events");
    await align(
      pairs.map((pair) => commitThenLook(scratch, pair)),
      alignment,
    );
    const lostByTwo = await unmatchedPairs(openers);

    expect(lostByOne).toBeGreaterThan(0);
    expect(lostByTwo).toBe(0);
    await annotate(`one statement a side loses ${lostByOne} of ${pairs.length} pairs`);
  } finally {
    await Promise.all([openers.end(), publishers.end()]);
    await database.drop();
  }
}, 60_000);

test("events against cancels: whichever an instance takes, nothing is left of the other", async () => {
  await opener.definitions.register({
    id: "cancel_against_event",
    steps: [
      {
        stepId: "only",
        type: "EVENT_WAIT",
        eventPattern: "pair.met",
        eventCondition: condition,
      },
    ],
  });
  const pairs = pairsOf(150);
  const { results } = await opener.instances.startBatch(
    pairs.map((pair) => ({ workflowId: "cancel_against_event", input: { pair } })),
  );

  const refusals: unknown[] = [];
  const races = pairs.map((pair, index): Race => ({
    open: () =>
      opener.instances
        .cancel(results[index]?.instance?.id ?? "")
        .catch((error: unknown) => refusals.push(error)),
    publish: () => publish(pair),
  }));
  // An event is stored before it is matched: the cancel comes a little later.
  await align(races, { lanes: 4, staggerMs: [-12, -9, -7, -5, -3, -1] });

  // Refused are those that the event had completed before, and for no other reason.
  expect(refusals.filter((error) => !isConflict(error))).toEqual([]);
  await expectNothingLeft(installation);
}, 120_000);

function isConflict(error: unknown): boolean {
  return error instanceof MillraceApiError && error.status === 409;
}

function pairsOf(count: number): readonly string[] {
  const run = randomUUID();
  return Array.from({ length: count }, (_, index) => `${run}-${index}`);
}

async function publish(pair: string): Promise<number> {
  const event = { id: `event-${pair}`, pattern: "pair.met", payload: { pair } };
  return (await publisher.events.publish(event)).delivered;
}

/** The pairs whose wait did not get its event, or got it twice, each with how its instance ended. */
async function wrongPairs(correlationId: string, pairs: readonly string[]) {
  const ended = await eventually(
    "the end of every instance",
    async () => {
      const instances: InstanceView[] = [];
      for await (const each of opener.instances.each({ correlationId })) instances.push(each);
      const open = instances.filter(({ status }) => status === "WAITING_FOR_EVENT");
      const isOver = instances.length === pairs.length && open.length === 0;
      return isOver && instances.every(isSettled) ? instances : undefined;
    },
    { timeoutMs: 60_000, intervalMs: 500 },
  );
  const met = new Map(
    ended.map(({ input, status, output }) => [(input as { pair: string }).pair, [status, output]]),
  );
  return pairs
    .filter((pair) => !isDeepStrictEqual(met.get(pair), ["COMPLETED", `event-${pair}`]))
    .map((pair) => [pair, met.get(pair)]);
}

function sidesOf(delivered: readonly number[]): string {
  const atOnce = delivered.filter((count) => count === 1).length;
  return `${atOnce} events found the wait, ${delivered.length - atOnce} waits found the event`;
}

const scratchTables = `
  create schema scratch;
  create table scratch.waits (like waits including all);
  create table scratch.events (like events including all);
`;

interface Scratch {
  readonly openers: pg.Pool;
  readonly publishers: pg.Pool;
}

const insertEvent = `
  insert into scratch.events
    (tenant_id, id, pattern, payload, occurred_at, received_at, actor)
    values ('t', $1, 'pair.met', jsonb_build_object('pair', $1::text), now(), now(), 'test')
    returning id`;
const insertWait = (matched: string) => `
  insert into scratch.waits
    (tenant_id, instance_id, path, iteration, purpose, pattern, event_paths, key_hash, deliver,
     opened_at, looked_back, matched_event_id)
    values ('t', gen_random_uuid(), $1, 1, 'STEP', 'pair.met', 'payload.pair', hashtextextended($1, 0),
      'ALL', now(), true, ${matched})`;
const pastEvent = `
  select id from scratch.events
  where tenant_id = 't' and pattern = 'pair.met' and payload @> jsonb_build_object('pair', $1::text)`;
const markWaits = (event: string) => `
  update scratch.waits set matched_event_id = ${event}, matched_at = now()
  where tenant_id = 't' and pattern = 'pair.met' and event_paths = 'payload.pair'
    and key_hash = hashtextextended($1, 0) and matched_event_id is null`;

/** What looks atomic and is not: each statement sees only what was committed before it began. */
function oneStatementEach({ openers, publishers }: Scratch, pair: string): Race {
  return {
    open: () => openers.query(insertWait(`(${pastEvent})`), [pair]),
    publish: () =>
      publishers.query(
        `with published as (${insertEvent}) ${markWaits("(select id from published)")}`,
        [pair],
      ),
  };
}

function commitThenLook({ openers, publishers }: Scratch, pair: string): Race {
  return {
    open: async () => {
      await openers.query(insertWait("null"), [pair]);
      await openers.query(
        `update scratch.waits set matched_event_id = (${pastEvent})
         where path = $1 and matched_event_id is null`,
        [pair],
      );
    },
    publish: async () => {
      await publishers.query(insertEvent, [pair]);
      await publishers.query(markWaits("$1"), [pair]);
    },
  };
}

async function unmatchedPairs(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query<{ lost: number }>(
    "select count(*)::int as lost from scratch.waits where matched_event_id is null",
  );
  return rows[0]?.lost ?? 0;
}
