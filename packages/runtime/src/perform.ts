import { stepJobId } from "@millrace/queue";
import type { StepToAdd } from "@millrace/queue";
import { executionKey } from "@millrace/engine";
import type { Command, Snapshot } from "@millrace/engine";
import { dueStepsOf, loadReads, typeLimitKey } from "@millrace/store";
import type { Commit, DueStep, Key } from "@millrace/store";
import { handOnReleased } from "./events/hand-on.ts";
import { lookBack } from "./events/look-back.ts";
import { concernsFamily, tellFamily } from "./instances/children.ts";
import type { Services } from "./services.ts";

/**
 * What a commit asks for outside Postgres, after it: jobs, wake-ups, abort signals. All of it may be
 * lost; the rows say the same, and the reconciler reads them.
 *
 * @param isLate It should have happened long ago, before a time of downtime say: its steps let others of their
 *   priority go first until the reconciler looks for them, so that what comes now does not wait for all of them.
 */
export function perform(services: Services, commit: Commit, isLate = false): Promise<void> {
  count(services, commit);
  wake(services, commit);
  matchEmitted(services, keyOf(commit), commit.decision.commands);
  const effects = effectsOf(services, commit, isLate);
  return effects.length === 0 ? nothing : settleAll(services, commit, effects);
}

/** As with most steps that are carried on, each of which waits for it. */
const nothing = Promise.resolve();

async function settleAll(
  { log }: Services,
  { previous: { id: instanceId } }: Commit,
  effects: readonly Promise<unknown>[],
): Promise<void> {
  for (const effect of await Promise.allSettled(effects)) {
    // What is committed stands: whoever committed it must not hear of a failure.
    if (effect.status === "fulfilled") continue;
    log.warn({ err: effect.reason, instanceId }, "left to the reconciler");
  }
}

/** Most commits have one or none, so that none is begun for nothing. */
function effectsOf(
  services: Services,
  commit: Commit,
  isLate: boolean,
): readonly Promise<unknown>[] {
  const { commands } = commit.decision;
  const key = keyOf(commit);
  const effects: Promise<unknown>[] = [];
  const jobs = jobsOf(key, commit, isLate);
  if (jobs.length > 0) effects.push(enqueue(services, jobs));
  const aborts = commands.filter((command) => command.kind === "abort");
  if (aborts.length > 0) effects.push(abortAll(services, key, aborts));
  if (commands.some(isHandingOn)) effects.push(handOnReleased(services, key));
  if (opensLookback(commands)) effects.push(lookBack(services, key));
  if (concernsFamily(commands)) effects.push(tellAndGoOn(services, key, commands));
  for (const command of commands) {
    if (command.kind === "letGo") effects.push(goOn(services, key, commit, command.executions));
  }
  return effects;
}

function keyOf({ previous }: Commit): Key {
  return { tenantId: previous.tenantId, instanceId: previous.id };
}

/** A pause is over: jobs for what was held, and a look at what events have taken since. */
async function goOn(
  services: Services,
  key: Key,
  { previous }: Commit,
  executions: readonly { readonly path: string; readonly iteration: number }[],
): Promise<void> {
  await enqueueDue(services, await dueStepsOf(services.database.db, key, executions));
  const job = { ...key, cause: `resumed.${previous.version}` };
  await services.queue.addAdvance([{ job, priority: 0 }]);
}

/**
 * A queue that is away is no failure: the PENDING rows are found again.
 *
 * @returns Whether they were added.
 */
export async function enqueue(services: Services, jobs: readonly StepToAdd[]): Promise<boolean> {
  if (jobs.length === 0) return true;
  try {
    await services.queue.addSteps(jobs);
    return true;
  } catch (error) {
    services.metrics.enqueueFailures.add({});
    services.missed.note();
    services.log.debug({ err: error }, "jobs not added; the reconciler will");
    return false;
  }
}

/**
 * A step under which so many workers have died, or were asked to end soon after it had begun, is a suspect:
 * from then on each of its deliveries of this attempt has a process for itself, so that it takes nobody
 * along, and dies of nobody else's doing. A deployment asks many workers to end, one after the other.
 */
export const leastOfSuspects = { lapses: 2, handOvers: 5 } as const;

export function isSuspect({ lapses, handOvers }: Pick<DueStep, "lapses" | "handOvers">): boolean {
  return lapses >= leastOfSuspects.lapses || handOvers >= leastOfSuspects.handOvers;
}

/**
 * Jobs for executions that have none any more, or go to another worker. Nobody else adds jobs for an
 * execution that workers have died under. A retry that is due goes beside the job that waits for its time,
 * by the clock of the host which added it. One that is set aside goes where suspects go.
 *
 * @returns How many were added.
 */
export async function enqueueDue(
  services: Services,
  steps: readonly (DueStep & { readonly isRetry?: boolean; readonly isSetAside?: boolean })[],
): Promise<number> {
  const jobs = steps.map((step) => {
    const {
      tenantId,
      instanceId,
      path,
      iteration,
      attempt,
      fence,
      taskId,
      queue,
      priority,
      lapses,
    } = step;
    const job = { tenantId, instanceId, path, iteration, attempt, fence, taskId };
    const common = { queue, priority, delayMs: 0 };
    return isSuspect(step) || step.isSetAside === true
      ? { ...common, job: { ...job, lapses }, isolated: true }
      : { ...common, job, isDue: step.isRetry === true };
  });
  return (await enqueue(services, jobs)) ? jobs.length : 0;
}

