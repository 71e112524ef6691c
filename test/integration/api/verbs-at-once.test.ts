import type { HistoryEntry, InstanceView } from "@millrace/contract";
import { eventually } from "@millrace/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestApi, type Answer, type TestApi } from "./support.ts";

// Several operators at one instance at the same moment, while it moves: each answer is kept to.

let api: TestApi;
beforeAll(async () => {
  api = await openTestApi({ isWorking: true });
});
afterAll(() => api?.close());

/** Goes round: a task, a wait that an event or its timeout ends, and now and then a failure. */
const busy = {
  id: "busy",
  variables: { rounds: 0 },
  steps: [
    {
      stepId: "say",
      type: "TASK",
      taskId: "sleep",
      input: { ms: 5 },
      transitions: { default: "wait" },
    },
    {
      stepId: "wait",
      type: "EVENT_WAIT",
      eventPattern: "busy",
      eventCondition: "event.payload.key === workflow.input.key",
      eventTimeout: { duration: "PT0.05S", timeoutHandlerStepId: "count" },
      transitions: { default: "count" },
    },
    {
      stepId: "count",
      type: "SET",
      variables: { rounds: "${ variables.rounds + 1 }" },
      transitions: {
        conditions: [
          { when: "variables.rounds % 5 === 0", to: "flaky" },
          { when: "variables.stop !== true", to: "say" },
        ],
      },
    },
    {
      stepId: "flaky",
      type: "TASK",
      taskId: "fail",
      input: { times: "${ variables.rounds % 10 === 0 ? 1 : 9 }" },
      retry: { maxAttempts: 2, initialInterval: "PT0.05S", jitter: "NONE" },
      transitions: { conditions: [{ when: "variables.stop !== true", to: "say" }] },
    },
  ],
  compensationSteps: [{ stepId: "undo", compensationFor: "flaky", type: "TASK", taskId: "noop" }],
} as const;

type Verb = "pause" | "pauseFor" | "resume" | "retry" | "cancel" | "patch" | "blindPatch" | "event";

