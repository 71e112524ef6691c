import { ERROR_CODES } from "@millrace/contract";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createFakeApp, type FakeApp } from "../../apps/api/test/fake-runtime.ts";

interface Operation {
  readonly operationId?: string;
  readonly summary?: string;
  readonly tags?: readonly string[];
  readonly parameters: readonly {
    readonly name: string;
    readonly in: string;
    readonly schema: object;
  }[];
  readonly responses: Readonly<Record<string, { readonly description: string }>>;
}

interface Document {
  readonly openapi: string;
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, object>> };
}

let app: FakeApp;
let document: Document;
beforeAll(async () => {
  app = await createFakeApp();
  document = (await app.http.inject("/openapi.json")).json<Document>();
});
afterAll(() => app.close());

test("every route that is served is in the document, and nothing else", () => {
  const served = app.routes
    .filter(({ config }) => config?.isPlanned !== true)
    .flatMap(({ method, url }) =>
      [method]
        .flat()
        .filter((each) => each !== "HEAD")
        .map(
          (each) =>
            `${each} ${url
              .replaceAll("::", "\0")
              .replaceAll(/:(\w+)/g, "{$1}")
              .replaceAll("\0", ":")}`,
        ),
    );

  const described = operations().map(({ method, path }) => `${method.toUpperCase()} ${path}`);

  expect(described.toSorted()).toEqual(served.toSorted());
  expect(described.length).toBeGreaterThan(15);
});

test("it is OpenAPI 3.1: each operation is complete and has a name of its own", () => {
  expect(document.openapi).toMatch(/^3\.1\./);
  const tags = new Set(document.tags.map(({ name }) => name));

  for (const { path, method, operation } of operations()) {
    const where = `${method} ${path}`;
    expect(operation.operationId, where).toMatch(/^[a-z][A-Za-z]+$/);
    expect(operation.summary, where).toEqual(expect.any(String));
    expect(
      operation.tags?.every((tag) => tags.has(tag)),
      where,
    ).toBe(true);
    expect(
      Object.keys(operation.responses).some((status) => status.startsWith("2")),
      where,
    ).toBe(true);
    for (const [status, { description }] of Object.entries(operation.responses)) {
      expect(status, where).toMatch(/^[1-5]\d\d$/);
      expect(description, where).not.toBe("");
    }
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    const declared = operation.parameters.filter((it) => it.in === "path").map(({ name }) => name);
    expect(declared, where).toEqual(inPath);
    const names = operation.parameters.map((it) => `${it.in} ${it.name.toLowerCase()}`);
    expect(new Set(names).size, where).toBe(names.length);
  }
  const ids = operations().map(({ operation }) => operation.operationId);
  expect(new Set(ids).size).toBe(ids.length);
});

test("every reference in it leads somewhere", () => {
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(
    ([, it]) => it,
  );

  expect(references.length).toBeGreaterThan(50);
  const known = Object.keys(document.components.schemas).map((it) => `#/components/schemas/${it}`);
  expect([...new Set(references)].filter((it) => !known.includes(it ?? ""))).toEqual([]);
});

test("every status that a call may fail with is one of the table", () => {
  const statuses = new Set(Object.values(ERROR_CODES).map(({ status }) => String(status)));

  for (const { path, operation } of operations()) {
    const failures = Object.keys(operation.responses).filter((status) => status >= "400");
    expect(
      failures.filter((status) => !statuses.has(status)),
      path,
    ).toEqual([]);
  }
});

test("what is not there yet answers 501 and is not in the document", async () => {
  const planned = app.routes.filter(({ config }) => config?.isPlanned === true);
  expect(planned.length).toBeGreaterThan(10);

  for (const { url, method } of planned) {
    const path = url.replaceAll("::", "\0").replaceAll(/:\w+/g, "x").replaceAll("\0", ":");
    for (const each of [method].flat()) {
      const answer = await app.http.inject({ method: each as "GET", url: path });
      expect(answer.statusCode, `${each} ${path}`).toBe(501);
    }
  }
});

function operations(): readonly { path: string; method: string; operation: Operation }[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
}
