import type { InstanceStatus } from "@millrace/contract";
import { followAll, followInstance, isOfTypes, type Services } from "@millrace/runtime";
import type { Batch, StreamEvent } from "@millrace/runtime";
import { BadCursorError } from "@millrace/store";
import type { ChangePlace } from "@millrace/store";
import { forOwner } from "./for-owner.ts";
import { cursorOf, placeOf } from "./history.ts";
import type { FollowRequest, Runtime, Stream } from "./runtime.ts";

/** Those who follow one instance, or all of a tenant. */
export function streamsOf(services: Services): Pick<Runtime, "followInstance" | "followAll"> {
  return {
    async followInstance(caller, id, { after, types, signal }) {
      // The cursor of an instance's history: what one has shown the other goes on from.
      const place = after === undefined || after === BEGINNING ? undefined : placeOf(after);
      const batches = await forOwner(services, caller, id, (owner) =>
        followInstance(services, owner, id, { after: place, signal }),
      );
      return batches && streamOf(batches, types, cursorOf);
    },
    async followAll(caller, { after, types, signal }) {
      const place = after === undefined ? undefined : placeOfAll(after);
      const batches = await followAll(services, caller, { after: place, signal });
      return streamOf(batches, types, cursorOfAll);
    },
  };
}

async function* streamOf<Place>(
  batches: AsyncGenerator<Batch<Place>>,
  types: FollowRequest["types"],
  cursorAt: (place: Place) => string,
): Stream {
  for await (const { told, place } of batches) {
    const events = told
      .filter(({ event }) => isOfTypes(event, types))
      .map((each) => ({ id: cursorAt(each.place), event: eventView(each.event) }));
    yield { events, cursor: cursorAt(place) };
  }
}

function eventView({ at, status, oldStatus, path, iteration, ...event }: StreamEvent) {
  return {
    ...event,
    at: at.toISOString(),
    status: status as InstanceStatus,
    oldStatus: oldStatus as InstanceStatus,
    ...(path !== undefined && { path }),
    ...(iteration !== undefined && { iteration }),
  };
}

/** Names the place before everything that is stored. */
const BEGINNING = "0";

function cursorOfAll({ tx, seq, shown }: ChangePlace): string {
  const text = `a.${tx}.${seq}${shown === undefined ? "" : `.${shown}`}`;
  return Buffer.from(text).toString("base64url");
}

/** @throws BadCursorError */
function placeOfAll(cursor: string): ChangePlace {
  if (cursor === BEGINNING) return { tx: "0", seq: 0 };
  const text = Buffer.from(cursor, "base64url").toString();
  const [, tx, seq, shown] = /^a\.(\d{1,19})\.(\d{1,15})(?:\.(\d{1,9}))?$/.exec(text) ?? [];
  if (tx === undefined) throw new BadCursorError("the cursor was not given out by this API");
  return { tx, seq: Number(seq), ...(shown !== undefined && { shown: Number(shown) }) };
}
