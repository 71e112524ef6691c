import type { Json } from "@millrace/expressions";
import type { Decision, ExecutionUpdate, NewExecution } from "../../src/state/decision.ts";
import type { TaskFailure } from "../../src/state/signal.ts";
import type { Snapshot } from "../../src/state/snapshot.ts";
import { executionKey } from "../../src/state/snapshot.ts";
import { attemptsMade } from "../../src/decide/step-views.ts";
import { noon } from "./simulation.ts";
import type { Firing, Simulation } from "./simulation.ts";

/** A run told as prose: what happens, what follows from it, how it ends. */
export interface Narrator {
  start(): void;
  wait(duration: string): void;
  take(stepId: string): void;
  succeed(stepId: string, output?: Json): void;
  fail(stepId: string, failure: Partial<TaskFailure>): void;
  publish(pattern: string, payload: Json): void;
  lookBack(): void;
  cancel(reason: string): void;
  /** The whole text. */
  end(): string;
}

export function narrate(title: string, simulation: Simulation): Narrator {
  const lines = [title, ""];

  function tell(what: string, decision: Decision | undefined, at = simulation.now): void {
    const rows = decision === undefined ? [] : consequences(decision);
    const follows = rows.length === 0 ? "nothing changes" : rows.join(", ");
    const state = statusOf(decision?.snapshot ?? simulation.snapshot);
    lines.push(`${clock(at)}  ${what} → ${follows}; ${state}`);
  }

  return {
    start: () => tell("the instance starts", simulation.start()),
    wait(duration) {
      for (const { timer, decision } of simulation.elapse(duration)) {
        tell(dueText(timer), decision, timer.dueAt);
      }
    },
    take(stepId) {
      simulation.claim(stepId);
      lines.push(`${clock(simulation.now)}  a worker takes ${stepId}`);
    },
    succeed: (stepId, output) => tell(`${stepId} succeeds`, simulation.succeed(stepId, output)),
    fail(stepId, failure) {
      const final = failure.retryable === false ? ", for which no retry helps" : "";
      tell(`${stepId} fails with ${failure.type}${final}`, simulation.fail(stepId, failure));
    },
    publish(pattern, payload) {
      tell(`${pattern} ${JSON.stringify(payload)} arrives`, simulation.publish(pattern, payload));
    },
    lookBack: () => tell("the wait looks for earlier events", simulation.lookBack()),
    cancel: (reason) => tell(`a cancel is asked for, "${reason}"`, simulation.cancel(reason)),
    end: () => `${[...lines, "", ...ending(simulation)].join("\n")}\n`,
  };
}

function consequences({ inserts, updates, commands }: Decision): readonly string[] {
  const rows: readonly (ExecutionUpdate | NewExecution)[] = [...updates, ...inserts];
  return rows.map((row) => {
    const details = [statusText(row)];
    for (const command of commands) {
      if (command.kind !== "setTimer" || command.path !== row.path) continue;
      details.push(`${timerText[command.timer]} ${clock(command.dueAt)}`);
    }
    if ("compensates" in row && row.compensates !== null) {
      details.push(`to undo ${row.compensates.replace(/#1$/, "")}`);
    }
    if ("input" in row && row.input !== undefined) details.push(`with ${shortened(row.input)}`);
    return `${nameOf(row)} ${details.join(" ")}`;
  });
}

function shortened(value: Json): string {
  const text = JSON.stringify(value);
  return text.length > 120 ? `${text.slice(0, 119)}…` : text;
}

function nameOf({ path, iteration }: ExecutionUpdate | NewExecution): string {
  return iteration === 1 ? path : executionKey(path, iteration);
}

function statusText(row: ExecutionUpdate | NewExecution): string {
  const { status, error } = row;
  if ("awaited" in row && row.awaited) return "still RUNNING, told to stop and awaited";
  if ("retryAt" in row && row.retryAt) return `RETRYING at ${clock(row.retryAt)}`;
  return error === null ? status : `${status} (${error.type})`;
}

const timerText = {
  wait: "until",
  delay: "until",
  total: "in all until",
  schedule: "to be taken until",
  grace: "until",
  continue: "from",
  retry: "again from",
  attempt: "until",
  start: "from",
  timeout: "until",
  resume: "until",
} as const;

function dueText({ timer, path }: Firing["timer"]): string {
  const whose = path === "" ? "the instance" : path;
  return `the ${timer} timer of ${whose} is due`;
}

function statusOf({ status, compensation }: Snapshot): string {
  return compensation === null ? status : `${status}, compensation ${compensation.status}`;
}

/** What the API would show in the end. Executions of a loop are told one by one. */
function ending({ snapshot, instance }: Simulation): readonly string[] {
  const { output, error, cancellation, compensation } = snapshot;
  const rows = [...instance.executions.values()];
  const isCompensation = new Set(compensation?.plan);
  return [
    `in the end   ${statusOf(snapshot)}`,
    `output       ${JSON.stringify(output)}`,
    `error        ${error === null ? "null" : JSON.stringify(error)}`,
    `cancellation ${cancellation === null ? "null" : JSON.stringify(cancellation)}`,
    ...rows
      .filter(({ stepId }) => !isCompensation.has(stepId))
      .map(({ stepId, iteration, status, attempt, error: own, output: out }) => {
        const name = iteration === 1 ? stepId : executionKey(stepId, iteration);
        const attempts = attemptsMade(status, attempt);
        const more = [
          ...(attempts === 1 ? [] : [`${attempts} attempts`]),
          ...(own === null ? [] : [`${own.kind} ${own.type}: ${own.message}`]),
          ...(out === undefined ? [] : [JSON.stringify(out)]),
        ];
        return `step         ${[`${name} ${status}`, ...more].join(", ")}`;
      }),
    ...(compensation === null
      ? ["compensation null"]
      : [
          `plan         ${compensation.plan.join(", ") || "empty"}`,
          ...rows
            .filter(({ stepId }) => isCompensation.has(stepId))
            .map(({ stepId, status, attempt }) => {
              const attempts = attempt === 1 ? "" : `, ${attempt} attempts`;
              return `             ${stepId} ${status}${attempts}`;
            }),
          `completed    ${compensation.completed.join(", ") || "none"}`,
          `failed       ${compensation.failed.map(({ stepId }) => stepId).join(", ") || "none"}`,
          `uncertain    ${compensation.uncertain.join(", ") || "none"}`,
        ]),
  ];
}

const months = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

/** The time of the day, with the date where it is another than the start's, in UTC. */
function clock(at: Date): string {
  const text = at.toISOString();
  const time = text.slice(11, text.endsWith(".000Z") ? 19 : 23);
  if (text.slice(0, 10) === noon.toISOString().slice(0, 10)) return time;
  return `${months[at.getUTCMonth()]} ${at.getUTCDate()} ${time}`;
}
