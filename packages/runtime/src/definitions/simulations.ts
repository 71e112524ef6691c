import type { SimulationResult } from "@millrace/engine";
import { SimulationsBusyError } from "../errors.ts";
import { openSimulationThreads } from "./simulation-threads.ts";
import type { SimulationPlan, SimulationThreads } from "./simulation-threads.ts";

/** The simulations of a process: few at once, and few that wait for their turn. */
export interface Simulations {
  /**
   * @returns Undefined where it takes more than a simulation may.
   * @throws SimulationsBusyError, SimulationNotBegunError
   */
  run(plan: SimulationPlan): Promise<SimulationResult | undefined>;
  /** Ends those that run; those that wait, and all that come later, are refused. */
  close(): Promise<void>;
}

const mostAtOnce = 2;
const mostWaiting = 8;

export function openSimulations(threads: SimulationThreads = openSimulationThreads()): Simulations {
  /** Each is handed the place of one that ends. */
  const waiting: (() => void)[] = [];
  let taken = 0;
  let isClosed = false;

  async function takePlace(): Promise<void> {
    if (taken < mostAtOnce) {
      taken++;
      return;
    }
    if (waiting.length >= mostWaiting) throw new SimulationsBusyError(taken + waiting.length);
    await new Promise<void>((resolve) => waiting.push(resolve));
  }

  function leavePlace(): void {
    const next = waiting.shift();
    if (next === undefined) taken--;
    else next();
  }

  return {
    async run(plan) {
      await takePlace();
      try {
        if (isClosed) throw new SimulationsBusyError(taken + waiting.length);
        return await threads.run(plan);
      } finally {
        leavePlace();
      }
    },
    async close() {
      isClosed = true;
      await threads.close();
    },
  };
}
