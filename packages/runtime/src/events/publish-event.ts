import type { Json, NewEvent } from "@millrace/store";
import { isReservedName } from "@millrace/engine";
import { ReservedPatternError } from "../errors.ts";
import { newEventId } from "../ids.ts";
import type { Caller, Services } from "../services.ts";
import { matchEvent } from "./match-event.ts";
import type { RejectedStart } from "./start-triggered.ts";

/** An event from outside, as CONTRACT 3 has it. `occurredAt` is an ISO-8601 time. */
export interface PublishRequest {
  readonly id?: string | undefined;
  readonly pattern: string;
  readonly payload: Json;
  readonly occurredAt?: string | undefined;
}

export interface Published {
  readonly id: string;
  readonly duplicate: boolean;
  readonly delivered: number;
  readonly cancelled: number;
  readonly started: number;
  /** Definitions for which the event brought no input that fits; absent where there are none. */
  readonly rejected?: readonly RejectedStart[];
}

/**
 * Commits the event, then looks for whom it matches, in that order and apart: whoever of publisher and
 * wait commits second sees the first (DESIGN, Events). Answered once both are done; a crash between
 * them is made good by the reconciler.
 *
 * @throws ReservedPatternError
 */
export async function publishEvent(
  services: Services,
  caller: Caller,
  request: PublishRequest,
): Promise<Published> {
  const [published] = await publishEvents(services, caller, [request]);
  if (published === undefined) throw new Error("no answer for the event");
  if ("error" in published) throw published.error;
  return published;
}

/** Each on its own: an event that is refused does not touch the others. */
export async function publishEvents(
  services: Services,
  { tenantId, actor }: Caller,
  requests: readonly PublishRequest[],
): Promise<readonly (Published | { readonly error: unknown })[]> {
  const now = services.clock.now().toISOString();
  const drafts = requests.map(({ id = newEventId(), pattern, payload, occurredAt = now }) => ({
    tenantId,
    id,
    pattern,
    payload,
    occurredAt: new Date(occurredAt),
    actor,
  }));
  return Promise.all(
    drafts.map(async (draft) => {
      if (isReservedName(draft.pattern)) {
        return { error: new ReservedPatternError(draft.pattern) };
      }
      return publishOne(services, draft).catch((error: unknown) => ({ error }));
    }),
  );
}

async function publishOne(services: Services, draft: NewEvent): Promise<Published> {
  const { id } = draft;
  const event = await services.intake.store(draft);
  if (event === "duplicate") {
    return { id, duplicate: true, delivered: 0, cancelled: 0, started: 0 };
  }
  services.metrics.eventsPublished.add({});
  const { rejected, ...counts } = await matchEvent(services, event);
  return { id, duplicate: false, ...counts, ...(rejected.length > 0 && { rejected }) };
}
