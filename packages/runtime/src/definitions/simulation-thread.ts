import { parentPort } from "node:worker_threads";
import { compileCalendar, compileDefinition, simulate } from "@millrace/engine";
import type { SimulationPlan } from "./simulation-threads.ts";

/** A thread that simulates, one plan after the other; it loads the engine and nothing else. */

parentPort?.on("message", ({ document, version, scenario, calendars }: SimulationPlan) => {
  const compiled = calendars.map((each) =>
    compileCalendar(each.document, each.version, each.holidays),
  );
  const known = new Map(compiled.map((calendar) => [calendar.id, calendar]));
  parentPort?.postMessage(simulate(compileDefinition(document, version), scenario, known));
});

parentPort?.postMessage("loaded");
