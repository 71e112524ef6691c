import type { Usage } from "./counters.ts";
import type { Servers } from "./servers.ts";

/** What a workload is given: the servers, and how large it may be. */
export interface Bench {
  readonly servers: Servers;
  readonly isQuick: boolean;
  readonly minutes: number;
  readonly profileFolder: string | undefined;
  readonly showsStatements: boolean;
}

/** How one figure is read. */
export interface FigureRule {
  readonly unit: string;
  /** Whether more of it is better. */
  readonly isRate: boolean;
  /** A figure of the floors, as `bullmq.drain`, that it is set in relation to. */
  readonly floor?: string;
  /** What it is to reach, on two cores. */
  readonly target?: number;
  /** How many of the floor's unit go into one of the figure's: 1 when absent. */
  readonly perFloor?: number;
}

export interface Measured {
  /** By the names in `figures`. */
  readonly values: Readonly<Record<string, number>>;
  /** What the timed window cost, and how many steps, events or starts it is to be divided by. */
  readonly cost?: { readonly usage: Usage; readonly per: string; readonly count: number };
  readonly note?: string;
}

export interface Workload {
  readonly id: string;
  readonly title: string;
  readonly figures: Readonly<Record<string, FigureRule>>;
  /** Too long to be repeated: measured in the first round only. */
  readonly isOnce?: boolean;
  run(bench: Bench): Promise<Measured>;
}
