import { parentPort, workerData } from "node:worker_threads";
import { compileCalendar, compileDefinition, simulate } from "@millrace/engine";
import type { SimulationPlan, SimulationThreadData } from "./simulation-threads.ts";

/**
 * A thread that simulates, one plan after the other; it loads the engine and nothing else. It ends instead of
 * answering where the answer is too large.
 */

const { mostCharacters } = workerData as SimulationThreadData;

parentPort?.on("message", ({ document, version, scenario, calendars }: SimulationPlan) => {
  const compiled = calendars.map((each) =>
    compileCalendar(each.document, each.version, each.holidays),
  );
  const known = new Map(compiled.map((calendar) => [calendar.id, calendar]));
  const result = simulate(compileDefinition(document, version), scenario, known);
  // A text that a thousand items share is one here, and a thousand where it arrives.
  if (charactersLeft(result, mostCharacters) < 0) process.exit();
  parentPort?.postMessage(result);
});

parentPort?.postMessage("loaded");

/** Of so many, once the value is written as JSON, quotes and the like left out; below 0 it may stop counting. */
function charactersLeft(value: unknown, most: number): number {
  if (typeof value === "string") return most - value.length;
  if (typeof value !== "object" || value === null) return most;
  let left = most;
  for (const [key, each] of Object.entries(value)) {
    left = charactersLeft(each, left - key.length);
    if (left < 0) break;
  }
  return left;
}
