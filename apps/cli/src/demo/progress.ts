import { type InstanceView, isSettled } from "@millrace/contract";
import type { Output } from "../output.ts";
import { table } from "../table.ts";
import { ORDER_PATHS, type OrderPath, orderPaths } from "./orders.ts";

/** Shows how far the orders are: a table drawn again in a terminal, a line now and then elsewhere. */
export interface Progress {
  show(instances: ReadonlyMap<string, InstanceView>): void;
  /** Shows the last state, and leaves it on the terminal. */
  close(instances: ReadonlyMap<string, InstanceView>): void;
}

export interface ProgressOptions {
  readonly output: Output;
  readonly total: number;
  /** By instance; instances of other paths are not counted. */
  readonly pathOf: (instance: InstanceView) => OrderPath | undefined;
  /** Milliseconds; its origin does not matter. */
  readonly clock: () => number;
}

const PHASES = ["running", "waiting", "undoing", "ended"] as const;
type Phase = (typeof PHASES)[number];

/** Between lines where nothing is drawn again. */
const LINE_INTERVAL_MS = 1_000;

export function openProgress({ output, total, pathOf, clock }: ProgressOptions): Progress {
  const began = clock();
  let drawn = 0;
  let lastLine = "";
  let lastLineAt = Number.NEGATIVE_INFINITY;

  const drawTable = (instances: ReadonlyMap<string, InstanceView>) => {
    const lines = tableLines(output, instances, pathOf);
    const seconds = ((clock() - began) / 1_000).toFixed(1);
    const all = [
      `${sentence([...instances.values()].map(phaseOf), total)} (${seconds} s)`,
      ...lines,
    ];
    const back = drawn > 0 ? `\u001b[${drawn}A\u001b[0J` : "";
    output.draw(`${back}${all.join("\n")}\n`);
    drawn = all.length;
  };
  const printLine = (instances: ReadonlyMap<string, InstanceView>) => {
    const line = sentence([...instances.values()].map(phaseOf), total);
    if (line === lastLine || clock() - lastLineAt < LINE_INTERVAL_MS) return;
    output.note(`${((clock() - began) / 1_000).toFixed(1).padStart(5)} s  ${line}`);
    lastLine = line;
    lastLineAt = clock();
  };
  // What has scrolled out of a small terminal cannot be drawn again.
  const isDrawn = output.isTerminal && output.columns >= 80 && output.rows > orderPaths.length + 4;
  const show = isDrawn ? drawTable : printLine;
  return {
    show,
    close: (instances) => {
      lastLineAt = Number.NEGATIVE_INFINITY;
      show(instances);
    },
  };
}

function tableLines(
  output: Output,
  instances: ReadonlyMap<string, InstanceView>,
  pathOf: ProgressOptions["pathOf"],
): readonly string[] {
  const byPath = new Map<OrderPath, Phase[]>();
  for (const instance of instances.values()) {
    const path = pathOf(instance);
    if (path !== undefined) byPath.set(path, [...(byPath.get(path) ?? []), phaseOf(instance)]);
  }
  const rows = orderPaths
    .filter((path) => byPath.has(path))
    .map((path) => {
      const phases = byPath.get(path) ?? [];
      const isDone = phases.every((phase) => phase === "ended");
      const figures = PHASES.map((phase) => count(phases, phase) || "·").map(String);
      const { title } = ORDER_PATHS[path];
      return [isDone ? output.paint("green", title) : title, String(phases.length), ...figures];
    });
  const header = ["ORDERS THAT ARE …", "ALL", ...PHASES.map((phase) => phase.toUpperCase())];
  return table(header, rows, header.slice(1));
}

/** `50 of 50 orders started: 3 running, 12 waiting, 1 undoing, 34 ended`. */
function sentence(phases: readonly Phase[], total: number): string {
  const figures = PHASES.map((phase) => `${count(phases, phase)} ${phase}`);
  return `${phases.length} of ${total} orders started: ${figures.join(", ")}`;
}

function count(phases: readonly Phase[], phase: Phase): number {
  return phases.filter((each) => each === phase).length;
}

function phaseOf(instance: InstanceView): Phase {
  if (isSettled(instance)) return "ended";
  if (instance.compensation !== null || instance.status === "CANCELLED") return "undoing";
  return instance.status === "WAITING_FOR_EVENT" ? "waiting" : "running";
}
