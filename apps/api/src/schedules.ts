import { randomUUID } from "node:crypto";
import {
  DEFAULT_PAGE_SIZE,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  parseWith,
  ScheduleDocument,
  type ScheduleRunView,
  type ScheduleView,
} from "@millrace/contract";
import {
  backfillSchedule,
  CalendarNotFoundError,
  calendarOf,
  createSchedule,
  defaultCatchup,
  defaultJitter,
  deleteSchedule,
  InvalidScheduleError,
  nextTicks,
  pauseSchedule,
  replaceSchedule,
  resumeSchedule,
  ruleOf,
  ScheduleChangedError,
  ScheduleExistsError,
  ScheduleNotFoundError,
  scheduleProblems,
  type Services,
  triggerSchedule,
} from "@millrace/runtime";
import {
  listScheduleRuns,
  listSchedules,
  readSchedule,
  type ScheduleRun,
  type StoredSchedule,
} from "@millrace/store";
import type { Caller, Runtime, ScheduleCalls } from "./runtime.ts";
import { time } from "./views.ts";

/** Ticks and runs that a schedule's own page shows. */
const mostShown = 10;

/** A patch that says nothing of a version is tried again so often when somebody was first. */
const mostTries = 10;

export function schedulesOf(services: Services): Pick<Runtime, keyof ScheduleCalls> {
  const { db } = services.database;

  async function find({ tenantId }: Caller, id: string): Promise<StoredSchedule> {
    const schedule = await readSchedule(db, { tenantId, id });
    if (schedule === undefined) throw new ScheduleNotFoundError(id);
    return schedule;
  }

  /** @throws InvalidScheduleError with every problem, of shape and of meaning. */
  async function check(
    { tenantId }: Caller,
    body: unknown,
    pathId: string | undefined,
    previous?: StoredSchedule,
  ): Promise<ScheduleDocument> {
    const { data, problems: ofShape = [] } = parseWith(ScheduleDocument, body);
    const id = isRecord(body) ? body["id"] : undefined;
    const otherId = {
      path: "/id",
      code: "BAD_VALUE",
      message: `is ${JSON.stringify(id)}, and the path names "${pathId}"; make them the same`,
    };
    const isOther = pathId !== undefined && id !== undefined && id !== pathId;
    const found = [...ofShape, ...(isOther ? [otherId] : [])];
    const problems = await scheduleProblems(services, tenantId, body, found, previous);
    if (data === undefined || problems.length > 0) throw new InvalidScheduleError(problems);
    return data;
  }

  async function replace(
    caller: Caller,
    previous: StoredSchedule,
    body: unknown,
    ifMatch: number | undefined,
  ): Promise<StoredSchedule> {
    const { id: _, ...document } = await check(caller, body, previous.id, previous);
    return replaceSchedule(services, caller, previous.id, document, ifMatch);
  }

  const detailed = async (schedule: StoredSchedule): Promise<ScheduleView> => {
    const { tenantId, id, status, document, createdAt } = schedule;
    const page = { limit: mostShown };
    const { items } = await listScheduleRuns(db, { tenantId, id }, {}, page);
    const calendar = await calendarOf(services, tenantId, document);
    const rule = ruleOf(document, createdAt, calendar ?? undefined);
    const isTicking = status === "ACTIVE" && calendar !== null;
    const from = schedule.nextTickAt ?? services.clock.now();
    const after = new Date(from.getTime() - 1);
    return {
      ...scheduleView(schedule),
      nextTicks: isTicking ? texts(nextTicks(rule, after, mostShown)) : [],
      recentRuns: items.map(runView),
    };
  };

  return {
    async createSchedule(caller, body) {
      const { id = randomUUID(), ...document } = await check(caller, body, undefined);
      const { schedule, created } = await createSchedule(services, caller, id, document);
      return { schedule: await detailed(schedule), created };
    },
    async putSchedule(caller, id, body, ifMatch) {
      const { tenantId } = caller;
      const previous = await readSchedule(db, { tenantId, id });
      if (previous !== undefined) {
        return {
          schedule: await detailed(await replace(caller, previous, body, ifMatch)),
          created: false,
        };
      }
      if (ifMatch !== undefined) throw new ScheduleNotFoundError(id);
      const { id: _, ...document } = await check(caller, body, id);
      try {
        const { schedule, created } = await createSchedule(services, caller, id, document);
        return { schedule: await detailed(schedule), created };
      } catch (error) {
        if (!(error instanceof ScheduleExistsError)) throw error;
        // Somebody was first: what they made is replaced.
        const schedule = await replaceSchedule(services, caller, id, document);
        return { schedule: await detailed(schedule), created: false };
      }
    },
    async patchSchedule(caller, id, patch, ifMatch) {
      for (let tries = 1; ; tries++) {
        const previous = await find(caller, id);
        const { version, document } = previous;
        if (ifMatch !== undefined && ifMatch !== version) {
          throw new ScheduleChangedError(id, ifMatch, version);
        }
        const body = merged(document as unknown as JsonObject, patch);
        try {
          return await detailed(await replace(caller, previous, body, version));
        } catch (error) {
          // Somebody was first: the patch is for what there is now.
          const isPassing = error instanceof ScheduleChangedError && ifMatch === undefined;
          if (!isPassing || tries === mostTries) throw error;
        }
      }
    },
    readSchedule: async (caller, id) => detailed(await find(caller, id)),
    async listSchedules({ tenantId }, { limit = DEFAULT_PAGE_SIZE, cursor, ...filter }) {
      const { items, nextCursor } = await listSchedules(db, tenantId, filter, { limit, cursor });
      return { items: items.map(scheduleView), nextCursor };
    },
    deleteSchedule: (caller, id, ifMatch) => deleteSchedule(services, caller, id, ifMatch),
    pauseSchedule: async (caller, id, body, ifMatch) =>
      detailed(await pauseSchedule(services, caller, id, body, ifMatch)),
    resumeSchedule: async (caller, id, ifMatch) =>
      detailed(await resumeSchedule(services, caller, id, ifMatch)),
    async triggerSchedule(caller, id, idempotencyKey) {
      const { run, replayed } = await triggerSchedule(services, caller, id, idempotencyKey);
      return { run: runView(run), replayed };
    },
    async backfillSchedule(caller, id, { from, to, overlapPolicy }) {
      const range = { from: new Date(from), to: new Date(to), overlapPolicy };
      const { ticks, runs, alreadyRan } = await backfillSchedule(services, caller, id, range);
      const count = (of: string) => runs.filter(({ status }) => status === of).length;
      const [started, waiting, failed] = [count("STARTED"), count("WAITING"), count("FAILED")];
      return { ticks, started, waiting, failed, alreadyRan };
    },
    async listScheduleRuns(caller, id, { status, limit = DEFAULT_PAGE_SIZE, cursor }) {
      const { tenantId } = await find(caller, id);
      const page = { limit, cursor };
      const { items, nextCursor } = await listScheduleRuns(db, { tenantId, id }, { status }, page);
      return { items: items.map(runView), nextCursor };
    },
    async nextTicks(caller, id, { count = mostShown, after }) {
      const { tenantId, document, createdAt } = await find(caller, id);
      const calendar = await calendarOf(services, tenantId, document);
      if (calendar === null) throw new CalendarNotFoundError(document.calendarId ?? "");
      const rule = ruleOf(document, createdAt, calendar);
      const from = after === undefined ? services.clock.now() : new Date(after);
      return { items: texts(nextTicks(rule, from, count)) };
    },
  };
}

