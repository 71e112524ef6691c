import { ERROR_CODES } from "@millrace/contract";
import { afterAll, expect, test } from "vitest";
import { createFakeApp } from "../../apps/api/test/fake-runtime.ts";

interface Operation {
  readonly operationId?: string;
  readonly summary?: string;
  readonly tags?: readonly string[];
  readonly parameters: readonly {
    readonly name: string;
    readonly in: string;
    readonly description?: string;
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

const app = await createFakeApp();
const document = (await app.http.inject("/openapi.json")).json<Document>();
afterAll(() => app.close());

const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
);
const tags = new Set(document.tags.map(({ name }) => name));
const statuses = new Set(Object.values(ERROR_CODES).map(({ status }) => String(status)));

test("every route that is served is in the document, and nothing else", () => {
  const served = app.routes
    .filter(({ method }) => method !== "HEAD")
    .map(({ method, url }) => `${method} ${pathOf(url, "{$1}")}`);

  const described = operations.map(({ method, path }) => `${method.toUpperCase()} ${path}`);

  expect(described.toSorted()).toEqual(served.toSorted());
  expect(described.length).toBeGreaterThan(15);
});

test("it is OpenAPI 3.1, and each operation has a name of its own", () => {
  const ids = operations.map(({ operation }) => operation.operationId);

  expect(document.openapi).toMatch(/^3\.1\./);
  expect(new Set(ids).size).toBe(ids.length);
});

test.each(operations)("$method $path is described in full", ({ path, operation }) => {
  const { operationId, summary, parameters, responses } = operation;

  expect(operationId).toMatch(/^[a-z][A-Za-z]+$/);
  expect(summary).toMatch(/\w/);
  expect(operation.tags?.filter((tag) => !tags.has(tag))).toEqual([]);
  const codes = Object.keys(responses);
  expect(codes.filter((status) => status.startsWith("2"))).not.toEqual([]);
  expect(codes.filter((status) => status >= "400" && !statuses.has(status))).toEqual([]);
  expect(Object.values(responses).filter(({ description }) => description === "")).toEqual([]);
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
  expect(parameters.filter((it) => it.in === "path").map(({ name }) => name)).toEqual(inPath);
  expect(parameters.filter((it) => !/\w/.test(it.description ?? ""))).toEqual([]);
  const names = parameters.map((it) => `${it.in} ${it.name.toLowerCase()}`);
  expect(new Set(names).size).toBe(names.length);
});

test("every reference in it leads somewhere", () => {
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(
    ([, it]) => it,
  );

  expect(references.length).toBeGreaterThan(50);
  const known = Object.keys(document.components.schemas).map((it) => `#/components/schemas/${it}`);
  expect([...new Set(references)].filter((it) => !known.includes(it ?? ""))).toEqual([]);
});

/** A path without Fastify's notation of parameters and colons. */
function pathOf(url: string, parameter: string): string {
  return url
    .replaceAll("::", "\0")
    .replaceAll(/:(\w+)/g, parameter)
    .replaceAll("\0", ":");
}
