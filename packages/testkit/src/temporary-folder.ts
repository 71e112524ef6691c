import { readdirSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { identityOf } from "@millrace/devstack";

export interface TemporaryFolder {
  readonly path: string;
  remove(): Promise<void>;
}

/** A fresh folder; its name tells whose it is, so that `removeLeftovers` finds it. */
export async function createTemporaryFolder(): Promise<TemporaryFolder> {
  const path = await mkdtemp(join(tmpdir(), `millrace-test-${process.pid}-`));
  return { path, remove: () => rm(path, { recursive: true, force: true }) };
}

/** Removes the folders of test runs that were killed before they could. */
export async function removeLeftovers(): Promise<void> {
  for (const name of readdirSync(tmpdir())) {
    const [, pid] = /^millrace-test-(\d+)-/.exec(name) ?? [];
    if (pid === undefined || identityOf(Number(pid)) !== undefined) continue;
    await rm(join(tmpdir(), name), { recursive: true, force: true });
  }
}
