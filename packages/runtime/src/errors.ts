import { shownLimit } from "@millrace/store";

/** A fault of one place in a document or body: a JSON pointer, a stable code, words for a person. */
export interface Problem {
  readonly path: string;
  readonly code: string;
  readonly message: string;
}

/** What the runtime refuses or cannot do, with a code of the contract's table. */
export abstract class MillraceError extends Error {
  abstract readonly code: string;
  readonly problems?: readonly Problem[];
  /** Seconds after which asking again makes sense. */
  readonly retryAfterSeconds?: number;
}

export class InvalidDefinitionError extends MillraceError {
  override readonly name = "InvalidDefinitionError";
  readonly code = "INVALID_DEFINITION";
  override readonly problems: readonly Problem[];
  constructor(problems: readonly Problem[]) {
    super(`the workflow definition has ${count(problems, "violation")}`);
    this.problems = problems;
  }
}

export class InvalidCalendarError extends MillraceError {
  override readonly name = "InvalidCalendarError";
  readonly code = "INVALID_CALENDAR";
  override readonly problems: readonly Problem[];
  constructor(problems: readonly Problem[]) {
    super(`the calendar has ${count(problems, "violation")}`);
    this.problems = problems;
  }
}

export class CalendarNotFoundError extends MillraceError {
  override readonly name = "CalendarNotFoundError";
  readonly code = "CALENDAR_NOT_FOUND";
  constructor(id: string) {
    super(`there is no calendar "${id}"`);
  }
}

export class WebhookNotFoundError extends MillraceError {
  override readonly name = "WebhookNotFoundError";
  readonly code = "WEBHOOK_NOT_FOUND";
  constructor(id: string) {
    super(`there is no webhook ${id}`);
  }
}

export class CalendarExistsError extends MillraceError {
  override readonly name = "CalendarExistsError";
  readonly code = "CALENDAR_EXISTS";
  constructor(id: string) {
    super(`there is a calendar "${id}" already; PUT /v1/calendars/${id} changes it`);
  }
}

export class CalendarChangedError extends MillraceError {
  override readonly name = "CalendarChangedError";
  readonly code = "PRECONDITION_FAILED";
  /** @param version The one that is there; undefined: none is. */
  constructor(id: string, version: number | undefined) {
    const now = version === undefined ? "is not there" : `is at version ${version}`;
    super(`calendar "${id}" ${now}; read it again before you change it`);
  }
}

/** What an input is refused for. A check that was given up, or not begun, says nothing about the input. */
export function inputRefusal(workflowId: string, problems: readonly Problem[]): string {
  const schema = `the inputSchema of "${workflowId}"`;
  if (isOfSchema(problems)) {
    return `no input can be checked against ${schema}, which an earlier release took; register it anew`;
  }
  const what = isGivenUp(problems) ? "takes too long to be checked against" : "does not match";
  return `the input ${what} ${schema}`;
}

function isOfSchema(problems: readonly Problem[]): boolean {
  return problems.some(({ path }) => path === "/inputSchema" || path.startsWith("/inputSchema/"));
}

function isGivenUp(problems: readonly Problem[]): boolean {
  return problems.some(({ code }) => code === "TOO_COSTLY");
}

export class InvalidInputError extends MillraceError {
  override readonly name = "InvalidInputError";
  readonly code = "INVALID_INPUT";
  override readonly problems: readonly Problem[];
  constructor(workflowId: string, problems: readonly Problem[]) {
    const refusal = inputRefusal(workflowId, problems);
    super(
      isGivenUp(problems) || isOfSchema(problems)
        ? refusal
        : `${refusal}: ${count(problems, "violation")}`,
    );
    this.problems = problems;
  }
}

export class InvalidScenarioError extends MillraceError {
  override readonly name = "InvalidScenarioError";
  readonly code = "INVALID_BODY";
  override readonly problems: readonly Problem[];
  constructor(problems: readonly Problem[]) {
    super(`the scenario has ${count(problems, "violation")}`);
    this.problems = problems;
  }
}

export class WorkflowNotFoundError extends MillraceError {
  override readonly name = "WorkflowNotFoundError";
  readonly code = "WORKFLOW_NOT_FOUND";
  constructor(workflowId: string, version?: number) {
    super(
      version === undefined
        ? `no workflow "${workflowId}" is registered; register its definition first`
        : `workflow "${workflowId}" has no version ${version}`,
    );
  }
}

export class InstanceNotFoundError extends MillraceError {
  override readonly name = "InstanceNotFoundError";
  readonly code = "INSTANCE_NOT_FOUND";
  constructor(instanceId: string) {
    super(`there is no instance ${instanceId}`);
  }
}

