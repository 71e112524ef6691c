import { commitBatch, createBatch, driverUrl, openDatabase, stricterMode } from "@millrace/store";
import type { CommitOutcome, Commit, DatabaseHandle } from "@millrace/store";
import { openQueue } from "@millrace/queue";
import type { Queue } from "@millrace/queue";
import { createLog, createMetrics } from "@millrace/telemetry";
import type { Count, Log, LogLevel, Metrics } from "@millrace/telemetry";
import { openClock } from "./clock.ts";
import type { Clock } from "./clock.ts";
import { openCommitter } from "./committer.ts";
import { openDefinitionCache } from "./definitions/definition-cache.ts";
import type { DefinitionCache } from "./definitions/definition-cache.ts";
import { openSimulations } from "./definitions/simulations.ts";
import type { Simulations } from "./definitions/simulations.ts";
import { openEmissions } from "./events/emissions.ts";
import type { Emissions } from "./events/emissions.ts";
import { openEventIntake } from "./events/event-intake.ts";
import type { EventIntake } from "./events/event-intake.ts";
import { matchEmitted } from "./events/match-emitted.ts";
import { openInstanceWakes } from "./instances/instance-wakes.ts";
import type { InstanceWakes } from "./instances/instance-wakes.ts";
import { openQueuedStarts } from "./instances/queued-starts.ts";
import { openLimitCache } from "./limits/limit-cache.ts";
import type { LimitCache } from "./limits/limit-cache.ts";
import { openLoader } from "./loader.ts";
import type { Loader } from "./loader.ts";
import { openMissedJobs } from "./missed-jobs.ts";
import type { MissedJobs } from "./missed-jobs.ts";
import { openAnnouncements } from "./streams/announcements.ts";
import type { Announcements } from "./streams/announcements.ts";
import { openFeed } from "./streams/follow-all.ts";
import type { Feed } from "./streams/follow-all.ts";
import { openWatch } from "./streams/watch.ts";
import type { Watch } from "./streams/watch.ts";

/** On whose behalf something is done. */
export interface Caller {
  readonly tenantId: string;
  readonly actor: string;
}

/** What every verb works with: a plain record, passed explicitly. */
export interface Services {
  readonly database: DatabaseHandle;
  readonly queue: Queue;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly definitions: DefinitionCache;
  readonly limits: LimitCache;
  readonly simulations: Simulations;
  readonly wakes: InstanceWakes;
  readonly load: Loader;
  readonly intake: EventIntake;
  readonly missed: MissedJobs;
  readonly emissions: Emissions;
  readonly announcements: Announcements;
  readonly watch: Watch;
  readonly feed: Feed;
  /** Commits of this process, grouped. */
  readonly commit: (commit: Commit) => Promise<CommitOutcome>;
  /** First commits of new instances, grouped. */
  readonly create: (commit: Commit) => Promise<CommitOutcome>;
  /** The same, where a limit bounds those that wait. */
  readonly createQueued: (commit: Commit) => Promise<CommitOutcome>;
}

export interface ServicesSettings {
  /** Names the process in logs and among the database's connections. */
  readonly name: string;
  readonly databaseUrl: string;
  /** Absent where BullMQ works on Postgres. */
  readonly redisUrl?: string | undefined;
  readonly queueBackend: "redis" | "postgres";
  readonly keyPrefix: string;
  readonly poolSize: number;
  readonly logLevel: LogLevel;
  /** Gets what is counted as well, where another process is to tell of it. */
  readonly onCount?: ((count: Count) => void) | undefined;
}

/** How long a process that starts waits for Postgres. */
const databaseWaitMs = 60_000;

/**
 * Starts for which a second statement is opened beside one that is under way. Single calls, 32 in
 * flight: 463 → 425 µs of API and 132 → 106 µs of Postgres each. For commits of steps it gains nothing.
 */
const leastStarts = 25;

/** Steps that one job carries at most: beyond this a job costs little beside its steps. */
const bundleSize = 25;

/** Waits for Postgres; a Redis that is away is no hindrance. */
export async function openServices(settings: ServicesSettings): Promise<Services> {
  const { name, databaseUrl, redisUrl, queueBackend, keyPrefix, poolSize, logLevel, onCount } =
    settings;
  const log = createLog({ level: logLevel, name });
  const metrics = createMetrics({ onCount });
  const taken = stricterMode(databaseUrl);
  if (taken !== undefined) {
    log.warn(
      { sslmode: taken },
      "DATABASE_URL: this sslmode is taken for verify-full, which checks the server's certificate and its name; say verify-full, or, for what libpq makes of it, uselibpqcompat=true as well",
    );
  }
  const database = await openDatabase({
    url: databaseUrl,
    poolSize,
    applicationName: `millrace-${name}`,
    waitMs: databaseWaitMs,
    log,
  });
  const queue = await openQueue({
    ...(queueBackend === "redis" && redisUrl !== undefined
      ? { redisUrl }
      : { postgresUrl: driverUrl(databaseUrl) }),
    prefix: keyPrefix,
    bundleSize,
    log,
  });
  const clock = await openClock(database, log);
  const definitions = openDefinitionCache(database.db);
  const missed = openMissedJobs({ db: database.db, queue, clock, log });
  const limits = openLimitCache(database.db);
  const createQueued = openQueuedStarts({ database, definitions, limits });
  const services: Services = {
    database,
    queue,
    clock,
    log,
    metrics,
    definitions,
    limits,
    simulations: openSimulations(),
    wakes: openInstanceWakes(queue),
    load: openLoader(database.db),
    intake: openEventIntake(database.db),
    missed,
    emissions: openEmissions((keys) => matchEmitted(services, keys)),
    announcements: openAnnouncements(queue.wake),
    watch: openWatch(database.db, queue, log),
    feed: openFeed(database.db),
    commit: openCommitter(database.db, metrics, (db, commits) =>
      missed.aware(() => commitBatch(db, commits)),
    ),
    create: openCommitter(
      database.db,
      metrics,
      (db, commits) => missed.aware(() => createBatch(db, commits)),
      leastStarts,
    ),
    createQueued: (commit) => missed.aware(() => createQueued(commit)),
  };
  // What was missed is found by the age of what is at hand.
  queue.wake.subscribe("limit", () => {
    limits.reload(database.db).catch((error: unknown) => {
      log.debug({ err: error }, "limits are read again later");
    });
  });
  return services;
}

export async function closeServices(services: Services): Promise<void> {
  const { simulations, emissions, announcements, watch, missed, queue, clock, database } = services;
  announcements.close();
  watch.close();
  await simulations.close();
  await emissions.close();
  await missed.close();
  await clock.close();
  await queue.close();
  await database.close();
}
