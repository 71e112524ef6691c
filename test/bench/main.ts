import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { closeOnSignal } from "@millrace/devstack";
import { readArguments, usage } from "./arguments.ts";
import type { Arguments } from "./arguments.ts";
import { measureFloors } from "./floors.ts";
import { growth } from "./growth.ts";
import { describeMachine } from "./machine.ts";
import { memory } from "./memory.ts";
import { pure } from "./pure.ts";
import { printFloors, printWorkload, resultsOf } from "./report.ts";
import type { Round } from "./report.ts";
import { openServers } from "./servers.ts";
import type { Servers } from "./servers.ts";
import { steady } from "./steady.ts";
import { streams } from "./streams.ts";
import { drains } from "./w1-drain.ts";
import { latency } from "./w2-latency.ts";
import { batchStarts, singleStarts } from "./w2-starts.ts";
import { chains } from "./w3-chain.ts";
import { fanOuts } from "./w4-fanout.ts";
import { events } from "./w5-events.ts";
import { oneEvent } from "./w5b-one-event.ts";
import { sleeps } from "./w6-sleeps.ts";
import { kills } from "./w7-kill.ts";
import type { Measured, Workload } from "./workload.ts";

/** In the order in which they run. */
const workloads: readonly Workload[] = [
  pure,
  ...drains,
  latency,
  singleStarts,
  batchStarts,
  ...chains,
  ...fanOuts,
  events,
  oneEvent,
  ...sleeps,
  ...kills,
  memory,
  streams,
  ...growth,
  steady,
];

/** Left out unless asked for: they say little that the others do not. */
const onDemand: readonly string[] = [
  "W1X4",
  "W1L",
  "W1X2L",
  "W1X4L",
  "W3L",
  "W4L",
  "GROWTHL",
  "STEADY",
];

const resultsFile = fileURLToPath(new URL("../../../bench/results.json", import.meta.url));

try {
  await main(readArguments(process.argv.slice(2)));
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n${usage}\n`);
  process.exitCode = 1;
}

async function main(wanted: Arguments): Promise<void> {
  const chosen = choose(wanted.only);
  const servers = await openServers(wanted);
  const stopListening = closeOnSignal(servers.close);
  try {
    const machine = await describeMachine(servers);
    const rounds: Round[] = [];
    for (let number = 1; number <= wanted.runs; number++) {
      rounds.push(await runRound(servers, wanted, chosen, number));
    }
    printFloors(machine, rounds);
    for (const workload of chosen) printWorkload(workload, rounds);
    mkdirSync(dirname(resultsFile), { recursive: true });
    const results = resultsOf(machine, chosen, rounds, wanted.isQuick);
    writeFileSync(resultsFile, `${JSON.stringify(results, undefined, 2)}\n`);
    const failed = rounds.some(({ measured }) =>
      [...measured.values()].some((run) => run instanceof Error),
    );
    if (failed) process.exitCode = 1;
  } finally {
    stopListening();
    await servers.close();
  }
}

/** @throws Error when an id is none. */
function choose(only: readonly string[]): readonly Workload[] {
  const known = workloads.map(({ id }) => id);
  const unknown = only.filter((id) => !known.includes(id) && id !== "FLOORS");
  if (unknown.length > 0) {
    throw new Error(`no workload ${unknown.join(", ")}; there are FLOORS, ${known.join(", ")}`);
  }
  return only.length === 0
    ? workloads.filter(({ id }) => !onDemand.includes(id))
    : workloads.filter(({ id }) => only.includes(id));
}

/** Floors and workloads in turn, so that a round sees the machine in one mood. */
async function runRound(
  servers: Servers,
  { isQuick, runs, minutes, profileFolder, showsStatements, skipsFloors }: Arguments,
  chosen: readonly Workload[],
  number: number,
): Promise<Round> {
  if (!skipsFloors) say(`round ${number} of ${runs}: floors`);
  const floors = skipsFloors ? {} : await measureFloors(servers, isQuick);
  const measured = new Map<string, Measured | Error>();
  for (const workload of chosen) {
    if (workload.isOnce === true && number > 1) continue;
    say(`round ${number} of ${runs}: ${workload.id}`);
    const run = workload.run({ servers, isQuick, minutes, profileFolder, showsStatements });
    const result = await run.catch((error: unknown) =>
      error instanceof Error ? error : new Error(String(error)),
    );
    measured.set(workload.id, result);
  }
  return { floors, measured };
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