export class InvalidScheduleError extends MillraceError {
  override readonly name = "InvalidScheduleError";
  readonly code = "INVALID_SCHEDULE";
  override readonly problems: readonly Problem[];
  constructor(problems: readonly Problem[]) {
    super(`the schedule has ${count(problems, "violation")}`);
    this.problems = problems;
  }
}

export class InvalidBackfillError extends MillraceError {
  override readonly name = "InvalidBackfillError";
  readonly code = "INVALID_BODY";
  override readonly problems: readonly Problem[];
  constructor(path: string, code: string, message: string) {
    super(message);
    this.problems = [{ path, code, message }];
  }
}

export class ScheduleNotFoundError extends MillraceError {
  override readonly name = "ScheduleNotFoundError";
  readonly code = "SCHEDULE_NOT_FOUND";
  constructor(id: string) {
    super(`there is no schedule ${id}`);
  }
}

export class ScheduleExistsError extends MillraceError {
  override readonly name = "ScheduleExistsError";
  readonly code = "SCHEDULE_EXISTS";
  constructor(id: string) {
    super(`there is a schedule ${id} already, and it is another one; change it with PUT or PATCH`);
  }
}

export class ScheduleStatusError extends MillraceError {
  override readonly name = "ScheduleStatusError";
  readonly code = "STATUS_CONFLICT";
  constructor(verb: string, id: string, status: string) {
    super(`schedule ${id} is ${status}, so it cannot be ${verb}`);
  }
}

export class ScheduleChangedError extends MillraceError {
  override readonly name = "ScheduleChangedError";
  readonly code = "PRECONDITION_FAILED";
  constructor(id: string, expected: number, actual: number) {
    super(
      `schedule ${id} is at version ${actual}, not ${expected}; read it again before you change it`,
    );
  }
}

export class DeadLetterNotFoundError extends MillraceError {
  override readonly name = "DeadLetterNotFoundError";
  readonly code = "DEAD_LETTER_NOT_FOUND";
  constructor(id: string) {
    super(`there is no dead letter ${id}`);
  }
}

export class DeadLetterResolvedError extends MillraceError {
  override readonly name = "DeadLetterResolvedError";
  readonly code = "DEAD_LETTER_RESOLVED";
  constructor(id: string, status: string) {
    super(`dead letter ${id} is ${status}: there is nothing left to do with it`);
  }
}

export class VersionNotFoundError extends MillraceError {
  override readonly name = "VersionNotFoundError";
  readonly code = "VERSION_NOT_FOUND";
  constructor(instanceId: string, version: number, latest?: number) {
    super(
      latest === undefined
        ? `the history of instance ${instanceId} does not reach version ${version}`
        : `instance ${instanceId} has no version ${version} yet; it is at ${latest}`,
    );
  }
}

export class StatusConflictError extends MillraceError {
  override readonly name = "StatusConflictError";
  readonly code = "STATUS_CONFLICT";
  constructor(verb: string, instanceId: string, status: string) {
    super(`instance ${instanceId} is ${status}, so it cannot be ${verb}`);
  }
}

export class LimitNotFoundError extends MillraceError {
  override readonly name = "LimitNotFoundError";
  readonly code = "LIMIT_NOT_FOUND";
  constructor(id: string) {
    super(`there is no limit "${id}"`);
  }
}

/** It is not the one that was read. */
export class LimitChangedError extends MillraceError {
  override readonly name = "LimitChangedError";
  readonly code = "PRECONDITION_FAILED";
  /** @param version The version that is stored; undefined: there is none. */
  constructor(id: string, version: number | undefined) {
    super(
      version === undefined
        ? `limit "${id}" has not been set, so that it has no version`
        : `limit "${id}" is at version ${version}, not at the one of If-Match`,
    );
  }
}

export class TooManyLimitsError extends MillraceError {
  override readonly name = "TooManyLimitsError";
  readonly code = "TOO_MANY_LIMITS";
  constructor(most: number) {
    super(`a tenant has ${most} limits at most; delete some that are not needed`);
  }
}

/** That of all tenants is for whoever stands for the whole installation. */
export class GlobalLimitError extends MillraceError {
  override readonly name = "GlobalLimitError";
  readonly code = "LIMIT_NOT_FOUND";
  constructor() {
    super(
      'the limit "global" is that of the whole installation, and no tenant\'s; leave out the header Millrace-Tenant',
    );
  }
}

export class NotQueuedError extends MillraceError {
  override readonly name = "NotQueuedError";
  readonly code = "STATUS_CONFLICT";
  constructor(instanceId: string, status: string) {
    super(
      `instance ${instanceId} is ${status} and waits for no slot under a limit, so it cannot be promoted`,
    );
  }
}