test("pause, resume, retry, cancel and patch by several at once: what is accepted has happened, once, and the rest are clean conflicts", async () => {
  await api.call("PUT", `/v1/definitions/${busy.id}`, busy);
  const ids: string[] = [];
  for (let index = 0; index < 12; index += 1) {
    const request = { workflowId: busy.id, input: { key: index } };
    ids.push((await api.call("POST", "/v1/instances", request)).body.id);
  }
  const answers: { readonly id: string; readonly verb: Verb; readonly answer: Answer }[] = [];
  const random = randomBy(7);
  let patches = 0;

  const operate = async (id: string, verb: Verb, key: number): Promise<Answer> => {
    const path = `/v1/instances/${id}`;
    const seen = random() < 0.5 ? (await api.call("GET", path)).headers.get("etag") : null;
    const guard: Record<string, string> = seen === null ? {} : { "if-match": seen };
    const variables = { [`p${(patches += 1)}`]: true };
    switch (verb) {
      case "pauseFor":
        return api.call("POST", `${path}/pause`, { until: soon(40) }, guard);
      case "patch":
        return api.call("PATCH", path, { state: { variables } }, guard);
      case "blindPatch":
        return api.call("PATCH", path, { state: { variables } });
      case "event":
        return api.call("POST", "/v1/events", { pattern: "busy", payload: { key } });
      default:
        return api.call("POST", `${path}/${verb}`, {}, guard);
    }
  };
  const operator = async () => {
    for (let times = 0; times < 45; times += 1) {
      const key = Math.floor(random() * ids.length);
      const id = ids[key] ?? "";
      const verb = verbs[Math.floor(random() * verbs.length)] ?? "event";
      answers.push({ id, verb, answer: await operate(id, verb, key) });
    }
  };
  // On a slow machine pauses end, and instances are cancelled, before chance has had one resumed.
  for (const verb of ["pause", "resume"] as const) {
    const [id = ""] = ids;
    answers.push({ id, verb, answer: await api.call("POST", `/v1/instances/${id}/${verb}`, {}) });
  }
  await Promise.all(Array.from({ length: 8 }, operator));

  const ended = await Promise.all(ids.map(bringToItsEnd));
  const refusals: unknown[] = answers.flatMap(({ verb, answer: { status, body } }) =>
    status < 300 || [409, 412, 428].includes(status) ? [] : [[verb, status, body]],
  );
  expect(refusals).toEqual([]);
  for (const { instance, history, more } of ended) {
    const mine = answers.filter(({ id, answer }) => id === instance.id && answer.status < 300);
    const accepted = (...names: Verb[]) => mine.filter(({ verb }) => names.includes(verb)).length;
    const told = (type: string) =>
      history.filter((entry) => entry.type === type && entry.actor !== "scheduler").length;
    expect(["COMPLETED", "CANCELLED"]).toContain(instance.status);
    expect({
      paused: told("workflow.paused"),
      resumed: told("workflow.resumed"),
      retried: told("workflow.retried"),
      cancelled: told("workflow.cancelled"),
    }).toEqual({
      paused: accepted("pause", "pauseFor"),
      resumed: accepted("resume") + more.resumed,
      retried: accepted("retry") + more.retried,
      cancelled: accepted("cancel"),
    });
    const patched = Object.keys(instance.state.variables).filter((name) => /^p\d+$/.test(name));
    expect(patched).toHaveLength(accepted("patch", "blindPatch"));
  }
  expect(
    answers.filter(({ verb, answer }) => verb === "blindPatch" && answer.status !== 428),
  ).toEqual([]);
  // Every verb was accepted and refused at least once: else this shows little.
  const outcomes = new Set(answers.map(({ verb, answer }) => `${verb} ${answer.status < 300}`));
  for (const verb of ["pause", "pauseFor", "resume", "retry", "cancel", "patch"])
    expect([...outcomes]).toEqual(expect.arrayContaining([`${verb} true`, `${verb} false`]));
}, 90_000);

const verbs: readonly Verb[] = [
  ...(["pause", "pauseFor", "resume", "resume", "retry", "retry", "patch", "patch"] as const),
  ...(["pause", "resume", "retry", "patch", "event", "event", "event"] as const),
  ...(["pauseFor", "blindPatch", "cancel"] as const),
];

/** Whatever the operators have left it as. */
async function bringToItsEnd(id: string) {
  const more = { resumed: 0, retried: 0 };
  const path = `/v1/instances/${id}`;
  const instance = await eventually(
    "the end",
    async () => {
      const { body, headers } = await api.call("GET", path);
      const view = body as InstanceView;
      const guard = { "if-match": headers.get("etag") ?? "" };
      if (view.status === "COMPLETED" || view.status === "CANCELLED") {
        return view.compensation?.status === "IN_PROGRESS" ? undefined : view;
      }
      if (view.state.variables["stop"] !== true) {
        await api.call("PATCH", path, { state: { variables: { stop: true } } }, guard);
      } else if (view.status === "PAUSED") {
        const { status } = await api.call("POST", `${path}/resume`, {}, guard);
        if (status === 202) more.resumed += 1;
      } else if (view.status === "FAILED") {
        const { status } = await api.call("POST", `${path}/retry`, { fromStepId: "count" }, guard);
        if (status === 202) more.retried += 1;
        else if (status === 409 && view.compensation?.status !== "IN_PROGRESS") return view;
      }
      return undefined;
    },
    { timeoutMs: 60_000, intervalMs: 30 },
  );
  const { items } = (await api.call("GET", `${path}/history?limit=500`)).body;
  return { instance, history: items as HistoryEntry[], more };
}

function soon(ms: number): string {
  return new Date(Date.now() + ms).toISOString();
}

/** The same numbers each time (a linear congruential generator). */
function randomBy(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32) / 2 ** 32;
}
