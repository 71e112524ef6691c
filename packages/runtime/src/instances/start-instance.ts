import { createHash } from "node:crypto";
import type { JsonObject } from "@millrace/engine";
import {
  canonicalJson,
  instanceReadOf,
  lookAtOnce,
  readInstance,
  startedUnder,
} from "@millrace/store";
import type { Commit, CommitOutcome, DatabaseHandle, InstanceRead, Json } from "@millrace/store";
import type { KnownDefinition } from "../definitions/definition-cache.ts";
import { IdempotencyConflictError, InstanceNotFoundError, InvalidInputError } from "../errors.ts";
import { firstCommit } from "../first-commit.ts";
import { newInstanceId } from "../ids.ts";
import { perform } from "../perform.ts";
import type { Caller, Services } from "../services.ts";

/** A start, as CONTRACT 3 has it. `startAt` and `deadline` are ISO-8601 times. */
export interface StartRequest {
  readonly workflowId: string;
  readonly version?: number | undefined;
  readonly input?: Json | undefined;
  readonly correlationId?: string | undefined;
  readonly userId?: string | undefined;
  readonly priority?: number | undefined;
  readonly deadline?: string | undefined;
  readonly metadata?: JsonObject | undefined;
  readonly startAt?: string | undefined;
}

export interface Started {
  readonly instance: InstanceRead;
  /** The Idempotency-Key had started it before. */
  readonly replayed: boolean;
}

/**
 * Starts an instance: its row, its first step and its history are one commit; the job comes after.
 *
 * @throws WorkflowNotFoundError, InvalidInputError, IdempotencyConflictError, QueueFullError, ChecksBusyError
 */
export async function startInstance(
  services: Services,
  caller: Caller,
  request: StartRequest,
  idempotencyKey?: string,
): Promise<Started> {
  const { commit, started } = await createInstance(services, caller, request, idempotencyKey);
  if (started !== undefined) {
    const instance = await replay(services, caller, request, idempotencyKey, started);
    return { instance, replayed: true };
  }
  await perform(services, commit);
  services.metrics.instancesStarted.add({ workflow: request.workflowId });
  return { instance: instanceReadOf(commit), replayed: false };
}

/**
 * Each on its own: a start that is refused does not touch the others.
 *
 * @param idempotencyKeys One per request.
 */
export async function startInstances(
  services: Services,
  caller: Caller,
  requests: readonly StartRequest[],
  idempotencyKeys: readonly (string | undefined)[] = [],
): Promise<readonly (Started | { readonly error: unknown })[]> {
  return Promise.all(
    requests.map((request, index) =>
      startInstance(services, caller, request, idempotencyKeys[index]).catch((error: unknown) => ({
        error,
      })),
    ),
  );
}

/**
 * Most starts take the version that was the latest when last asked, and the statement that creates the
 * instance checks that it still is: a round trip less than asking each time.
 */
async function createInstance(
  services: Services,
  caller: Caller,
  request: StartRequest,
  idempotencyKey: string | undefined,
): Promise<Creation> {
  const { definitions } = services;
  const { workflowId, version } = request;
  const key = [caller.tenantId, workflowId] as const;
  const assumed = version === undefined && (await definitions.assumedLatest(...key));
  let problems = assumed ? await problemsOf(assumed, request) : [];
  if (assumed && problems.length === 0) {
    const commit = await draftStart(services, caller, request, idempotencyKey, assumed, true);
    const outcome = await create(services, commit, assumed, request);
    if (outcome.kind === "idempotent") return { started: outcome };
    if (outcome.kind !== "conflict") return { commit };
  }
  const known = await (version === undefined
    ? definitions.latest(...key)
    : definitions.get(...key, version));
  // The check may be costly: not twice by the same version.
  if (known !== assumed) problems = await problemsOf(known, request);
  if (problems.length > 0) {
    // It may have been right for the version that was the latest when it came first.
    const started =
      idempotencyKey && (await startedUnder(services.database.db, caller.tenantId, idempotencyKey));
    if (started) return { started };
    throw new InvalidInputError(workflowId, problems);
  }
  const commit = await draftStart(services, caller, request, idempotencyKey, known, false);
  const outcome = await create(services, commit, known, request);
  return outcome.kind === "idempotent" ? { started: outcome } : { commit };
}

