import type { HistoryEntry, InstanceView, ScheduleRunView, ScheduleView } from "@millrace/contract";
import { isSettled } from "@millrace/contract";
import type { Answer } from "./client.ts";
import type { InstanceRecord, ScheduleRecord } from "./record.ts";
import type { ScheduledPlan } from "./schedules.ts";

/** Reads all instances from the API, each with its history, and all of them once more at the end. */
export async function collect(apiUrl: string): Promise<readonly InstanceRecord[]> {
  const views = await allInstances(apiUrl);
  const records: Omit<InstanceRecord, "viewAgain">[] = [];
  const queue = [...views];
  const lane = async () => {
    for (let view = queue.pop(); view; view = queue.pop()) {
      const path = `${apiUrl}/v1/instances/${view.id}`;
      const history = await pages<HistoryEntry>(`${path}/history?limit=500`);
      const why = isSettled(view) ? {} : { why: (await get(`${path}/why`)).body };
      records.push({ view, history, ...why });
    }
  };
  await Promise.all(Array.from({ length: 8 }, lane));
  const again = new Map((await allInstances(apiUrl)).map((view) => [view.id, view]));
  return records.map((record) => ({ ...record, viewAgain: again.get(record.view.id) }));
}

/** Each with what it says of every tick. */
export async function collectSchedules(
  apiUrl: string,
  plans: readonly ScheduledPlan[],
): Promise<readonly ScheduleRecord[]> {
  const records: ScheduleRecord[] = [];
  for (const plan of plans) {
    const path = `${apiUrl}/v1/schedules/${plan.id}`;
    const { status, body } = await get(path);
    // None was made: nobody was promised one.
    if (status === 404) continue;
    const runs = await pages<ScheduleRunView>(`${path}/runs?limit=500`);
    records.push({ plan, view: body as ScheduleView, runs });
  }
  return records;
}

async function allInstances(apiUrl: string): Promise<readonly InstanceView[]> {
  return pages(`${apiUrl}/v1/instances?limit=200&order=createdAt`);
}

async function pages<Item>(url: string): Promise<readonly Item[]> {
  const items: Item[] = [];
  let cursor: string | null = "";
  while (cursor !== null) {
    const { status, body } = await get(cursor === "" ? url : `${url}&cursor=${cursor}`);
    if (status !== 200) throw new Error(`${url} answers ${status}: ${JSON.stringify(body)}`);
    const page = body as { items: readonly Item[]; nextCursor: string | null };
    items.push(...page.items);
    cursor = page.nextCursor;
  }
  return items;
}

/** The faults are over: an answer is owed, though not at once. */
async function get(url: string): Promise<Answer> {
  const response = await fetch(url, { signal: AbortSignal.timeout(60_000) });
  return { status: response.status, body: await response.json() };
}
