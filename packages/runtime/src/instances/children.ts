import type { ChildRefusal, Command, Signal } from "@millrace/engine";
import type { AdvanceJob } from "@millrace/queue";
import {
  deleteChildSignals,
  loadChildSignals,
  loadInstance,
  mendTold,
  refuseChild,
  unstartedChildren,
} from "@millrace/store";
import type {
  ChildPlace,
  ChildSignal,
  Commit,
  Key,
  Receiver,
  UnstartedChild,
} from "@millrace/store";
import { advance } from "../advance.ts";
import { inputRefusal, InstanceNotFoundError, WorkflowNotFoundError } from "../errors.ts";
import { firstCommit } from "../first-commit.ts";
import type { Services } from "../services.ts";

/**
 * Between a parent and its children. Each of these is a row when it begins, and whoever commits it sees
 * to it at once; the reconciler finds what is left. What is committed here for other instances is handed
 * back, so that its own effects can be performed.
 *
 *   start    `children`, until the child's first commit
 *   cancel   `child_signals`, until the commit that cancels the child
 *   end      `child_signals`, until the parent's commit that takes note of it
 */

type Family = Extract<Command, { kind: "startChild" | "cancelChild" | "reportEnd" }>;

export function concernsFamily(commands: readonly Command[]): boolean {
  return commands.some(isFamily);
}

function isFamily(command: Command): command is Family {
  const { kind } = command;
  return kind === "startChild" || kind === "cancelChild" || kind === "reportEnd";
}

/** After the commit of `key`: what it has for other instances. */
export async function tellFamily(
  services: Services,
  key: Key,
  commands: readonly Command[],
): Promise<readonly Commit[]> {
  const { tenantId } = key;
  const family = commands.filter(isFamily);
  const starts = family.filter((command) => command.kind === "startChild");
  const started = starts.length > 0 ? await startChildren(services, key, starts) : [];
  const told = family.map(async (command): Promise<readonly Commit[]> => {
    if (command.kind === "cancelChild") {
      return applyTold(services, { tenantId, instanceId: command.childId });
    }
    if (command.kind === "reportEnd") {
      const { instanceId } = command.parent;
      await nudgeParent(services, { tenantId, instanceId }, key.instanceId);
    }
    return [];
  });
  return [...started, ...(await Promise.all(told)).flat()];
}

// Starting

async function startChildren(
  services: Services,
  parent: Key,
  places: readonly ChildPlace[],
): Promise<readonly Commit[]> {
  const children = await unstartedChildren(services.database.db, parent, places);
  const outcomes = await Promise.allSettled(children.map((child) => startChild(services, child)));
  return outcomes.flatMap((outcome) => {
    if (outcome.status === "fulfilled") return outcome.value;
    // Those that have been created must not wait for it.
    const { instanceId } = parent;
    services.log.warn({ err: outcome.reason, instanceId }, "a child is left to the reconciler");
    return [];
  });
}

/** Violations that are told in the message; all of them are in the details. */
const mostSaid = 5;

/**
 * Creates the child, once: of several who try, one finds the row. A child that is to be stopped already
 * is created as cancelled, so that its parent hears of its end as of any other's.
 */
export async function startChild(
  services: Services,
  child: UnstartedChild,
): Promise<readonly Commit[]> {
  const { tenantId, childId, workflowId, input, parent, cancel } = child;
  const { correlationId, userId, priority, deadline } = child;
  const known = await definitionFor(services, child);
  if ("refused" in known) return refuse(services, child, known.refused);
  const problems = await known.checkInput(input);
  if (problems.length > 0) {
    const details = problems.map((problem) => ({ ...problem }));
    const said = problems.slice(0, mostSaid).map(({ path, message }) => `${path} ${message}`);
    if (problems.length > mostSaid) said.push(`and ${problems.length - mostSaid} more`);
    const message = `${inputRefusal(workflowId, problems)}: ${said.join("; ")}`;
    return refuse(services, child, { kind: "EXPRESSION", type: "INVALID_INPUT", message, details });
  }
  const createdAt = timeOfId(childId);
  const actor = actorOf(parent.instanceId);
  const commit = await firstCommit(services, services.database.db, known.definition, {
    instance: {
      id: childId,
      tenantId,
      input,
      correlationId,
      userId,
      priority,
      startEventId: null,
      createdAt,
      parent,
    },
    signals:
      cancel === null
        ? [{ kind: "started" }]
        : [{ kind: "scheduled", startAt: createdAt }, cancelSignal(cancel, actor)],
    at: services.clock.now(),
    actor,
    create: { metadata: null, deadline },
    ...(cancel !== null && { received: [cancel] }),
  });
  const outcome = await services.create(commit);
  if (outcome.kind !== "committed") return [];
  services.metrics.instancesStarted.add({ workflow: workflowId });
  return [commit];
}