/** Jobs for the dispatched executions, those excepted that this worker carries on itself. */
function jobsOf(
  key: Key,
  { decision, holds, carry }: Commit,
  isLate: boolean,
): readonly StepToAdd[] {
  if (!decision.commands.some(({ kind }) => kind === "dispatch")) return [];
  const carried = new Set(carry.map(({ path, iteration }) => executionKey(path, iteration)));
  const fences = new Map(
    holds.map(({ path, iteration, fence }) => [executionKey(path, iteration), fence]),
  );
  const jobs: StepToAdd[] = [];
  for (const command of decision.commands) {
    if (command.kind !== "dispatch") continue;
    const { path, iteration, attempt, taskId, queue, priority, delayMs } = command;
    const execution = executionKey(path, iteration);
    if (carried.has(execution)) continue;
    const fence = fences.get(execution) ?? 0;
    jobs.push({
      job: {
        tenantId: key.tenantId,
        instanceId: key.instanceId,
        path,
        iteration,
        attempt,
        fence,
        taskId,
      },
      queue,
      priority: isLate ? priority - 1 : priority,
      delayMs,
    });
  }
  return jobs;
}

/** What is committed for other instances has effects of its own. */
async function tellAndGoOn(
  services: Services,
  key: Key,
  commands: readonly Command[],
): Promise<void> {
  await performAll(services, await tellFamily(services, key, commands));
}

export async function performAll(services: Services, commits: readonly Commit[]): Promise<void> {
  await Promise.all(commits.map((commit) => perform(services, commit)));
}

/** Not awaited: what events bring about may emit the next ones. */
function matchEmitted(
  { emissions, metrics }: Services,
  { tenantId }: Key,
  commands: readonly Command[],
): void {
  const emitted = commands.flatMap((command) =>
    command.kind === "emitEvent" ? [{ tenantId, id: command.event.id }] : [],
  );
  if (emitted.length === 0) return;
  metrics.eventsPublished.add({}, emitted.length);
  emissions.match(emitted);
}

function isHandingOn(command: Command): boolean {
  return command.kind === "closeWait" && command.handsOn === true;
}

function opensLookback(commands: readonly Command[]): boolean {
  return commands.some(
    (command) => command.kind === "openWait" && command.wait.lookbackFrom !== null,
  );
}

function count({ metrics }: Services, { decision: { commands, snapshot } }: Commit): void {
  if (!commands.some(({ kind }) => kind === "settle") || snapshot.completedAt === null) return;
  const startedAt = snapshot.startedAt ?? snapshot.createdAt;
  metrics.instanceDuration.observe(
    { workflow: snapshot.workflowId, outcome: snapshot.status },
    (snapshot.completedAt.getTime() - startedAt.getTime()) / 1_000,
  );
}

/** Long-polls hear that the instance changed, the scheduler that a timer was set or a slot is free. */
function wake({ queue, announcements }: Services, { previous, decision }: Commit): void {
  announcements.changed(previous.id);
  const settled = decision.commands.some(({ kind }) => kind === "settle");
  if (settled) queue.wake.publish("instance", { instanceId: previous.id });
  const due = decision.commands.flatMap((command) =>
    command.kind === "setTimer" ? [command.dueAt.getTime()] : [],
  );
  if (due.length > 0) queue.wake.publish("timer", { dueAt: Math.min(...due) });
  if (concernsQueue(previous, decision.snapshot)) {
    const { tenantId, workflowId } = previous;
    // By the key an earlier release knows what to look at.
    queue.wake.publish("slot", { tenantId, limitKey: typeLimitKey(workflowId) });
  }
}

/** It waits for a slot, perhaps at another place now, or has given one up. */
function concernsQueue(before: Snapshot, { slot }: Snapshot): boolean {
  return slot === "WANTED" || (before.slot !== null && slot === null);
}

/** Tells the worker that runs the step, and takes a job that waits, for a retry say, off the queue. */
async function abortAll(
  services: Services,
  key: Key,
  aborts: readonly Extract<Command, { kind: "abort" }>[],
): Promise<void> {
  for (const { kind: _, ...abort } of aborts)
    services.queue.wake.publish("step", { ...key, ...abort });
  const attempts = new Map(
    aborts.map(({ path, iteration, attempt }) => [executionKey(path, iteration), attempt]),
  );
  const { executions } = await loadReads(
    services.database.db,
    key,
    aborts.map(({ path, iteration }) => ({ kind: "execution", path, iteration })),
  );
  for (const row of executions.values()) {
    if (row === null || row.queue === null) continue;
    const { path, iteration, attempt, fence, queue } = row;
    // The next attempt has a job of its own, which stays.
    if (attempts.get(executionKey(path, iteration)) !== attempt) continue;
    const job = { ...key, path, iteration, attempt, fence, taskId: "" };
    await services.queue.removeStep(queue, stepJobId(job));
  }
}
