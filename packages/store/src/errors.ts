import pg from "pg";

/** What can go wrong in Postgres, sorted by what a caller can do about it. */
export abstract class StoreError extends Error {
  abstract readonly code: string;
  /** The same call may succeed later. */
  abstract readonly retryable: boolean;
  /** Postgres's own code, where it answered. */
  readonly sqlState: string | undefined;

  constructor(message: string, cause: unknown) {
    super(message, { cause });
    this.sqlState = sqlStateOf(cause);
  }
}

/**
 * Postgres cannot be reached, or ended the connection. A statement that was under way may have been
 * committed: it is in doubt until it is looked up (see commit.ts).
 */
export class DatabaseUnavailableError extends StoreError {
  override readonly name = "DatabaseUnavailableError";
  readonly code = "DATABASE_UNAVAILABLE";
  readonly retryable = true;
}

/**
 * Two transactions stood in each other's way, or a migration in that of one that was under way, and this one
 * was given up whole.
 */
export class TransactionConflictError extends StoreError {
  override readonly name = "TransactionConflictError";
  readonly code = "TRANSACTION_CONFLICT";
  readonly retryable = true;
}

/** A statement ran into the time that one may take, and was undone. */
export class StatementTimeoutError extends StoreError {
  override readonly name = "StatementTimeoutError";
  readonly code = "STATEMENT_TIMEOUT";
  readonly retryable = true;
}

/** Postgres refuses the values themselves: trying again with the same ones is pointless. */
export class DataRefusedError extends StoreError {
  override readonly name = "DataRefusedError";
  readonly code = "DATA_REFUSED";
  readonly retryable = false;
}

/**
 * The history has a row already at the version that a commit is to make, of which the instance's row knows
 * nothing: somebody has restored or changed one of the two. Nothing is written over it.
 */
export class HistoryAheadError extends StoreError {
  override readonly name = "HistoryAheadError";
  readonly code = "INSTANCE_DAMAGED";
  readonly retryable = false;
  constructor(instanceId: string, version: number, cause: unknown) {
    super(
      `instance ${instanceId} is at version ${version}, and its history goes beyond that: it stays as it is until the two agree; see what is wrong with GET /v1/instances/${instanceId}/consistency, and repair it: millrace doctor --instance ${instanceId} --repair`,
      cause,
    );
  }
}

/** Anything else that Postgres reports: a fault of ours or of its set-up. */
export class DatabaseFaultError extends StoreError {
  override readonly name = "DatabaseFaultError";
  readonly code = "DATABASE_FAULT";
  readonly retryable = false;
}

/** TLS cannot be had as the URL asks for it: a fault of the set-up, which waiting does not mend. */
export class DatabaseTlsError extends StoreError {
  override readonly name = "DatabaseTlsError";
  readonly code = "DATABASE_FAULT";
  readonly retryable = false;
  readonly kind: keyof typeof tlsFaults;
  constructor(kind: keyof typeof tlsFaults, cause: Error) {
    super(`${tlsFaults[kind]}: ${cause.message}`, cause);
    this.kind = kind;
  }
}

const tlsFaults = {
  absent: "Postgres offers no TLS, which the URL asks for",
  untrusted: "TLS to Postgres cannot be established",
  file: "a file that the URL names for TLS is of no use",
} as const;

/** A cursor that this API did not give out, or gave out for another list. */
export class BadCursorError extends Error {
  override readonly name = "BadCursorError";
  readonly code = "BAD_CURSOR";
  readonly retryable = false;
}

/** Whether waiting and trying again makes sense. */
export function isTransient(error: unknown): error is StoreError {
  return error instanceof StoreError && error.retryable;
}

/** The error as one of the above; what is one already, and what did not come from Postgres, stays. */
export function storeErrorOf(error: unknown): unknown {
  if (error instanceof StoreError || !(error instanceof Error)) return error;
  const sqlState = sqlStateOf(error);
  if (sqlState === undefined) {
    if (isConnectionLoss(error)) {
      return new DatabaseUnavailableError(`Postgres cannot be reached: ${error.message}`, error);
    }
    const tlsFault = tlsFaultOf(error);
    return tlsFault === undefined ? error : new DatabaseTlsError(tlsFault, error);
  }
  const said = `Postgres answered ${sqlState}: ${error.message}`;
  if (unavailable.test(sqlState)) return new DatabaseUnavailableError(said, error);
  if (conflicts.test(sqlState)) return new TransactionConflictError(said, error);
  if (sqlState === queryCanceled) return new StatementTimeoutError(said, error);
  if (refusals.test(sqlState)) return new DataRefusedError(said, error);
  return new DatabaseFaultError(said, error);
}

/** Whether the connection that this error came from is of no more use. */
export function breaksConnection(error: unknown): boolean {
  const sqlState = sqlStateOf(error);
  return sqlState === undefined || unavailable.test(sqlState) || isStalePlan(error);
}

/** What was prepared gives other columns by now: a migration has added one. */
export function isStalePlan(error: unknown): boolean {
  return sqlStateOf(error) === stalePlan;
}

/**
 * Connection exceptions, lack of resources, an operator's intervention (57P01 … 57P05: terminated,
 * starting up, shutting down), a server that has become a read-only standby, a transaction that this
 * process left standing for too long (25P03, 25P04), and I/O errors.
 */
const unavailable = /^(08|53|57P|25006|25P03|25P04|58)/;
/** Serialization failure, deadlock, lock timeout, a stale plan. */
const conflicts = /^(40001|40P01|55P03|0A000)$/;
/** "cached plan must not change result type", the only thing that we ask for and is not supported. */
const stalePlan = "0A000";
const queryCanceled = "57014";
/** Data exceptions, broken constraints, limits of the server such as the size of an index row. */
const refusals = /^(22|23|54)/;

function sqlStateOf(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.code : undefined;
}

/** The constraint that Postgres says was broken. */
export function brokenConstraintOf({ cause }: StoreError): string | undefined {
  return cause instanceof pg.DatabaseError ? cause.constraint : undefined;
}

/** What node and the driver say when a connection cannot be had, or is gone. */
function isConnectionLoss(error: Error): boolean {
  const { code, syscall } = error as NodeJS.ErrnoException;
  // Whatever keeps a socket from being connected: a Unix one may not be there (ENOENT), or be another user's (EACCES).
  if (syscall === "connect" || (code !== undefined && lossCodes.has(code))) return true;
  if (error instanceof AggregateError) {
    return error.errors.some((each) => each instanceof Error && isConnectionLoss(each));
  }
  return lossMessages.test(error.message);
}

/** By what node and the driver say. The driver reads the files whenever it opens a connection. */
function tlsFaultOf(error: Error): DatabaseTlsError["kind"] | undefined {
  const { code = "", syscall } = error as NodeJS.ErrnoException;
  if (error.message === "The server does not support SSL connections") return "absent";
  if (syscall === "open" || code === "EISDIR" || fileCodes.test(code)) return "file";
  return tlsCodes.test(code) ? "untrusted" : undefined;
}

/** Of OpenSSL: what is read is no certificate or key, or they are none of each other. */
const fileCodes = /^ERR_OSSL_(PEM|X509|ASN1)_/;

/** Of OpenSSL, and of node's own check of the certificate's name. */
const tlsCodes =
  /^(ERR_(TLS|SSL|OSSL)_|EPROTO$|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH$|INVALID_(CA|PURPOSE)$)/;

const lossCodes = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
]);

const lossMessages =
  /Connection terminated|timeout exceeded when trying to connect|Query read timeout|not queryable|client has encountered a connection error|Client was closed/i;
