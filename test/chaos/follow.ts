import { MillraceClient } from "@millrace/client";
import { eventually } from "@millrace/testkit";
import type { InstanceRecord, StreamedRecord } from "./record.ts";

/** The stream may be behind by what it takes an API to start, on a busy machine. */
const patienceMs = 60_000;

export interface Following {
  /** What has come, once there is nothing of these that has not, or the patience is at its end. */
  read(instances: readonly InstanceRecord[]): Promise<readonly StreamedRecord[]>;
}

/** Follows all instances from the beginning, from one API to the next as they die. */
export function follow(apiUrls: readonly string[], signal: AbortSignal): Following {
  const streamed: StreamedRecord[] = [];
  let turn = 0;
  const client = new MillraceClient({
    baseUrl: apiUrls[0],
    attempts: Number.POSITIVE_INFINITY,
    fetch: (url, init) => {
      const next = apiUrls[turn++ % apiUrls.length] ?? "";
      return fetch(typeof url === "string" ? url.replace(apiUrls[0] ?? "", next) : url, init);
    },
  });
  const read = async () => {
    const stream = client.instances.followAll({ lastEventId: "0", signal });
    for await (const { instanceId, version, type } of stream)
      streamed.push({ instanceId, version, type });
  };
  const reading = read().catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
  return {
    async read(instances) {
      const due = instances.reduce((sum, { history }) => sum + history.length, 0);
      const isComplete = eventually("the stream to tell all", () => streamed.length >= due, {
        timeoutMs: patienceMs,
      });
      await Promise.race([isComplete.catch(() => {}), reading]);
      return [...streamed];
    },
  };
}
