import type { Calendar } from "@millrace/engine";
import { contentHashOf, createWithin, registerDefinition } from "@millrace/store";
import type {
  Commit,
  Db,
  DefinitionDocument,
  ScheduleKey,
  ScheduleRunKind,
  StoredScheduleDocument,
} from "@millrace/store";
import { loadCalendars } from "../calendars/load-calendars.ts";
import type { KnownDefinition } from "../definitions/definition-cache.ts";
import { IdempotencyConflictError, InvalidInputError, WorkflowNotFoundError } from "../errors.ts";
import type { MillraceError } from "../errors.ts";
import { firstCommit } from "../first-commit.ts";
import { newInstanceId } from "../ids.ts";
import { perform } from "../perform.ts";
import type { Caller, Services } from "../services.ts";

/** The instances that schedules start, as a start by the API would make them. */

/** What a schedule needs to tick. */
export type ScheduledStart = Startable & {
  /** That which it names; null where that is not there. */
  readonly calendar: Calendar | null | undefined;
};

/** What it starts, or why it can start nothing now. */
type Startable =
  | { readonly known: KnownDefinition; readonly refusal?: undefined }
  | { readonly known?: undefined; readonly refusal: MillraceError };

const mostProblems = 5;

/** Why nothing can be started, for the row of a run. */
export function reasonOf({ code, message, problems = [] }: MillraceError): {
  readonly reason: string;
  readonly message: string;
} {
  const listed = problems
    .slice(0, mostProblems)
    .map(({ path, message: what }) => `${path === "" ? "the input" : path} ${what}`);
  return { reason: code, message: [message, ...listed].join("; ") };
}

/** The definition of a target: of a task the reserved one that has it as its only step (CONTRACT 6). */
export function workflowIdOf({ target }: Pick<StoredScheduleDocument, "target">): string {
  return target.type === "workflow" ? target.id : `task:${target.id}`;
}

/** Asked before the schedule's row is taken, so that no transaction waits for another connection. */
export async function prepareStart(
  services: Services,
  tenantId: string,
  document: StoredScheduleDocument,
): Promise<ScheduledStart> {
  const [startable, calendar] = await Promise.all([
    startableOf(services, tenantId, document),
    calendarOf(services, tenantId, document),
  ]);
  return { ...startable, calendar };
}

/** Null where the one that is named is not there. */
export async function calendarOf(
  { database }: Pick<Services, "database">,
  tenantId: string,
  { calendarId }: Pick<StoredScheduleDocument, "calendarId">,
): Promise<Calendar | null | undefined> {
  if (calendarId === undefined || calendarId === null) return undefined;
  return (await loadCalendars(database.db, tenantId, [calendarId])).get(calendarId) ?? null;
}

async function startableOf(
  { definitions }: Services,
  tenantId: string,
  document: StoredScheduleDocument,
): Promise<Startable> {
  const workflowId = workflowIdOf(document);
  try {
    const known = await definitions.latest(tenantId, workflowId);
    const problems = await known.checkInput(document.input ?? {});
    return problems.length === 0
      ? { known }
      : { refusal: new InvalidInputError(workflowId, problems) };
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error;
    return { refusal: error };
  }
}

/** Makes sure that there is a definition for a task to be started by. */
export async function registerTask(
  { database }: Services,
  { tenantId, actor }: Caller,
  { target }: StoredScheduleDocument,
): Promise<void> {
  if (target.type !== "task") return;
  const document: DefinitionDocument = {
    id: `task:${target.id}`,
    name: `The task ${target.id}`,
    steps: [{ stepId: "task", type: "TASK", taskId: target.id }],
  };
  const contentHash = contentHashOf(document);
  await registerDefinition(database.db, {
    tenantId,
    id: document.id,
    document,
    contentHash,
    actor,
  });
}

export interface RunToStart {
  readonly kind: ScheduleRunKind;
  readonly tickAt: Date;
  /** Who asked for it, where it is no tick. */
  readonly requestedBy?: string;
  readonly idempotency?: Idempotency;
}

export interface Idempotency {
  readonly key: string;
  readonly bodyHash: string;
}

export async function draftRun(
  services: Services,
  trx: Db,
  { tenantId, id, document }: ScheduleKey & { readonly document: StoredScheduleDocument },
  { definition }: KnownDefinition,
  { kind, tickAt, requestedBy, idempotency }: RunToStart,
): Promise<Commit> {
  const now = services.clock.now();
  return firstCommit(services, trx, definition, {
    instance: {
      id: newInstanceId(now),
      tenantId,
      input: document.input ?? {},
      correlationId: null,
      userId: null,
      priority: null,
      startEventId: null,
      createdAt: now,
    },
    signals: [{ kind: "started" }],
    at: now,
    actor: `schedule:${id}`,
    create: {
      metadata: {
        schedule: {
          id,
          tickAt: tickAt.toISOString(),
          kind,
          ...(requestedBy !== undefined && { requestedBy }),
        },
      },
      deadline: null,
      ...(idempotency !== undefined && { idempotency }),
    },
  });
}

/** In one statement. */
const mostAtOnce = 200;

/** A part of the transaction that writes the rows of the runs: either all of it is there or nothing. */
export async function createRuns(trx: Db, commits: readonly Commit[]): Promise<void> {
  for (let from = 0; from < commits.length; from += mostAtOnce) {
    const chunk = commits.slice(from, from + mostAtOnce);
    const outcomes = await createWithin(trx, chunk);
    for (const [index, { kind }] of outcomes.entries()) {
      const used = chunk[index]?.create?.idempotency;
      // Somebody else has used it since it was looked for.
      if (kind === "idempotent" && used) throw new IdempotencyConflictError(used.key);
      // Their ids are new.
      if (kind !== "committed") throw new Error("an id was taken twice");
    }
  }
}

/** After the transaction: jobs and wake-ups, all of which may be lost. */
export async function performRuns(
  services: Services,
  commits: readonly Commit[],
  areLate = false,
): Promise<void> {
  for (const commit of commits) {
    services.metrics.instancesStarted.add({ workflow: commit.previous.workflowId });
    await perform(services, commit, areLate);
  }
}
