import { setTimeout as sleep } from "node:timers/promises";
import {
  differencesOf,
  driveOrder,
  openWatch,
  planOrders,
  readOrderDefinition,
  type Order,
  type Outcome,
  type Watch,
} from "@millrace/cli/demo";
import { MillraceClient } from "@millrace/client";
import type { InstanceView } from "@millrace/contract";
import { eventually, type LedgerEntry } from "@millrace/testkit";
import { expect } from "vitest";
import type { Installation } from "./installation.ts";
import { expectNothingLeft } from "./leftovers.ts";

/**
 * The demo's load: orders over every path, driven over HTTP by a caller who does not give up, and
 * judged by the demo's own checker and by the ledger.
 */
export interface OrderLoad {
  /** Waits until so many runs of tasks have been told to the ledger since the load began. */
  underWay(runs: number): Promise<void>;
  /** Waits for the end of every order and judges all of it. */
  finish(): Promise<LoadReport>;
}

export interface LoadReport {
  readonly outcomes: readonly Outcome[];
  /** Runs of a task beyond the first of the same attempt. */
  readonly reruns: number;
  /** Orders whose shipment's outcome a death left unknown. */
  readonly uncertain: number;
  readonly entries: readonly LedgerEntry[];
}

/** For one order to reach the next point of its path; never part of what is asserted. */
const patienceMs = 120_000;

export async function startOrders(
  installation: Installation,
  { run, count = 50 }: { readonly run: string; readonly count?: number },
): Promise<OrderLoad> {
  const { stack, ledger } = installation;
  const lostAnswers = new Set<string>();
  const client = new MillraceClient({
    baseUrl: stack.apiUrl,
    fetch: persistentFetch(lostAnswers),
    timeoutMs: patienceMs,
  });
  await client.definitions.register(await readOrderDefinition());
  const from = ledger.entries.length;

  const watch = openWatch({ client, correlationId: run, timeoutMs: patienceMs });
  const judged = { ...watch, until: withoutRecords(watch) };
  const driven = Promise.all(
    planOrders(count, { run }).map((order) =>
      driveOrder(order, { client, watch: judged, correlationId: run }),
    ),
  ).finally(() => void watch.close());

  return {
    async underWay(runs) {
      await eventually(`${runs} runs of tasks`, () => ledger.entries.length - from >= runs, {
        timeoutMs: patienceMs,
        intervalMs: 5,
      });
    },
    async finish() {
      const outcomes = await driven;
      const instances = new Map<string, InstanceView>();
      for await (const each of client.instances.each({ correlationId: run })) {
        instances.set(each.id, each);
      }
      const entries = ledger.entries.slice(from);
      const judgements = outcomes.map((outcome) => judge(outcome, lostAnswers, entries));
      const faults = [
        ...judgements.flatMap(({ order, differences }) =>
          differences.map((difference) => `${order.orderId}: ${difference}`),
        ),
        ...ledgerFaults(entries, [...instances.values()]),
        ...(await historyFaults(installation, [...instances.keys()])),
      ];
      expect(faults).toEqual([]);
      expect(instances.size).toBe(count);
      await expectNothingLeft(installation, { alsoOfTheDead: true });
      return {
        outcomes,
        reruns: entries.filter(({ details }) => Number(details["deliveries"]) > 1).length,
        uncertain: judgements.filter(({ isUncertain }) => isUncertain).length,
        entries,
      };
    },
  };
}

/**
 * Repeats what found no server, or one that was not able; every request of the load may be repeated,
 * since it carries an idempotency key or an event's id. Notes the events whose first answer was lost:
 * the repeated one says `duplicate`, and not what the event met.
 */
function persistentFetch(lostAnswers: Set<string>): typeof fetch {
  return async (input, init) => {
    const end = performance.now() + patienceMs;
    for (let attempt = 1; ; attempt += 1) {
      try {
        const response = await fetch(input, init);
        // The body is part of the answer: a server may die in the middle of it.
        const text = await response.text();
        if (response.status < 500 || performance.now() > end) return answerOf(response, text);
      } catch (error) {
        if (init?.signal?.aborted || performance.now() > end) throw error;
      }
      if (
        typeof init?.body === "string" &&
        typeof input === "string" &&
        input.endsWith("/v1/events")
      ) {
        lostAnswers.add(
          (JSON.parse(init.body) as { payload: { orderId: string } }).payload.orderId,
        );
      }
      await sleep(Math.min(50 * attempt, 500));
    }
  };
}

function answerOf({ status, headers }: Response, text: string): Response {
  const isEmpty = status === 204 || status === 304;
  return new Response(isEmpty ? null : text, { status, headers });
}

