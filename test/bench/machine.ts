import { execFileSync } from "node:child_process";
import { cpus, release, totalmem } from "node:os";
import type { Servers } from "./servers.ts";
import { workerSettings } from "./rig.ts";
import { postgresSettings, redisSettings } from "./servers.ts";

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGb: number;
  readonly kernel: string;
  readonly node: string;
  readonly postgres: string;
  readonly redis: string;
  readonly commit: string;
  readonly settings: Readonly<Record<string, string>>;
}

export async function describeMachine({ admin, redisClient }: Servers): Promise<Machine> {
  const setting = async (name: string) => {
    const { rows } = await admin.query<{ value: string }>("select current_setting($1) as value", [
      name,
    ]);
    return rows[0]?.value ?? "";
  };
  const durability: Record<string, string> = {};
  for (const name of ["fsync", "synchronous_commit", "full_page_writes"]) {
    durability[name] = await setting(name);
  }
  const info = await redisClient.info("server");
  return {
    cpu: cpus()[0]?.model ?? "",
    cores: cpus().length,
    memoryGb: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    node: process.version,
    postgres: await setting("server_version"),
    redis: /(?:redis|valkey)_version:(\S+)/.exec(info)?.[1] ?? "",
    commit: commitOf(),
    settings: {
      ...durability,
      ...postgresSettings,
      appendonly: "yes",
      ...redisSettings,
      ...workerSettings,
    },
  };
}

/** Of the working tree, with a `+` when it has changes; empty outside a clone. */
function commitOf(): string {
  const git = (...args: string[]) =>
    execFileSync("git", args, { cwd: import.meta.dirname, encoding: "utf8", stdio: "pipe" }).trim();
  try {
    const changes = git("status", "--porcelain", "--untracked-files=no");
    return git("rev-parse", "--short", "HEAD") + (changes === "" ? "" : "+");
  } catch {
    return "";
  }
}
