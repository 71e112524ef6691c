/** What the environment tells the command line itself; the processes it starts read theirs. */
export interface Settings {
  readonly apiUrl: string;
  readonly databaseUrl: string | undefined;
  readonly redisUrl: string | undefined;
  /** `postgres` does without Redis even where there is one. */
  readonly queueBackend: "redis" | "postgres" | undefined;
  /** Whether colours are wanted; `undefined` leaves it to the terminal. */
  readonly isColoured: boolean | undefined;
}

export const DEFAULT_API_URL = "http://127.0.0.1:8080";

export function readSettings(environment: NodeJS.ProcessEnv = process.env): Settings {
  const value = (name: string) => environment[name]?.trim() || undefined;
  const backend = value("MILLRACE_QUEUE_BACKEND");
  return {
    apiUrl: value("MILLRACE_API") ?? DEFAULT_API_URL,
    databaseUrl: value("DATABASE_URL"),
    redisUrl: value("REDIS_URL"),
    queueBackend: backend === "postgres" || backend === "redis" ? backend : undefined,
    isColoured: colours(environment),
  };
}

/** Hands options to a program that is started as a module of this process. */
export function setEnvironment(values: Readonly<Record<string, string | undefined>>): void {
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined) process.env[name] = value;
  }
}

/** https://no-color.org, and the opposite that Node itself follows. */
function colours(environment: NodeJS.ProcessEnv): boolean | undefined {
  if (environment["NO_COLOR"]) return false;
  const forced = environment["FORCE_COLOR"];
  if (forced !== undefined) return forced !== "0";
  return environment["TERM"] === "dumb" ? false : undefined;
}
