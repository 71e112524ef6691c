import { canPause } from "@millrace/engine";
import type { Signal, Snapshot } from "@millrace/engine";
import type { InstanceRead, Key } from "@millrace/store";
import { advance } from "../advance.ts";
import { StatusConflictError } from "../errors.ts";
import { perform } from "../perform.ts";
import type { Caller, Services } from "../services.ts";
import { heldBack, heldTimers } from "./held-back.ts";
import type { HeldBack } from "./held-back.ts";
import { intervene } from "./intervene.ts";

export interface PauseBody {
  readonly reason?: string | null | undefined;
  /** ISO 8601; it then resumes by itself. */
  readonly until?: string | undefined;
}

/**
 * No new step starts, and nothing is lost (CONTRACT 2). A time that is past resumes it at once.
 *
 * @param ifMatch The version that the caller has seen.
 * @throws InstanceNotFoundError, StatusConflictError, PreconditionFailedError
 */
export async function pauseInstance(
  services: Services,
  caller: Caller,
  instanceId: string,
  { reason = null, until }: PauseBody,
  ifMatch?: number,
): Promise<InstanceRead> {
  const { actor } = caller;
  return intervene(services, caller, instanceId, {
    ifMatch,
    signals: (snapshot) => {
      if (!canPause(snapshot)) {
        throw new StatusConflictError("paused", instanceId, snapshot.status);
      }
      return [
        {
          kind: "pauseRequested",
          intervention: snapshot.interventions + 1,
          actor,
          reason,
          until: until === undefined ? null : new Date(until).toISOString(),
        },
      ];
    },
  });
}

export interface ResumeBody {
  readonly reason?: string | null | undefined;
}

/**
 * Goes on where it was, and with what was held, in order of time.
 *
 * @param ifMatch The version that the caller has seen.
 * @throws InstanceNotFoundError, StatusConflictError, PreconditionFailedError
 */
export async function resumeInstance(
  services: Services,
  caller: Caller,
  instanceId: string,
  { reason = null }: ResumeBody,
  ifMatch?: number,
): Promise<InstanceRead> {
  const { tenantId, actor } = caller;
  const timers = await heldTimers(services, { tenantId, instanceId });
  return intervene(services, caller, instanceId, {
    ifMatch,
    inbox: true,
    signals: (snapshot, inbox) => {
      if (snapshot.pause === null) {
        throw new StatusConflictError("resumed", instanceId, snapshot.status);
      }
      return resumption(snapshot, heldBack(inbox, timers), { actor, reason });
    },
  });
}

/**
 * Its time has come, unless somebody has resumed it before, or paused it anew.
 *
 * @param dueAt Of the timer: by this the pause that has set it is known.
 */
export async function resumeByTimer(services: Services, key: Key, dueAt: Date): Promise<void> {
  const timers = await heldTimers(services, key);
  const advanced = await advance(services, key, {
    actor: "scheduler",
    cause: "timer",
    inbox: true,
    signals: (snapshot, inbox) => {
      const until = dueAt.toISOString();
      if (snapshot.pause?.until !== until) return [];
      const reason = `paused until ${until}`;
      return resumption(snapshot, heldBack(inbox, timers), { actor: "scheduler", reason });
    },
  });
  if (advanced.kind === "committed") await perform(services, advanced.commit);
}

/** What cancels it comes first; the rest goes with the signal, which applies it in order of time. */
function resumption(
  { interventions }: Snapshot,
  { cancels, held }: HeldBack,
  who: { readonly actor: string; readonly reason: string | null },
): readonly Signal[] {
  return [...cancels, { kind: "resumeRequested", intervention: interventions + 1, held, ...who }];
}