export class RetryRefusedError extends MillraceError {
  override readonly name = "RetryRefusedError";
  readonly code = "STATUS_CONFLICT";
  /** @param why As `is COMPLETED`. */
  constructor(instanceId: string, why: string) {
    super(`instance ${instanceId} ${why}, so it cannot be retried`);
  }
}

export class UnknownStepError extends MillraceError {
  override readonly name = "UnknownStepError";
  readonly code = "UNKNOWN_STEP";
  override readonly problems: readonly Problem[];
  constructor(message: string) {
    super(message);
    this.problems = [{ path: "/fromStepId", code: "UNKNOWN_STEP", message }];
  }
}

export class InvalidPatchError extends MillraceError {
  override readonly name = "InvalidPatchError";
  readonly code = "INVALID_BODY";
  override readonly problems: readonly Problem[];
  constructor(message: string) {
    super(message);
    this.problems = [{ path: "/state/variables", code: "TOO_LARGE", message }];
  }
}

export class PreconditionFailedError extends MillraceError {
  override readonly name = "PreconditionFailedError";
  readonly code = "PRECONDITION_FAILED";
  constructor(instanceId: string, expected: number, actual: number) {
    super(
      `instance ${instanceId} is at version ${actual}, not ${expected}; read it again before you change it`,
    );
  }
}

export class IdempotencyConflictError extends MillraceError {
  override readonly name = "IdempotencyConflictError";
  readonly code = "IDEMPOTENCY_CONFLICT";
  constructor(key: string) {
    super(`Idempotency-Key "${key}" was used for a start with another body`);
  }
}

export class ReservedPatternError extends MillraceError {
  override readonly name = "ReservedPatternError";
  readonly code = "RESERVED_PATTERN";
  constructor(pattern: string) {
    super(
      `patterns under "workflow." are reserved for lifecycle events, so "${pattern}" cannot be published`,
    );
  }
}

/** A limit is reached, and so is the number of those that may wait for a slot under it. */
export class QueueFullError extends MillraceError {
  override readonly name = "QueueFullError";
  readonly code = "TOO_MANY_QUEUED";
  override readonly retryAfterSeconds = 5;
  constructor(workflowId: string, limitKey: string, maxQueued: number) {
    const of = limitKey.startsWith("type:")
      ? `workflow "${workflowId}"`
      : `limit "${shownLimit(limitKey)}"`;
    super(
      `all slots of ${of} are taken, and ${count(maxQueued, "instance")} ${maxQueued === 1 ? "is" : "are"} queued, which is its maxQueued; try again later`,
    );
  }
}

/** Verbs from outside give up after a while; results of steps never do. */
export class BusyError extends MillraceError {
  override readonly name = "BusyError";
  readonly code = "BUSY";
  override readonly retryAfterSeconds = 1;
  constructor(instanceId: string) {
    super(`instance ${instanceId} changes too fast right now; try again`);
  }
}

export class ScheduleBusyError extends MillraceError {
  override readonly name = "ScheduleBusyError";
  readonly code = "BUSY";
  override readonly retryAfterSeconds = 1;
  constructor(id: string) {
    super(`schedule ${id} changes too fast right now, or has much to make up for; try again`);
  }
}

export class SimulationsBusyError extends MillraceError {
  override readonly name = "SimulationsBusyError";
  readonly code = "BUSY";
  override readonly retryAfterSeconds = 5;
  constructor(others: number) {
    super(
      `${count(others, "simulation")} run or wait in this process already; try again, or simulate on the command line`,
    );
  }
}

/** Its thread did not come to load what simulates, in the time for that or before the process closed. */
export class SimulationNotBegunError extends MillraceError {
  override readonly name = "SimulationNotBegunError";
  readonly code = "BUSY";
  override readonly retryAfterSeconds = 5;
  constructor() {
    super(
      "the simulation has not begun, since its thread did not load; try again, or simulate on the command line",
    );
  }
}

/** Of the checks of inputs against schemas that take long. */
export class ChecksBusyError extends MillraceError {
  override readonly name = "ChecksBusyError";
  readonly code = "BUSY";
  override readonly retryAfterSeconds = 5;
  constructor() {
    super(
      "checks of inputs that take long wait for each other, this one for too long; try again, or simplify the patterns and references of the inputSchema",
    );
  }
}

function count(what: readonly Problem[] | number, noun: string): string {
  const number = typeof what === "number" ? what : what.length;
  return number === 1 ? `a ${noun}` : `${number} ${noun}s`;
}
