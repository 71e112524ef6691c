import type { MockResult } from "@millrace/contract";
import { stepIdOf } from "../definition/paths.ts";
import { claimInMemory } from "../fold.ts";
import { resolveRetryPolicy } from "../retry.ts";
import type { Command, Decision } from "../state/decision.ts";
import type { ChildRef, ExecutionRef, Signal } from "../state/signal.ts";
import { executionKey } from "../state/snapshot.ts";
import type { WorkflowError } from "../state/snapshot.ts";
import type { AttemptClocks, Run } from "./run.ts";
import { openedWaits } from "./events.ts";
import { callOf, mockOf, msOf } from "./scenario.ts";

/** What stands around the instance: it carries out commands, and puts onto the agenda what follows. */

const defaultTaskMs = 1_000;

export function carryOut(run: Run, { inserts, commands }: Decision): void {
  for (const row of inserts) {
    run.clocks.set(executionKey(row.path, row.iteration), row);
  }
  for (const wait of openedWaits(commands)) {
    run.waits.set(executionKey(wait.path, wait.iteration), wait);
  }
  for (const command of commands) carryOutOne(run, command);
  emit(run, commands);
}

function carryOutOne(run: Run, command: Command): void {
  const { agenda, waits, now } = run;
  switch (command.kind) {
    case "dispatch": {
      const { path, iteration, attempt, delayMs } = command;
      agenda.add(now + delayMs, { kind: "take", ref: { path, iteration, attempt } });
      return;
    }
    case "setTimer": {
      const { timer, path, iteration, attempt, dueAt } = command;
      // A worker takes a step as soon as it is due, so that it never waits for one.
      if (timer === "schedule") return;
      const signal = { kind: "timerFired", timer, path, iteration, attempt } as const;
      const what = `the ${timer} timer of ${path === "" ? "the instance" : path} is due`;
      const happening = { kind: "signal", what, signals: [signal] } as const;
      agenda.setTimer(timerKey(command), dueAt.getTime(), happening);
      return;
    }
    case "clearTimer":
      agenda.clearTimer(timerKey(command));
      return;
    case "startChild": {
      const { path, iteration, attempt, childId, detached } = command;
      if (!detached) endChild(run, { path, iteration, attempt, childId });
      return;
    }
    case "cancelChild":
      cancelChild(run, command);
      return;
    case "closeWait":
      waits.delete(executionKey(command.path, command.iteration));
      return;
    case "settle":
      waits.clear();
      agenda.settle();
      return;
    default:
      return;
  }
}

/** What a decision emits arrives after it; waits that it opened after that do not hear it. */
function emit({ agenda, now }: Run, commands: readonly Command[]): void {
  const at = new Date(now).toISOString();
  const emitted = commands.flatMap((command) =>
    command.kind === "emitEvent" ? command.event : [],
  );
  for (const [index, event] of emitted.entries()) {
    const later = openedWaits(commands).filter(
      ({ emittedBefore = 0, lookbackFrom }) => emittedBefore > index && lookbackFrom === null,
    );
    const deaf = new Set(later.map(({ path, iteration }) => executionKey(path, iteration)));
    const fact = { ...event, occurredAt: at, receivedAt: at };
    agenda.add(now, { kind: "emitted", event: fact, deaf });
  }
}

