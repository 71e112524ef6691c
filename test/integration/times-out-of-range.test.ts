import { CompiledQuery } from "kysely";
import { afterEach, expect, test } from "vitest";
import { definitions } from "../support/damages.ts";
import { openTestApi, type TestApi } from "./api/support.ts";

// Times that Millrace never writes, put into every column that has one: whatever is asked is answered.

let api: TestApi | undefined;
afterEach(() => api?.close());

const schedule = {
  id: "s",
  type: "recurring",
  timing: { cronExpression: "0 0 1 1 *" },
  target: { type: "workflow", id: "wait" },
};
const lists = [
  "instances",
  "instances?order=-updatedAt&limit=1",
  "stats",
  "workers",
  "queues",
  "dead-letters",
  "schedules",
  "schedules/s",
  "schedules/s/next?count=3",
  "schedules/s/runs",
  "calendars/c",
  "definitions",
];
const parts = ["", "/why", "/history", "/consistency", "/state?version=1"];
const workflows = ["wait", "task", "parent", "queued", "retries"];

test.each(["infinity", "-infinity", "294276-01-01", "4713-01-01 BC"])(
  "rows whose times are all %s are shown, checked and repaired, and nothing breaks on them",
  async (time) => {
    api = await openTestApi();
    const { call, services } = api;
    for (const definition of definitions) await call("POST", "/v1/definitions", definition);
    await call("POST", "/v1/schedules", schedule);
    await call("POST", "/v1/schedules/s/trigger", {});
    await call("PUT", "/v1/calendars/c", { timeZone: "UTC" });
    const start = (workflowId: string) =>
      call("POST", "/v1/instances", { workflowId, input: { order: 1 } });
    const started = await Promise.all(workflows.map(start));
    const ids: readonly string[] = started.map(({ body }) => body.id);
    await call("POST", "/v1/events", { id: "e", pattern: "paid", payload: { order: 1 } });

    const { rows } = await services.database.db.executeQuery<{ set: string }>(
      CompiledQuery.raw(
        `select format('update %I set %s', table_name,
          string_agg(format('%I = %L', column_name, $1::text), ', ')) as set
        from information_schema.columns
        where table_schema = 'public' and data_type = 'timestamp with time zone'
        group by table_name`,
        [time],
      ),
    );
    for (const { set } of rows) await services.database.db.executeQuery(CompiledQuery.raw(set));
    const answers: string[] = [];
    const ask = async (method: string, path: string) => {
      const { status } = await call(method, `/v1/${path}`, method === "POST" ? {} : undefined);
      answers.push(`${method} ${path} ${status}`);
    };
    for (const path of lists) await ask("GET", path);
    for (const id of ids) {
      for (const part of parts) await ask("GET", `instances/${id}${part}`);
      for (const verb of ["repair", "cancel"]) await ask("POST", `instances/${id}/${verb}`);
    }

    expect(rows.length).toBeGreaterThan(10);
    expect(answers.filter((answer) => /[45]\d\d$/.test(answer))).toEqual([]);
  },
);