/** An awaited child is pinned with its parent: later registrations do not concern it. */
async function definitionFor(
  { definitions }: Services,
  { tenantId, workflowId, workflowVersion, parent, parentCreatedAt }: UnstartedChild,
) {
  try {
    if (workflowVersion !== null) {
      return await definitions.get(tenantId, workflowId, workflowVersion);
    }
    return await (parent.awaited
      ? definitions.latestAt(tenantId, workflowId, parentCreatedAt)
      : definitions.latest(tenantId, workflowId));
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error;
    const { code: type, message } = error;
    return { refused: { kind: "DEFINITION", type, message, details: null } } as const;
  }
}

async function refuse(
  services: Services,
  child: UnstartedChild,
  error: ChildRefusal,
): Promise<readonly Commit[]> {
  const { tenantId, childId, workflowId, parent } = child;
  const { instanceId } = parent;
  services.log.warn({ instanceId, childId, workflowId, reason: error.message }, "no child");
  await refuseChild(services.database.db, child, error);
  if (parent.awaited) await nudgeParent(services, { tenantId, instanceId }, childId);
  return [];
}

/** The milliseconds of a UUIDv7: those at which the parent started it (CONTRACT 3). */
function timeOfId(id: string): Date {
  return new Date(Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16));
}

function actorOf(parentId: string): string {
  return `parent:${parentId}`;
}

// What is told

/** What one commit takes at most. */
const mostTold = 200;

export function loadTold(services: Services, key: Key): Promise<readonly ChildSignal[]> {
  return loadChildSignals(services.database.db, key, mostTold);
}

export function childSignalsOf(told: readonly ChildSignal[]): readonly Signal[] {
  return told.map(({ body, path, iteration, attempt, childId, output }): Signal => {
    const ref = { path, iteration, attempt, childId };
    if ("parentId" in body) return cancelSignal(body, actorOf(body.parentId));
    if ("refused" in body) return { kind: "childRefused", ...ref, error: body.refused };
    return { kind: "childEnded", ...ref, ...body, output };
  });
}

function cancelSignal(
  { reason, shouldCompensate }: { reason: string | null; shouldCompensate: boolean },
  actor: string,
): Signal {
  return { kind: "cancelRequested", reason, actor, shouldCompensate, source: "PARENT" };
}

/** It was void: the instance had moved on. */
export async function forgetTold(
  { database }: Services,
  { tenantId, instanceId }: Key,
  told: readonly ChildSignal[],
): Promise<void> {
  if (told.length === 0) return;
  await deleteChildSignals(database.db, { tenantId, instanceId }, told);
}

/** Applies what the instance has been told, here and now. */
async function applyTold(services: Services, key: Key): Promise<readonly Commit[]> {
  const told = await loadTold(services, key);
  if (told.length === 0) return [];
  try {
    const advanced = await advance(services, key, {
      actor: told.some(({ kind }) => kind === "CANCEL") ? "parent" : "child",
      cause: "cancel",
      signals: () => childSignalsOf(told),
      extend: (commit) => ({ ...commit, received: told }),
    });
    if (advanced.kind === "committed") return [advanced.commit];
    await forgetTold(services, key, told);
    return [];
  } catch (error) {
    if (!(error instanceof InstanceNotFoundError)) throw error;
    return startOrForget(services, key, told);
  }
}

/**
 * There is no such child: it is still to be started, and takes its cancel with it, or never will be. One
 * that somebody else is creating right now is left alone, since it may not have seen its cancel.
 */
async function startOrForget(
  services: Services,
  key: Key,
  told: readonly ChildSignal[],
): Promise<readonly Commit[]> {
  const { db } = services.database;
  const { tenantId } = key;
  const started: Commit[] = [];
  for (const { body, ...place } of told) {
    if (!("parentId" in body)) continue;
    const parent = { tenantId, instanceId: body.parentId };
    started.push(...(await startChildren(services, parent, [place])));
    if ((await unstartedChildren(db, parent, [place])).length > 0) return started;
  }
  if ((await loadInstance(db, key)) !== undefined) {
    return [...started, ...(await applyTold(services, key))];
  }
  await forgetTold(services, key, told);
  return started;
}

/** What was told and not taken note of, whoever should have seen to it; also what cannot be read as it is. */
export async function deliver(
  services: Services,
  { kind, childId, ...key }: Receiver,
): Promise<readonly Commit[]> {
  const unreadable = await mendTold(services.database.db, key);
  for (const told of unreadable) {
    const { instanceId } = key;
    services.log.warn({ instanceId, ...told }, "what was told cannot be read, and nobody knows it");
  }
  if (unreadable.some((told) => told.kind === kind && told.childId === childId)) return [];
  if (kind === "CANCEL") return applyTold(services, key);
  await nudgeParent(services, key, childId);
  return [];
}

const causePrefix = "child.";

export function tellsOfChild({ cause }: AdvanceJob): boolean {
  return cause.startsWith(causePrefix);
}

/** Tells a worker that a child has ended; if that fails, it is found again. */
async function nudgeParent(
  { queue, metrics }: Services,
  { tenantId, instanceId }: Key,
  childId: string,
): Promise<void> {
  const job = { tenantId, instanceId, cause: `${causePrefix}${childId}` };
  await queue.addAdvance([{ job, priority: 0 }]).catch(() => metrics.enqueueFailures.add({}));
}
