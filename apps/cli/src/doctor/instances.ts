import type { MillraceClient } from "@millrace/client";
import type { ConsistencyView } from "@millrace/contract";

/** What has come of the instances that were looked at. */
export interface InstanceChecks {
  readonly checked: number;
  /** Those with findings, as they are in the end. */
  readonly inconsistent: readonly ConsistencyView[];
  readonly repaired: readonly { readonly instanceId: string; readonly codes: readonly string[] }[];
}

export interface Choice {
  readonly instanceId?: string | undefined;
  readonly all: boolean;
  readonly repair: boolean;
}

const LIVE = ["CREATED", "RUNNING", "WAITING_FOR_EVENT", "PAUSED"] as const;
/** Of the sample: the latest of those that go on, and the latest of all. */
const SAMPLE = 25;
const AT_ONCE = 4;

export async function checkInstances(
  client: MillraceClient,
  choice: Choice,
): Promise<InstanceChecks> {
  const inconsistent: ConsistencyView[] = [];
  const repaired: InstanceChecks["repaired"][number][] = [];
  let checked = 0;
  let group: string[] = [];
  const look = async () => {
    checked += group.length;
    for (const view of await Promise.all(group.map((id) => client.instances.consistency(id)))) {
      if (view.ok) continue;
      if (!choice.repair) {
        inconsistent.push(view);
        continue;
      }
      const { repaired: done, after } = await client.instances.repair(view.instanceId);
      const codes = done.map(({ code }) => code);
      if (codes.length > 0) repaired.push({ instanceId: view.instanceId, codes });
      if (!after.ok) inconsistent.push(after);
    }
    group = [];
  };
  for await (const id of idsOf(client, choice)) {
    group.push(id);
    if (group.length === AT_ONCE) await look();
  }
  await look();
  return { checked, inconsistent, repaired };
}

async function* idsOf(
  client: MillraceClient,
  { instanceId, all }: Choice,
): AsyncGenerator<string, void, undefined> {
  if (instanceId !== undefined) {
    yield instanceId;
  } else if (all) {
    for await (const { id } of client.instances.each()) yield id;
  } else {
    const [live, latest] = await Promise.all([
      client.instances.list({ status: LIVE, limit: SAMPLE }),
      client.instances.list({ limit: SAMPLE }),
    ]);
    yield* new Set([...live.items, ...latest.items].map(({ id }) => id));
  }
}
