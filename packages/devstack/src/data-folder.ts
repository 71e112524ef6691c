import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { waitUntil } from "./guard.ts";
import { identityOf, isAlive, type ProcessIdentity } from "./process-identity.ts";

/**
 * A data folder belongs to one server at a time. `process.json` in it names the server and the
 * process that started it, so that
 *
 * - a second start while the first still runs is refused, and
 * - a server whose starter is dead (kill -9 before the guard could act) is ended by the next start.
 */
interface Claim {
  readonly owner: ProcessIdentity;
  readonly server: ProcessIdentity | undefined;
}

/** Another living process has its server running in this folder. */
export class DataFolderInUseError extends Error {
  readonly code = "DATA_FOLDER_IN_USE";
  readonly folder: string;
  readonly ownerPid: number;
  constructor(folder: string, ownerPid: number) {
    super(
      `the data folder ${folder} is in use by process ${ownerPid}; stop that one, or name another folder`,
    );
    this.name = "DataFolderInUseError";
    this.folder = folder;
    this.ownerPid = ownerPid;
  }
}

/** Creates the folder if need be, ends the server a dead process left in it, and takes it. */
export async function claimFolder(folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const former = readClaim(folder);
  if (former !== undefined) {
    const serverLives = former.server !== undefined && isAlive(former.server);
    if (isAlive(former.owner) && (serverLives || former.owner.pid !== process.pid)) {
      throw new DataFolderInUseError(folder, former.owner.pid);
    }
    if (serverLives && former.server !== undefined) await endStale(former.server);
  }
  writeClaim(folder, undefined);
}

/** Notes which server now runs in a claimed folder. */
export function recordServer(folder: string, pid: number): void {
  writeClaim(folder, identityOf(pid));
}

export function releaseFolder(folder: string): void {
  rmSync(join(folder, "process.json"), { force: true });
}

/** INT is a quick and clean end for both Postgres and Redis. */
async function endStale(server: ProcessIdentity): Promise<void> {
  const send = (signal: NodeJS.Signals) => {
    try {
      process.kill(server.pid, signal);
    } catch {
      // It ended in this very moment.
    }
  };
  send("SIGINT");
  send("SIGCONT");
  if (await waitUntil(() => !isAlive(server), 10_000)) return;
  send("SIGKILL");
  await waitUntil(() => !isAlive(server), 10_000);
}

function readClaim(folder: string): Claim | undefined {
  try {
    const claim = JSON.parse(readFileSync(join(folder, "process.json"), "utf8")) as Partial<Claim>;
    return claim.owner === undefined ? undefined : { owner: claim.owner, server: claim.server };
  } catch {
    return undefined;
  }
}

function writeClaim(folder: string, server: ProcessIdentity | undefined): void {
  const owner = identityOf(process.pid) ?? { pid: process.pid, started: "unknown" };
  writeFileSync(join(folder, "process.json"), JSON.stringify({ owner, server }));
}
