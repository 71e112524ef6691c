import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { eventually } from "@millrace/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestApi, type TestApi } from "./support.ts";

// The examples of these pages: each definition is followed by one run of it.
const pages = ["definitions", "built-in-tasks"];

interface Example {
  readonly definition: {
    readonly id: string;
    readonly steps: readonly { readonly type: string }[];
  };
  readonly run: {
    /** Those that it counts by. */
    readonly calendars?: readonly { readonly id: string }[];
    readonly input?: unknown;
    /** An event that starts it, in place of a start. */
    readonly startedBy?: object;
    readonly events?: readonly object[];
    readonly expect: object;
  };
}

const blocks = pages
  .map((page) => new URL(`../../../docs/${page}.md`, import.meta.url))
  .flatMap((path) => [...readFileSync(path, "utf8").matchAll(/```json\n(.*?)```/gs)])
  .map(([, text = ""]) => JSON.parse(text) as unknown);
const examples = blocks.flatMap((definition, index) =>
  index % 2 === 0 ? [{ definition, run: blocks[index + 1] } as Example] : [],
);

/** In place of a shop of the examples: takes every order, and answers with it. */
const shop = createServer((request, response) => {
  response.writeHead(201, { "content-type": "application/json" });
  request.pipe(response);
});
const shopUrl = /https:\/\/shop\.example\.com/g;

let api: TestApi;
beforeAll(async () => {
  await new Promise<void>((resolve) => shop.listen(0, "127.0.0.1", resolve));
  api = await openTestApi({ isWorking: true, httpAllow: ["127.0.0.1"] });
});
afterAll(async () => {
  await api?.close();
  shop.closeAllConnections();
  shop.close();
});

test("there is an example for every step type that is supported", () => {
  const types = examples.flatMap(({ definition }) => definition.steps.map(({ type }) => type));

  expect([...new Set(types)].toSorted()).toEqual([
    "CHOICE",
    "DELAY",
    "EMIT_EVENT",
    "END",
    "EVENT_WAIT",
    "MAP",
    "PARALLEL",
    "SET",
    "SUB_WORKFLOW",
    "TASK",
  ]);
});

test.each(examples.map((example) => [example.definition.id, example] as const))(
  "%s registers without a warning and runs as its documentation says",
  async (workflowId, { definition, run }) => {
    for (const calendar of run.calendars ?? []) {
      expect((await api.call("PUT", `/v1/calendars/${calendar.id}`, calendar)).status).toBe(201);
    }
    const { port } = shop.address() as AddressInfo;
    const document = JSON.stringify(definition).replace(shopUrl, `http://127.0.0.1:${port}`);
    const registered = await api.call("PUT", `/v1/definitions/${workflowId}`, document);
    expect(registered.body).toMatchObject({ id: workflowId, version: 1, warnings: [] });

    const { events = [] } = run;
    const instance = `/v1/instances/${await start(workflowId, run)}`;
    if (events.length > 0) {
      await eventually("it waits", async () => {
        const { body: now } = await api.call("GET", instance);
        return now.status === "WAITING_FOR_EVENT";
      });
    }
    for (const event of events) {
      expect((await api.call("POST", "/v1/events", event)).status).toBe(202);
    }

    expect((await api.call("GET", `${instance}?wait=20`)).body).toMatchObject(run.expect);
  },
);

async function start(workflowId: string, { input = {}, startedBy }: Example["run"]) {
  if (startedBy === undefined) {
    return (await api.call("POST", "/v1/instances", { workflowId, input })).body.id;
  }
  expect((await api.call("POST", "/v1/events", startedBy)).body).toMatchObject({ started: 1 });
  return (await api.call("GET", `/v1/instances?workflowId=${workflowId}`)).body.items[0].id;
}