function scheduleView(schedule: StoredSchedule): ScheduleView {
  const { document, pause, status, createdAt, createdBy, updatedAt, updatedBy } = schedule;
  const {
    catchupWindow = defaultCatchup,
    jitter = defaultJitter,
    overlapPolicy = "SKIP",
  } = document;
  const rule = ruleOf(document, createdAt);
  const { tenantId, id, version, nextTickAt, lastTickAt, counts, trouble } = schedule;
  return {
    id,
    tenantId,
    type: document.type,
    target: document.target,
    timing: document.timing,
    input: document.input ?? {},
    metadata: {
      ...document.metadata,
      createdBy,
      createdAt: createdAt.toISOString(),
      lastModifiedAt: updatedAt.toISOString(),
      lastModifiedBy: updatedBy,
    },
    overlapPolicy,
    catchupWindow,
    jitter,
    calendarId: document.calendarId ?? null,
    dst: rule.kind === "cron" ? rule.dst : null,
    status,
    version,
    pause,
    nextTickAt: status === "ACTIVE" ? time(nextTickAt) : null,
    lastTickAt: time(lastTickAt),
    counts,
    trouble,
  };
}

function runView({ tickAt, startedAt, createdAt, ...run }: ScheduleRun): ScheduleRunView {
  return {
    ...run,
    tickAt: tickAt.toISOString(),
    startedAt: time(startedAt),
    createdAt: createdAt.toISOString(),
  };
}

function texts(times: readonly Date[]): string[] {
  return times.map((each) => each.toISOString());
}

/** RFC 7396. */
function merged(target: JsonValue | undefined, patch: JsonValue): JsonValue {
  if (!isJsonObject(patch)) return patch;
  const result = new Map<string, JsonValue>(isJsonObject(target) ? Object.entries(target) : []);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) result.delete(key);
    else result.set(key, merged(result.get(key), value));
  }
  return Object.fromEntries(result);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
