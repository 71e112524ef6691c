import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { closeOnSignal } from "@millrace/devstack";
import { eventually } from "@millrace/testkit";
import type { LedgerEntry } from "@millrace/testkit";
import { expectConsistent } from "../support/consistent.ts";
import { expectNothingLeft } from "../support/leftovers.ts";
import { readArguments, usage, type Arguments } from "./arguments.ts";
import { openClient, type LoggingClient } from "./client.ts";
import { collect, collectSchedules } from "./collect.ts";
import { DEFINITIONS } from "./definitions.ts";
import { inject, planFaults, type Group } from "./faults.ts";
import { follow } from "./follow.ts";
import { runLoad } from "./load.ts";
import { crowd, planLoad } from "./load-plan.ts";
import { judge, type Violation } from "./oracle.ts";
import type { FaultRecord, RequestRecord, RunRecord } from "./record.ts";
import { report, reportAll, type Summary } from "./report.ts";
import { openRig, type Rig } from "./rig.ts";
import { planSchedules, runSchedules } from "./schedules.ts";
import { watch } from "./watch.ts";

/**
 * The chaos run: for each group of faults a Millrace of its own, under load, while its servers and
 * processes are stopped and killed; then the oracle says whether what was promised has held.
 */

/** For the load to come to rest when the faults are over. Generous: only an end is asked for. */
const restMs = 180_000;

let wanted: Arguments;
try {
  wanted = readArguments(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n${usage}\n`);
  process.exit(2);
}

const open = new Set<Rig>();
closeOnSignal(async () => {
  await Promise.all([...open].map((rig) => rig.close({ isKept: wanted.isKept })));
});
const summaries: Summary[] = [];
for (const group of wanted.groups) summaries.push(await runGroup(group, wanted));
process.stdout.write(reportAll(wanted, summaries));
process.exit(summaries.some(({ violations }) => violations.length > 0) ? 1 : 0);

async function runGroup(group: Group, options: Arguments): Promise<Summary> {
  const { seed, minutes, rate, workers } = options;
  const durationMs = minutes * 60_000;
  const lanes = planFaults(seed, group, durationMs);
  const cases = planLoad(seed, durationMs, rate);
  say(
    `${group}: seed ${seed}, ${minutes} minutes, ${lanes.flat().length} faults, ${cases.length} instances`,
  );

  const rig = await openRig({ workers, isDurable: !options.isQuick });
  open.add(rig);
  let isKept = true;
  try {
    const requests: RequestRecord[] = [];
    const faults: FaultRecord[] = [];
    const deadline = performance.now() + durationMs + restMs;
    const client = openClient({
      apiUrls: rig.stack.apiUrls,
      log: (request) => requests.push(request),
      deadline: () => deadline,
    });
    await registerAll(client);
    await setLimit(client);

    const ending = new AbortController();
    const watching = watch(client, ending.signal);
    const following = follow(rig.stack.apiUrls, ending.signal);
    const schedules = planSchedules(seed, Date.now(), durationMs);
    const ticking = runSchedules(schedules, { client, seed, deadline: () => deadline });
    const load = runLoad(cases, {
      client,
      durationMs,
      deadline: () => deadline,
      signal: new AbortController().signal,
    });
    const injecting = inject(
      lanes,
      rig.stack,
      (fault) => faults.push(fault),
      AbortSignal.timeout(durationMs),
    );
    await injecting;
    say(`${group}: faults are over; coming to rest`);
    await Promise.all([load, ticking]);
    const leaks = await leaksOf(rig);
    const damage = await damageOf(rig);
    const instances = await collect(rig.stack.apiUrl);
    const streamed = await following.read(instances);
    ending.abort();
    await watching;

    const record: RunRecord = {
      cases,
      requests: requests.toSorted((a, b) => a.sentAt - b.sentAt),
      entries: await entriesAtRest(rig),
      faults: faults.toSorted((a, b) => a.at - b.at),
      instances,
      schedules: await collectSchedules(rig.stack.apiUrl, schedules),
      streamed,
    };
    const violations = [...judge(record), ...leaks, ...damage];
    isKept = options.isKept || violations.length > 0;
    if (isKept) writeFileSync(join(rig.folder, "record.json"), JSON.stringify(record));
    const summary = { group, record, violations };
    process.stdout.write(report(summary));
    return summary;
  } finally {
    open.delete(rig);
    const kept = await rig.close({ isKept });
    if (kept) say(`${group}: logs, data and record.json are in ${kept}`);
  }
}

async function registerAll(client: LoggingClient): Promise<void> {
  for (const definition of DEFINITIONS) {
    const answer = await client.insist({
      operation: "register",
      method: "PUT",
      path: `/v1/definitions/${definition.id}`,
      subject: definition.id,
      body: definition,
    });
    if (!answer || answer.status >= 300) {
      throw new Error(`${definition.id} was refused: ${JSON.stringify(answer?.body)}`);
    }
  }
}

async function setLimit(client: LoggingClient): Promise<void> {
  const id = `user:${crowd.userId}`;
  const answer = await client.insist({
    operation: "limit",
    method: "PUT",
    path: `/v1/limits/${id}`,
    subject: id,
    body: { limit: crowd.limit },
  });
  if (!answer || answer.status >= 300) {
    throw new Error(`the limit ${id} was refused: ${JSON.stringify(answer?.body)}`);
  }
  // Until each process has heard of it.
  await sleep(2_000);
}

/** Tasks that go on when nobody wants them any more may still have something to tell. */
async function entriesAtRest({ ledger }: Rig): Promise<readonly LedgerEntry[]> {
  let entries = await ledger.entries();
  for (;;) {
    await sleep(1_000);
    const later = await ledger.entries();
    if (later.length === entries.length) return later;
    entries = later;
  }
}

async function leaksOf({ stores }: Rig): Promise<readonly Violation[]> {
  try {
    await expectNothingLeft(stores, { alsoOfTheDead: true });
    return [];
  } catch (error) {
    return [{ promise: "leaks", what: error instanceof Error ? error.message : String(error) }];
  }
}

/** What Millrace itself finds when it looks: beside the oracle, which does not go by it. */
async function damageOf({ stack }: Rig): Promise<readonly Violation[]> {
  try {
    // The last fault may have been its death.
    await eventually("an API that answers", () => isUp(stack.apiUrl), { timeoutMs: 60_000 });
    await expectConsistent(stack.apiUrl, Number.POSITIVE_INFINITY);
    return [];
  } catch (error) {
    return [
      { promise: "consistency", what: error instanceof Error ? error.message : String(error) },
    ];
  }
}

async function isUp(apiUrl: string): Promise<boolean> {
  return fetch(`${apiUrl}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  );
}

function say(line: string): void {
  process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${line}\n`);
}