/**
 * One that starts later is not queued yet. How many may be is said by the limits as they are, and by the latest
 * version, whichever is started.
 *
 * @throws QueueFullError
 */
async function create(
  services: Services,
  commit: Commit,
  { definition }: KnownDefinition,
  { version }: StartRequest,
): Promise<CommitOutcome> {
  const { slot, limits } = commit.decision.snapshot;
  const isQueued = slot === "WANTED";
  const isBounded =
    version !== undefined ||
    definition.concurrency?.maxQueued !== undefined ||
    (limits !== null && services.limits.areBounded(commit.decision.snapshot));
  return isQueued && isBounded ? services.createQueued(commit) : services.create(commit);
}

/** What was created, or what the idempotency key has started before. */
type Creation =
  | { readonly commit: Commit; readonly started?: undefined }
  | { readonly commit?: undefined; readonly started: StartedBefore };

type StartedBefore = Extract<CommitOutcome, { kind: "idempotent" }>;

/** Who starts it waits for the answer, and can ask again. */
const mostWaitMs = 5_000;

function problemsOf({ checkInput }: KnownDefinition, { input = {} }: StartRequest) {
  return checkInput(input, mostWaitMs);
}

function draftStart(
  services: Services,
  { tenantId, actor }: Caller,
  request: StartRequest,
  idempotencyKey: string | undefined,
  { definition }: KnownDefinition,
  ifLatest: boolean,
): Promise<Commit> {
  const now = services.clock.now();
  const startAt = request.startAt === undefined ? now : new Date(request.startAt);
  return firstCommit(services, services.database.db, definition, {
    instance: {
      id: newInstanceId(now),
      tenantId,
      input: request.input ?? {},
      correlationId: request.correlationId ?? null,
      userId: request.userId ?? null,
      priority: request.priority ?? null,
      startEventId: null,
      createdAt: now,
    },
    signals: startAt > now ? [{ kind: "scheduled", startAt }] : [{ kind: "started" }],
    at: now,
    actor,
    create: {
      metadata: request.metadata ?? null,
      deadline: request.deadline === undefined ? null : new Date(request.deadline),
      ifLatest,
      ...(idempotencyKey !== undefined && {
        idempotency: { key: idempotencyKey, bodyHash: hashOf(request) },
      }),
    },
  });
}

/** Bodies are compared as canonical JSON (CONTRACT 3, Idempotency-Key). */
function hashOf(request: StartRequest): string {
  return createHash("sha256").update(canonicalJson(request)).digest("hex");
}

async function replay(
  { database }: Services,
  { tenantId }: Caller,
  request: StartRequest,
  idempotencyKey: string | undefined,
  { instanceId, bodyHash }: StartedBefore,
): Promise<InstanceRead> {
  if (hashOf(request) !== bodyHash) throw new IdempotencyConflictError(idempotencyKey ?? "");
  const instance = await readInstance(database.db, { tenantId, instanceId });
  // Its retention was shorter than the key's. A second one is not started for that.
  if (instance === undefined) throw new InstanceNotFoundError(instanceId);
  await expectJobs(database, instance);
  return instance;
}

/** Whoever has started it may have died before it came to add the jobs of its first steps. */
async function expectJobs(
  { db }: DatabaseHandle,
  { snapshot, steps }: InstanceRead,
): Promise<void> {
  if (snapshot.version > 1) return;
  const { tenantId, id: instanceId } = snapshot;
  for (const { path, iteration, attempt, status } of steps) {
    const step = { tenantId, instanceId, path, iteration, attempt, fence: 0 };
    if (status === "PENDING") await lookAtOnce(db, step);
  }
}
