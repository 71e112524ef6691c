import { DatabaseTlsError, StoreError } from "@millrace/store";
import { SettingsError } from "./settings.ts";
import { ownFrames } from "./worker/own-frames.ts";

/** What keeps a program from starting, in words that say all that its operator needs. */
export class StartError extends Error {}

/**
 * Why a program did not start, for its operator: what is wrong and what to do about it. Where the fault may
 * be ours, or is in a module of theirs, with the lines of code that lead there.
 */
export function describeStartFailure(error: unknown): string {
  if (!(error instanceof Error)) return `could not start: ${String(error)}`;
  if (error instanceof SettingsError) return error.message;
  if (error instanceof StartError) return `could not start: ${error.message}`;
  const advice = adviceOn(error);
  if (advice !== undefined) return `could not start: ${error.message}. ${advice}`;
  return `could not start: ${[error, ...causesOf(error)].map(withLines).join("\ncaused by ")}`;
}

function withLines(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const frames = ownFrames(error);
  if (frames.length > 0) return `${error.name}: ${error.message}\n${frames.join("\n")}`;
  return error.stack ?? error.message;
}

/** More of them say nothing more; one may be its own. */
const mostCauses = 4;

function causesOf(error: Error): readonly unknown[] {
  const causes: unknown[] = [];
  let { cause } = error;
  while (cause !== undefined && causes.length < mostCauses) {
    causes.push(cause);
    cause = cause instanceof Error ? cause.cause : undefined;
  }
  return causes;
}

function adviceOn(error: Error): string | undefined {
  if (error instanceof DatabaseTlsError) return tlsAdvice[error.kind];
  if (error instanceof StoreError) {
    const { sqlState = "" } = error;
    return databaseAdvice.find(([states]) => states.test(sqlState))?.[1] ?? unreachable;
  }
  return portAdvice.get((error as NodeJS.ErrnoException).code ?? "");
}

const unreachable = "Does it run, and does DATABASE_URL say where?";

const tlsAdvice: Readonly<Record<DatabaseTlsError["kind"], string>> = {
  absent:
    "Turn it on in the server, or, where the network in between can be trusted, say sslmode=disable in DATABASE_URL",
  untrusted:
    "Where the server has a certificate of an authority of your own, name that by sslrootcert in DATABASE_URL, and the host as the certificate does",
  file: "See sslrootcert, sslcert and sslkey in DATABASE_URL",
};

/** By the state that Postgres answered with. */
const databaseAdvice: readonly (readonly [RegExp, string])[] = [
  [/^28/, "User and password are those of DATABASE_URL"],
  [/^3D/, "Create it, or name another in DATABASE_URL; then bring it up to date: millrace migrate"],
  [/^42(P01|703|883|704)$/, "The database lacks the schema, or has an older one: millrace migrate"],
  [/^42501$/, "Grant that to the user of DATABASE_URL"],
];

const ports = "(PORT or --port of the API, MILLRACE_METRICS_PORT of a worker or scheduler)";

const portAdvice = new Map([
  ["EADDRINUSE", `Something else listens there: choose another port ${ports}`],
  ["EADDRNOTAVAIL", "This machine has no such address: see HOST"],
  ["EACCES", `Choose a port from 1024 on ${ports}, or grant the right to listen there`],
  ["ENOTFOUND", "No such host is known: see HOST"],
]);
