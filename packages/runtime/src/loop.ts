import type { Log } from "@millrace/telemetry";

export interface Loop {
  /** Runs the next round now, or right after the one under way. */
  wake(): void;
  /** Resolves once the round under way has ended; no other begins. */
  stop(): Promise<void>;
}

export interface LoopOptions {
  readonly name: string;
  readonly log: Log;
  /** Milliseconds to the next round: what the round says, at most `maxDelayMs`. */
  readonly maxDelayMs: number;
}

/**
 * Runs `round` again and again, one at a time. A round answers how long to wait for the next one; one
 * that throws is logged and tried again with a growing, jittered delay.
 */
export function startLoop(options: LoopOptions, round: () => Promise<number>): Loop {
  const { name, log, maxDelayMs } = options;
  let stopped = false;
  let failures = 0;
  let wakeSleeper: (() => void) | undefined;
  let woken = false;

  async function run(): Promise<void> {
    while (!stopped) {
      const delayMs = await attempt();
      if (!woken && !stopped) await sleep(Math.min(delayMs, maxDelayMs));
      woken = false;
    }
  }

  async function attempt(): Promise<number> {
    try {
      const delayMs = await round();
      if (failures > 0) log.info({ loop: name }, "works again");
      failures = 0;
      return delayMs;
    } catch (error) {
      failures += 1;
      if (failures === 1) log.warn({ loop: name, err: error }, "failed; trying again");
      return Math.min(100 * 2 ** failures, maxDelayMs) * (0.5 + Math.random() / 2);
    }
  }

  function sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, Math.max(0, ms));
      wakeSleeper = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  const running = run();
  return {
    wake() {
      woken = true;
      wakeSleeper?.();
    },
    async stop() {
      stopped = true;
      wakeSleeper?.();
      await running;
    },
  };
}
