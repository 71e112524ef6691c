import { triggeredStart } from "@millrace/engine";
import type { TriggeredStart } from "@millrace/engine";
import { DataRefusedError, findStartTriggers } from "@millrace/store";
import type { Commit, StartCandidate, StartSearch, StoredEvent, WaitProbe } from "@millrace/store";
import type { KnownDefinition } from "../definitions/definition-cache.ts";
import type { Problem } from "../errors.ts";
import { firstCommit } from "../first-commit.ts";
import { idFor } from "../ids.ts";
import { perform } from "../perform.ts";
import type { Services } from "../services.ts";
import { factOf } from "./satisfies.ts";

/**
 * Starts the instances that an event is a start trigger for, one a definition at most. The id of an
 * instance follows from event and definition, so that whoever does this again, after a crash say, finds
 * it there and starts nothing.
 */

export interface TriggeredStarts {
  /** Instances that this event has started, whoever did it. */
  readonly started: number;
  readonly rejected: readonly RejectedStart[];
}

/** A definition whose trigger the event met, and for which it brought no input that fits. */
export interface RejectedStart {
  readonly workflowId: string;
  readonly errors: readonly Problem[];
}

/** Triggers looked at per statement. */
const pageSize = 500;

/** Characters, as for a start over the API. */
const longestCorrelationId = 500;

export async function startTriggered(
  services: Services,
  event: StoredEvent,
  probes: readonly WaitProbe[],
): Promise<TriggeredStarts> {
  // What an event starts is settled the first time, however often it is matched.
  if (probes.length === 0 || event.startsDone) return { started: 0, rejected: [] };
  const candidates = await allCandidates(services, { event, probes, limit: pageSize });
  const byWorkflow = new Map<string, [StartCandidate, ...StartCandidate[]]>();
  for (const candidate of candidates) {
    const others = byWorkflow.get(candidate.workflowId);
    if (others === undefined) byWorkflow.set(candidate.workflowId, [candidate]);
    else others.push(candidate);
  }
  const answers = await Promise.all(
    [...byWorkflow.values()].map((triggers) => startOne(services, event, triggers)),
  );
  const rejected = answers.filter((answer) => typeof answer === "object");
  for (const { workflowId, errors } of rejected) {
    services.log.info({ eventId: event.id, workflowId, errors }, "the event's start was rejected");
  }
  return { started: answers.filter((answer) => answer === "started").length, rejected };
}

async function allCandidates(
  { database }: Services,
  search: StartSearch,
): Promise<readonly StartCandidate[]> {
  const candidates: StartCandidate[] = [];
  for (;;) {
    const page = await findStartTriggers(database.db, { ...search, after: candidates.at(-1) });
    candidates.push(...page);
    if (page.length < search.limit) return candidates;
  }
}

/** @param triggers Of one definition. */
async function startOne(
  services: Services,
  event: StoredEvent,
  triggers: readonly [StartCandidate, ...StartCandidate[]],
): Promise<"started" | "unmatched" | RejectedStart> {
  const [{ workflowId, version }] = triggers;
  const known = await services.definitions.get(event.tenantId, workflowId, version);
  const now = services.clock.now();
  const at = now < event.receivedAt ? event.receivedAt : now;
  const places = triggers.map(({ trigger }) => trigger);
  const start = triggeredStart(known.definition, places, factOf(event), at);
  if (start === undefined) return "unmatched";
  const errors = await problemsOf(start, known);
  if (errors.length > 0 || "failed" in start) return { workflowId, errors };

  const commit = await firstCommit(services, services.database.db, known.definition, {
    instance: {
      ...start,
      id: idFor(event.receivedAt, event.tenantId, event.id, workflowId),
      tenantId: event.tenantId,
      userId: null,
      priority: null,
      startEventId: event.id,
      createdAt: event.receivedAt,
    },
    signals: [{ kind: "started" }],
    at,
    actor: "event",
    create: { metadata: null, deadline: null },
  });
  return create(services, commit);
}

async function problemsOf(
  start: TriggeredStart,
  { checkInput }: KnownDefinition,
): Promise<readonly Problem[]> {
  if ("failed" in start) {
    const { failed, error } = start;
    return [{ path: `/${failed}${error.pointer ?? ""}`, code: error.code, message: error.message }];
  }
  const { input, correlationId } = start;
  const length = correlationId?.length ?? 0;
  const message = `has ${length} characters; at most ${longestCorrelationId} are kept`;
  return [
    ...(await checkInput(input)),
    ...(length > longestCorrelationId
      ? [{ path: "/correlationId", code: "TOO_LONG", message }]
      : []),
  ];
}

/** Where the instance is there already, somebody has done this before. */
async function create(services: Services, commit: Commit): Promise<"started" | RejectedStart> {
  const { workflowId } = commit.previous;
  try {
    const outcome = await services.create(commit);
    if (outcome.kind !== "committed") return "started";
  } catch (error) {
    if (!(error instanceof DataRefusedError)) throw error;
    return { workflowId, errors: [{ path: "", code: "BAD_VALUE", message: error.message }] };
  }
  await perform(services, commit);
  services.metrics.instancesStarted.add({ workflow: workflowId });
  services.metrics.eventsMatched.add({ effect: "started" }, 1);
  return "started";
}
