import { setImmediate as othersFirst, setTimeout as sleep } from "node:timers/promises";
import { checkingConsistency, sameStored } from "@millrace/engine";
import type { Evidence, Finding } from "@millrace/engine";
import { contentHashOf, getDefinition, readEvidence } from "@millrace/store";
import type { EvidenceLimits, Key } from "@millrace/store";
import { InstanceNotFoundError } from "../errors.ts";
import type { Services } from "../services.ts";
import { checkJobs } from "./check-jobs.ts";

/** Whether what is stored of an instance agrees with itself (docs/reliability.md). */
export interface ConsistencyReport {
  readonly instanceId: string;
  readonly version: number;
  readonly checkedAt: Date;
  readonly findings: readonly Finding[];
  /** What was not looked at, in words. */
  readonly skipped: readonly string[];
}

export const wholeLook: EvidenceLimits = { commits: 20_000, bytes: 64_000_000 };

/** What is found once may have been under way; it counts when a second look at the same version finds it. */
const betweenLooksMs = 200;
const mostLooks = 5;

/** @throws InstanceNotFoundError */
export async function checkInstance(
  services: Services,
  key: Key,
  limits: EvidenceLimits = wholeLook,
): Promise<ConsistencyReport> {
  let before = await look(services, key, limits);
  for (let looks = 1; before.findings.length > 0; looks++) {
    if (looks === mostLooks) {
      const moving = `it moved on between looks; ${before.findings.length} findings are not confirmed`;
      return { ...before, findings: [], skipped: [...before.skipped, moving] };
    }
    await sleep(betweenLooksMs);
    const after = await look(services, key, limits);
    const confirmed = after.findings.filter((finding) => isAmong(finding, before.findings));
    if (after.version === before.version) return { ...after, findings: confirmed };
    before = after;
  }
  return before;
}

export function isAmong(finding: Finding, findings: readonly Finding[]): boolean {
  return findings.some(
    ({ code, where }) => code === finding.code && sameStored(where, finding.where),
  );
}

async function look(
  services: Services,
  key: Key,
  limits: EvidenceLimits,
): Promise<ConsistencyReport> {
  const stored = await readEvidence(services.database.db, key, limits);
  if (stored === undefined) throw new InstanceNotFoundError(key.instanceId);
  const { isWhole, ...rest } = stored;
  const evidence: Evidence = { ...rest, ...(await definitionOf(services, rest)) };
  const rows = await checkInTurns(evidence);
  const jobs = await checkJobs(services, key, evidence);
  return {
    instanceId: key.instanceId,
    version: evidence.version,
    checkedAt: evidence.now,
    findings: [...rows, ...jobs.findings],
    skipped: [
      ...(isWhole ? [] : ["its history is too large to be replayed in one look"]),
      ...jobs.skipped,
    ],
  };
}

/** Whatever else the process has to do comes in between. */
async function checkInTurns(evidence: Evidence): Promise<readonly Finding[]> {
  const checking = checkingConsistency(evidence);
  for (;;) {
    const { done, value } = checking.next();
    if (done === true) return value;
    await othersFirst();
  }
}

/** The stored document is looked at: what this process has compiled of it was read long ago. */
async function definitionOf(
  { database, definitions }: Services,
  { identity }: Pick<Evidence, "identity">,
): Promise<Pick<Evidence, "definition" | "definitionIs">> {
  const { tenantId, workflowId, workflowVersion } = identity;
  const stored = await getDefinition(database.db, tenantId, workflowId, workflowVersion);
  if (stored === undefined) return { definition: undefined, definitionIs: "MISSING" };
  if (contentHashOf(stored.document) !== stored.contentHash) {
    return { definition: undefined, definitionIs: "EDITED" };
  }
  const { definition } = await definitions.get(tenantId, workflowId, workflowVersion);
  return { definition, definitionIs: "SOUND" };
}
