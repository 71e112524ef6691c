import type { Definition, Signal, Snapshot } from "@millrace/engine";
import { readInstance } from "@millrace/store";
import type { Db, InstanceRead, MatchedWait } from "@millrace/store";
import { advance } from "../advance.ts";
import { InstanceNotFoundError, PreconditionFailedError } from "../errors.ts";
import { perform } from "../perform.ts";
import type { Caller, Services } from "../services.ts";

/** What somebody outside asks of one instance. */
export interface Verb {
  /** The version that the caller has seen; undefined: whichever. */
  readonly ifMatch: number | undefined;
  /** Also hand over what events have matched. */
  readonly inbox?: boolean;
  /** What else is written in the transaction of the commit. */
  readonly within?: ((trx: Db) => Promise<void>) | undefined;
  /** As of `Intent`. */
  readonly remains?: Definition;
  /** @throws StatusConflictError */
  readonly signals: (snapshot: Snapshot, inbox: readonly MatchedWait[]) => readonly Signal[];
}

/**
 * Does it, and answers the instance as it then is.
 *
 * @throws InstanceNotFoundError, PreconditionFailedError, BusyError, and what `signals` throws.
 */
export async function intervene(
  services: Services,
  { tenantId, actor }: Caller,
  instanceId: string,
  { ifMatch, inbox = false, within, remains, signals }: Verb,
): Promise<InstanceRead> {
  const key = { tenantId, instanceId };
  const advanced = await advance(services, key, {
    actor,
    cause: "verb",
    inbox,
    within,
    remains,
    signals: (snapshot, matched) => {
      checkVersion(snapshot, ifMatch);
      return signals(snapshot, matched);
    },
  });
  if (advanced.kind === "committed") await perform(services, advanced.commit);
  const instance = await readInstance(services.database.db, key);
  if (instance === undefined) throw new InstanceNotFoundError(instanceId);
  return instance;
}

/** @throws PreconditionFailedError */
export function checkVersion({ id, version }: Snapshot, ifMatch: number | undefined): void {
  if (ifMatch === undefined || ifMatch === version) return;
  throw new PreconditionFailedError(id, ifMatch, version);
}
