import { pino } from "pino";
import { messageOf, redact, redactText, viewOfError } from "./redact.ts";

/** A pino logger. Messages are sentences about what happened; everything else is a field. */
export type Log = pino.Logger;

export const logLevels = ["fatal", "error", "warn", "info", "debug", "trace", "silent"] as const;
export type LogLevel = (typeof logLevels)[number];

/** The ids by which lines of one request, instance, step or worker are found, under these names. */
export interface LogContext {
  readonly tenantId?: string;
  readonly instanceId?: string;
  readonly workflowId?: string;
  readonly stepId?: string;
  readonly path?: string;
  readonly attempt?: number;
  readonly taskId?: string;
  readonly workerId?: string;
  readonly requestId?: string;
}

export interface LogOptions {
  readonly level: LogLevel;
  /** The process: `api`, `worker`, `scheduler`. */
  readonly name: string;
  /** Standard output when absent. */
  readonly destination?: { write(line: string): void };
}

/**
 * Creates the logger of a process: one JSON line each, with ISO times.
 *
 * Fields whose names speak of secrets are masked at any depth of plain objects, passwords in URLs
 * wherever they stand, and of errors only what is known to be harmless is written.
 */
export function createLog({ level, name, destination }: LogOptions): Log {
  const options: pino.LoggerOptions = {
    level,
    name,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: {
      level: (label) => ({ level: label }),
      log: (fields) => redact(fields),
    },
    serializers: {
      err: viewOfError,
      req: ({ id, method, url }: { id?: unknown; method?: string; url?: string }) => ({
        id,
        method,
        url: url === undefined ? url : redactText(url),
      }),
      res: ({ statusCode }: { statusCode?: number }) => ({ statusCode }),
    },
    hooks: {
      logMethod(args, method) {
        const [first, second, ...rest] = args;
        // Of a lone error pino would take the message as it is.
        const lone: unknown = args.length === 1 ? first : undefined;
        try {
          if (lone instanceof Error) method.call(this, { err: lone }, redactText(messageOf(lone)));
          else if (typeof first === "string") method.call(this, redactText(first), second, ...rest);
          else if (typeof second === "string")
            method.call(this, first, redactText(second), ...rest);
          else method.apply(this, args);
        } catch (error) {
          // Whoever logs has something better to do than to fail by it: members of what users throw may throw.
          const text = [second, first].find((each) => typeof each === "string") ?? "a line";
          method.call(this, { unshown: viewOfError(error) }, redactText(text));
        }
      },
    },
  };
  return destination ? pino(options, destination) : pino(options);
}

/** A logger whose lines all carry these ids. */
export function withContext(log: Log, context: LogContext): Log {
  return log.child({ ...context });
}
