import { createHash } from "node:crypto";
import type { JsonObject } from "@millrace/engine";
import { canonicalJson, instanceReadOf, readInstance } from "@millrace/store";
import type { Commit, CommitOutcome, InstanceRead, Json } from "@millrace/store";
import type { KnownDefinition } from "../definitions/definition-cache.ts";
import { IdempotencyConflictError, InvalidInputError } from "../errors.ts";
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
 * @throws WorkflowNotFoundError, InvalidInputError, IdempotencyConflictError
 */
export async function startInstance(
  services: Services,
  caller: Caller,
  request: StartRequest,
  idempotencyKey?: string,
): Promise<Started> {
  const { commit, outcome } = await createInstance(services, caller, request, idempotencyKey);
  if (outcome.kind === "idempotent") {
    const instance = await replay(services, caller, commit, outcome);
    return { instance, replayed: true };
  }
  await perform(services, commit);
  services.metrics.instancesStarted.add({ workflow: request.workflowId });
  return { instance: instanceReadOf(commit), replayed: false };
}

/** Each on its own: a start that is refused does not touch the others. */
export async function startInstances(
  services: Services,
  caller: Caller,
  requests: readonly StartRequest[],
): Promise<readonly ({ readonly instance: InstanceRead } | { readonly error: unknown })[]> {
  return Promise.all(
    requests.map((request) =>
      startInstance(services, caller, request).then(
        ({ instance }) => ({ instance }),
        (error: unknown) => ({ error }),
      ),
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
): Promise<{ readonly commit: Commit; readonly outcome: CommitOutcome }> {
  const { definitions } = services;
  const { workflowId, version } = request;
  const key = [caller.tenantId, workflowId] as const;
  if (version === undefined) {
    const assumed = await definitions.assumedLatest(...key);
    if (problemsOf(assumed, request).length === 0) {
      const commit = draftStart(services, caller, request, idempotencyKey, assumed, true);
      const outcome = await services.create(commit);
      if (outcome.kind !== "conflict") return { commit, outcome };
    }
  }
  const known = await (version === undefined
    ? definitions.latest(...key)
    : definitions.get(...key, version));
  const problems = problemsOf(known, request);
  if (problems.length > 0) throw new InvalidInputError(workflowId, problems);
  const commit = draftStart(services, caller, request, idempotencyKey, known, false);
  return { commit, outcome: await services.create(commit) };
}

function problemsOf({ checkInput }: KnownDefinition, { input = {} }: StartRequest) {
  return checkInput(input);
}

function draftStart(
  services: Services,
  { tenantId, actor }: Caller,
  request: StartRequest,
  idempotencyKey: string | undefined,
  { definition }: KnownDefinition,
  ifLatest: boolean,
): Commit {
  const now = services.clock.now();
  const startAt = request.startAt === undefined ? now : new Date(request.startAt);
  return firstCommit(definition, {
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
  { create }: Commit,
  { instanceId, bodyHash }: { readonly instanceId: string; readonly bodyHash: string },
): Promise<InstanceRead> {
  const asked = create?.idempotency;
  if (asked?.bodyHash !== bodyHash) throw new IdempotencyConflictError(asked?.key ?? "");
  const instance = await readInstance(database.db, { tenantId, instanceId });
  if (instance === undefined) throw new Error(`the started instance ${instanceId} is gone`);
  return instance;
}