/** The checker compares outputs word for word; the number of the ledger's record is ours. */
function withoutRecords(watch: Watch): Watch["until"] {
  return async (...wanted) => stripped(await watch.until(...wanted));
}

function stripped(instance: InstanceView): InstanceView {
  const copy = structuredClone(instance);
  const steps = Object.values(copy.state.steps);
  for (const { output } of [...steps, ...Object.values(copy.compensation?.steps ?? {})]) {
    if (isRecorded(output)) delete output.record;
  }
  if (isRecorded(copy.output)) delete copy.output.record;
  return copy;
}

function isRecorded(output: unknown): output is { record?: number } {
  return typeof output === "object" && output !== null && "record" in output;
}

interface Judgement {
  readonly order: Order;
  readonly differences: readonly string[];
  readonly isUncertain: boolean;
}

function judge(
  { order, instance, faults }: Outcome,
  lostAnswers: ReadonlySet<string>,
  entries: readonly LedgerEntry[],
): Judgement {
  const left = lostAnswers.has(order.orderId)
    ? faults.filter((fault) => !fault.startsWith("the answer to "))
    : faults;
  if (left.length === 0 || !diedWhileShipping(order, instance, entries)) {
    return { order, differences: left, isUncertain: false };
  }
  // The worker that shipped has died after the cancel: nobody knows whether the parcel went out. It
  // is then as if the shipment had been broken off, and the instance says that this is not certain.
  const { compensation } = instance;
  const path = order.path === "cancelled_after_handover" ? "cancelled_before_handover" : order.path;
  const certain = { ...instance, compensation: { ...compensation, uncertain: [] } };
  return { order, differences: differencesOf({ ...order, path }, certain), isUncertain: true };
}

function diedWhileShipping(
  order: Order,
  instance: InstanceView | undefined,
  entries: readonly LedgerEntry[],
): instance is InstanceView & { compensation: NonNullable<InstanceView["compensation"]> } {
  if (!order.path.startsWith("cancelled_") && order.path !== "refund_failed") return false;
  const { uncertain = [] } = instance?.compensation ?? {};
  if (uncertain.length !== 1 || uncertain[0] !== "ship_order") return false;
  return !entries.some(
    ({ instance: id, step, details }) =>
      id === instance?.id && step === "ship_order" && details["kind"] === "outcome",
  );
}

/** Where the ledger and the API do not tell the same story. */
function ledgerFaults(
  entries: readonly LedgerEntry[],
  instances: readonly InstanceView[],
): readonly string[] {
  const bySeq = new Map(entries.map((entry) => [entry.seq, entry]));
  const faults: string[] = [];
  for (const { id, state, compensation } of instances) {
    const steps = { ...state.steps, ...compensation?.steps };
    for (const [stepId, { status, output }] of Object.entries(steps)) {
      const told = entries.filter(({ instance, step }) => instance === id && step === stepId);
      const keys = new Set(told.map(({ idempotencyKey }) => idempotencyKey));
      if (keys.size > 1) faults.push(`${id} ${stepId} ran under the keys ${[...keys].join(", ")}`);
      if (status !== "COMPLETED" || !isRecorded(output)) continue;
      const record = bySeq.get(output.record ?? 0);
      const isRight =
        record?.instance === id && record.step === stepId && record.details["kind"] === "outcome";
      if (!isRight) faults.push(`${id} ${stepId} names the record ${output.record}, not its own`);
    }
  }
  const keys = new Map<string, string>();
  for (const { instance, step, idempotencyKey } of entries) {
    const owner = keys.get(idempotencyKey) ?? `${instance} ${step}`;
    keys.set(idempotencyKey, owner);
    if (owner !== `${instance} ${step}`) {
      faults.push(`${owner} and ${instance} ${step} ran under the same key`);
    }
  }
  return faults;
}

/** Executions that history shows to have ended more than once, or with two outputs. */
async function historyFaults(
  { query }: Installation,
  instanceIds: readonly string[],
): Promise<readonly string[]> {
  const rows = await query<{ instance_id: string; path: string; times: string }>(
    `select instance_id, signal->>'path' as path, signal->>'iteration' as iteration, count(*) as times
     from history, json_array_elements(signals) as signal
     where instance_id = any($1::uuid[]) and signal->>'kind' = 'stepSucceeded'
     group by 1, 2, 3 having count(*) > 1`,
    [instanceIds],
  );
  return rows.map(
    ({ instance_id, path, times }) => `${instance_id} ${path} has succeeded ${times} times`,
  );
}
