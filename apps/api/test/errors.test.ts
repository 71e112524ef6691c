import { afterEach, expect, test } from "vitest";
import { createFakeApp, type FakeApp, ID } from "./fake-runtime.ts";

const START = { method: "POST", url: "/v1/instances" } as const;

let app: FakeApp;
afterEach(() => app.close());

test("errors with a code of the table become its problem, with what they carry", async () => {
  const error = Object.assign(new Error("busy right now"), { code: "BUSY", retryAfterSeconds: 2 });
  app = await createFakeApp({ startInstance: () => Promise.reject(error) });

  const answer = await app.http.inject({ ...START, payload: { workflowId: "a" } });

  expect(answer.statusCode).toBe(503);
  expect(answer.headers["retry-after"]).toBe("2");
  expect(answer.json()).toMatchObject({
    type: "urn:millrace:problem:busy",
    title: "Too many concurrent changes",
    detail: "busy right now",
  });
});

test.each([
  ["DATABASE_UNAVAILABLE", 503, "DATABASE_UNAVAILABLE", "1"],
  ["TRANSACTION_CONFLICT", 503, "BUSY", "1"],
  ["STATEMENT_TIMEOUT", 503, "BUSY", "1"],
  ["BAD_CURSOR", 400, "INVALID_CURSOR", undefined],
  ["DATA_REFUSED", 500, "INTERNAL", undefined],
  ["DATABASE_FAULT", 500, "INTERNAL", undefined],
])(
  "%s of the store is answered %i %s, and its message kept back",
  async (own, status, code, retry) => {
    const error = Object.assign(new Error("10.0.0.7 says no"), { code: own });
    app = await createFakeApp({ publishEvent: () => Promise.reject(error) });

    const answer = await app.http.inject({
      method: "POST",
      url: "/v1/events",
      payload: { pattern: "a", payload: null },
    });

    expect([answer.statusCode, answer.headers["retry-after"]]).toEqual([status, retry]);
    expect(answer.json()).toMatchObject({ code });
    expect(answer.body).not.toContain("10.0.0.7");
  },
);

test("what nobody foresaw is a 500 that tells the log everything and the caller nothing", async () => {
  app = await createFakeApp({ readInstance: () => Promise.reject(new Error("secret table")) });

  const answer = await app.http.inject({
    url: `/v1/instances/${ID}`,
    headers: { "x-request-id": "req-1" },
  });

  expect(answer.statusCode).toBe(500);
  expect(answer.body).not.toContain("secret");
  expect(answer.json()).toMatchObject({ code: "INTERNAL", requestId: "req-1" });
  expect(app.lines).toContainEqual(
    expect.objectContaining({ level: "error", requestId: "req-1", code: "INTERNAL" }),
  );
});

test("of an outage the log has one warning with what is down, and no stack for each call", async () => {
  const away = () =>
    Promise.reject(Object.assign(new Error("no answer from db"), { code: "DATABASE_UNAVAILABLE" }));
  app = await createFakeApp({ readInstance: away, listInstances: away });

  for (const url of [`/v1/instances/${ID}`, "/v1/instances", `/v1/instances/${ID}`]) {
    await app.http.inject({ url });
  }

  const loud = app.lines.filter(({ level }) => level === "warn" || level === "error");
  expect(loud).toMatchObject([{ code: "DATABASE_UNAVAILABLE", reason: "no answer from db" }]);
  expect(JSON.stringify(app.lines)).not.toContain("stack");
});
