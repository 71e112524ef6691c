import { loadInstance, readDeadLetter } from "@millrace/store";
import type { DeadLetter, Db } from "@millrace/store";
import { advance } from "../advance.ts";
import type { Intent } from "../advance.ts";
import { DeadLetterNotFoundError, DeadLetterResolvedError } from "../errors.ts";
import { perform } from "../perform.ts";
import type { Caller, Services } from "../services.ts";
import { remainsToUndo } from "./remains.ts";
import { retryInstance } from "./retry-instance.ts";

/**
 * Gives the step up: what the instance has done is undone now, where the definition says so
 * (CONTRACT 2, POISONED). Of a compensation whose definition is not stored any more that is the end.
 *
 * @throws DeadLetterNotFoundError, DeadLetterResolvedError
 */
export async function discardDeadLetter(
  services: Services,
  { tenantId, actor }: Caller,
  id: string,
  { reason = null }: { readonly reason?: string | null | undefined },
): Promise<DeadLetter> {
  const { db } = services.database;
  const letter = await openLetter(services, id, tenantId);
  const discarded = { kind: "deadLetterDiscarded", reason, actor } as const;
  const intent: Intent = {
    actor,
    cause: "cancel",
    within: (trx) => checkOpen(trx, letter),
    signals: () => [discarded],
  };
  const advanced = await advance(services, letter, intent).catch(async (error: unknown) => {
    const remains = await remainsToUndo(services, letter, error);
    const signals = () => [{ ...discarded, withoutDefinition: true } as const];
    return advance(services, letter, { ...intent, remains, signals });
  });
  const resolved = await readDeadLetter(db, id, tenantId);
  if (resolved === undefined) throw new DeadLetterNotFoundError(id);
  if (advanced.kind !== "committed") throw new DeadLetterResolvedError(id, resolved.status);
  await perform(services, advanced.commit);
  return resolved;
}

/**
 * Its instance, or its compensation, goes on from the step, whose deliveries are counted anew
 * (CONTRACT 2, POISONED).
 *
 * @throws DeadLetterNotFoundError, DeadLetterResolvedError, RetryRefusedError
 */
export async function retryDeadLetter(
  services: Services,
  caller: Caller,
  id: string,
  { reason }: { readonly reason?: string | null | undefined },
): Promise<DeadLetter> {
  const { tenantId } = caller;
  const letter = await openLetter(services, id, tenantId);
  const check = (trx: Db) => checkOpen(trx, letter);
  const snapshot = await loadInstance(services.database.db, letter);
  if (snapshot?.compensation?.poisoned === undefined) {
    await retryInstance(services, caller, letter.instanceId, { reason }, undefined, check);
  } else {
    await goOnCompensating(services, caller, letter, reason ?? null);
  }
  const resolved = await readDeadLetter(services.database.db, id, tenantId);
  if (resolved === undefined) throw new DeadLetterNotFoundError(id);
  return resolved;
}

async function goOnCompensating(
  services: Services,
  { actor }: Caller,
  letter: DeadLetter,
  reason: string | null,
): Promise<void> {
  const advanced = await advance(services, letter, {
    actor,
    cause: "verb",
    within: (trx) => checkOpen(trx, letter),
    signals: () => [{ kind: "deadLetterRetried", reason, actor }],
  });
  if (advanced.kind !== "committed") throw new DeadLetterResolvedError(letter.id, "RETRIED");
  await perform(services, advanced.commit);
}

async function openLetter(
  { database: { db } }: Services,
  id: string,
  tenantId: string,
): Promise<DeadLetter> {
  const letter = await readDeadLetter(db, id, tenantId);
  if (letter === undefined) throw new DeadLetterNotFoundError(id);
  if (letter.status !== "OPEN") throw new DeadLetterResolvedError(id, letter.status);
  return letter;
}

/** Whoever has the instance's row: nobody else can resolve it then. */
async function checkOpen(trx: Db, { id, tenantId }: DeadLetter): Promise<void> {
  const status = (await readDeadLetter(trx, id, tenantId))?.status;
  if (status !== undefined && status !== "OPEN") throw new DeadLetterResolvedError(id, status);
}