/** A worker takes the step at once; the scenario says what comes of it, and when. */
export function take(run: Run, ref: ExecutionRef): void {
  const { definition, agenda, now } = run;
  const key = executionKey(ref.path, ref.iteration);
  const live = run.instance.snapshot.live[key];
  if (live?.attempt !== ref.attempt || live.phase !== "ACTIVE") return;
  run.instance = claimInMemory(run.instance, key);

  const { stepId } = live;
  const mock = mockFor(run, stepId, ref.attempt);
  const { output = null, error } = mock;
  const ms = taskMs(run, mock.duration);
  const limit = limitOf(run.clocks.get(key), mock);
  const retry = resolveRetryPolicy(callOf(definition, stepId)?.retry, definition.retry);
  const name = ref.attempt === 1 ? stepId : `${stepId}, attempt ${ref.attempt},`;
  const tell = (after: number, ending: string, signal: Signal) =>
    agenda.add(now + after, { kind: "signal", what: `${name} ${ending}`, signals: [signal] });

  if (ms > limit.ms) {
    const { clock } = limit;
    tell(limit.ms, limit.ending, { kind: "attemptTimedOut", ...ref, clock, retry });
  } else if (error === undefined) {
    tell(ms, "succeeds", { kind: "stepSucceeded", ...ref, output });
  } else {
    const { type, message = type, details = null, retryable = true } = error;
    const failure = { type, message, details, retryable };
    tell(ms, `fails with ${type}`, { kind: "stepFailed", ...ref, retry, failure });
  }
}

/** What ends the attempt if it takes longer: of two clocks the shorter one. */
function limitOf(clocks: AttemptClocks | undefined, { heartbeats = false }: MockResult) {
  const timeoutMs = clocks?.timeoutMs ?? Infinity;
  const silenceMs = heartbeats ? Infinity : (clocks?.heartbeatTimeoutMs ?? Infinity);
  return silenceMs < timeoutMs
    ? ({ clock: "heartbeat", ms: silenceMs, ending: "has sent no heartbeat" } as const)
    : ({ clock: "timeout", ms: timeoutMs, ending: "times out" } as const);
}

/** A child starts at once; the scenario says how it settles, and when. */
function endChild(run: Run, ref: ChildRef): void {
  const stepId = stepIdOf(ref.path);
  const { output = null, error, duration } = mockFor(run, stepId, ref.attempt);
  const signal = {
    kind: "childEnded",
    ...ref,
    status: error === undefined ? "COMPLETED" : "FAILED",
    output,
    error: error === undefined ? null : mockedError(error),
    reason: null,
  } as const;
  const ending = error === undefined ? "completes" : `fails with ${error.type}`;
  settleChild(run, signal, ending, taskMs(run, duration));
}

/** It has not settled yet, and does so by the cancel instead of what the scenario says. */
function cancelChild(run: Run, { reason, ...command }: CommandOf<"cancelChild">): void {
  const { path, iteration, attempt, childId } = command;
  const end = { status: "CANCELLED", output: null, error: null, reason } as const;
  const signal = { kind: "childEnded", path, iteration, attempt, childId, ...end } as const;
  settleChild(run, signal, "is cancelled", 0);
}

function settleChild(
  { agenda, now }: Run,
  signal: Extract<Signal, { kind: "childEnded" }>,
  ending: string,
  afterMs: number,
): void {
  const what = `the child of ${stepIdOf(signal.path)} ${ending}`;
  const happening = { kind: "signal", what, signals: [signal] } as const;
  agenda.setTimer(`child:${signal.childId}`, now + afterMs, happening);
}

type CommandOf<Kind extends Command["kind"]> = Extract<Command, { readonly kind: Kind }>;

function mockFor({ scenario, unmocked }: Run, stepId: string, attempt: number): MockResult {
  const mock = mockOf(scenario, stepId, attempt);
  if (mock === undefined) unmocked.add(stepId);
  return mock ?? {};
}

function taskMs({ now }: Run, duration: string | undefined): number {
  return duration === undefined ? defaultTaskMs : msOf(duration, new Date(now));
}

function mockedError({
  type,
  message = type,
  details = null,
}: NonNullable<MockResult["error"]>): WorkflowError {
  return { kind: "TASK", type, message, stepId: null, attempt: null, details };
}

function timerKey({
  timer,
  path,
  iteration,
}: CommandOf<"setTimer"> | CommandOf<"clearTimer">): string {
  return `${timer}:${executionKey(path, iteration)}`;
}
