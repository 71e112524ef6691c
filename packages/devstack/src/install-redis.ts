import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { inheritedEnvironment } from "./config.ts";
import { findRedis } from "./redis.ts";

/**
 * Installs Debian's redis-server when there is no Redis, this is Debian or one of its children, and
 * the user is root. Only `npm test` asks for it: nothing else changes a machine.
 *
 * The package would start a service of its own; it is kept from starting, now and at the next boot.
 *
 * @returns Whether there is a Redis now.
 */
export function installRedisOnDebian(say: (line: string) => void): boolean {
  if (findRedis() !== undefined) return true;
  if (process.getuid?.() !== 0 || !isDebian() || !existsSync("/usr/bin/apt-get")) return false;

  say("No Redis on this machine: installing Debian's redis-server (apt-get), its service off …");
  const policyFile = "/usr/sbin/policy-rc.d";
  const isPolicyOurs = !existsSync(policyFile);
  if (isPolicyOurs) {
    // Debian's own switch: with 101 no package may start a service while it is installed.
    writeFileSync(policyFile, "#!/bin/sh\nexit 101\n");
    chmodSync(policyFile, 0o755);
  }
  try {
    run("apt-get", ["update", "-qq"]);
    run("apt-get", ["install", "-y", "-qq", "--no-install-recommends", "redis-server"]);
  } catch (error) {
    say(`apt-get failed: ${error instanceof Error ? error.message : String(error)}`);
    return false;
  } finally {
    if (isPolicyOurs) rmSync(policyFile, { force: true });
  }
  if (existsSync("/run/systemd/system")) {
    try {
      run("systemctl", ["disable", "--now", "redis-server"]);
    } catch {
      say("The service redis-server could not be disabled; Millrace does not use it.");
    }
  }
  return findRedis() !== undefined;
}

function isDebian(): boolean {
  try {
    return /^(ID|ID_LIKE)=.*\bdebian\b/m.test(readFileSync("/etc/os-release", "utf8"));
  } catch {
    return false;
  }
}

function run(command: string, args: readonly string[]): void {
  execFileSync(command, args, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...inheritedEnvironment(), DEBIAN_FRONTEND: "noninteractive" },
  });
}
