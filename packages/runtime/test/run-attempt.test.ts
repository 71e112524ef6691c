import { checkJson } from "@millrace/store";
import { expect, test } from "vitest";
import { asJson, asShownJson, maxOutputBytes } from "../src/worker/json-form.ts";
import { openAbort } from "../src/worker/abort.ts";
import { undoChangeToAllObjects } from "../src/worker/all-objects.ts";
import type { Held } from "../src/worker/held.ts";
import { failureOf, runAttempt } from "../src/worker/run-attempt.ts";

/** Its data is nobody else's to see. */
class Hidden {
  readonly #value: number;
  constructor(value: number) {
    this.#value = value;
  }
  get value() {
    return this.#value;
  }
}

/** Its data is seen, and its method is its own. */
class Row {
  readonly id = 1;
  readonly save = () => {};
}

const cyclic: Record<string, unknown> = {};
cyclic["self"] = cyclic;

test.each<[string, unknown]>([
  ["has NULs everywhere", thrown({ type: "T\0", message: "m\0", details: { "k\0": "v\0" } })],
  ["has halves of characters", thrown({ type: "T\uD800", message: "m\uD800", details: "\uDC00" })],
  ["is cut within a character", thrown({ type: `${"t".repeat(299)}😀`, message: long("😀") })],
  ["has details that are no JSON", thrown({ details: { list: [1n, cyclic] } })],
  ["has details that are too large", thrown({ details: "d".repeat(maxOutputBytes) })],
  ["is a text", "a text\0"],
  ["is nothing", undefined],
])("an error that %s becomes a failure that can be stored", (_, error) => {
  const failure = failureOf(error);

  expect(checkJson(failure)).toEqual([]);
  expect(JSON.stringify(failure).length).toBeLessThan(10_000);
});

test.each<[string, unknown]>([
  ["a Map", new Map([[1, 2]])],
  ["a Set", { tags: new Set(["a"]) }],
  ["a promise", [Promise.resolve(1)]],
  ["a Date without a time", { at: new Date(Number.NaN) }],
  ["NaN", { n: Number.NaN }],
  ["a Uint8Array", { bytes: new Uint8Array([1, 2]) }],
  ["an ArrayBuffer", [new ArrayBuffer(2)]],
  ["an Error", { failures: [new Error("no funds")] }],
  ["a Headers", new Headers({ a: "1" })],
  ["a URLSearchParams", { query: new URLSearchParams("a=1") }],
  ["a RegExp", /a/],
  ["a WeakMap", { seen: new WeakMap() }],
  ["a Hidden", { row: new Hidden(1) }],
  ["a function", { done: true, undo: () => {} }],
  ["a symbol", [Symbol("s")]],
  ["a Set", { toJSON: () => ({ tags: new Set() }) }],
])("a result with %s in it is refused, since nothing of it would be kept", (what, result) => {
  expect(() => asJson(result)).toThrow(` is ${what}`);
});

test("what JSON keeps, by its own means or by those of a Map or a Set, is no fault", () => {
  const at = new Date(0);
  const shown = Object.assign(new Map(), { toJSON: () => [1] });
  const tags = new (class extends Set {
    toJSON() {
      return [...this];
    }
  })(["a"]);

  const more = { row: new Row(), bare: Object.create(null), boxed: Object(5) };
  expect(asJson({ at, shown, tags, none: null, empty: {}, list: [undefined], ...more })).toEqual({
    at: at.toISOString(),
    shown: [1],
    tags: ["a"],
    none: null,
    empty: {},
    list: [null],
    row: { id: 1 },
    bare: {},
    boxed: 5,
  });
});

test("details of an error, and what a task reports of its progress, name in its place what JSON has no form for", () => {
  const details = {
    code: 51,
    cause: new Error("no funds"),
    seen: new Set([1]),
    left: [Number.NaN],
  };

  expect(failureOf(thrown({ details })).details).toEqual({
    code: 51,
    cause: "(not stored: an Error)",
    seen: "(not stored: a Set)",
    left: ["(not stored: NaN)"],
  });
  expect(asShownJson(cyclic)).toMatch(/^\(not stored: .*circular/);
  expect(asShownJson(undefined)).toBeNull();
});

test.each([
  ["Array.prototype.toJSON is set", Array.prototype, "toJSON"],
  ["Object.prototype.extend is added to all objects", Object.prototype, "extend"],
])(
  "a run after which %s comes to nothing, and its process ends",
  async (change, prototype, member) => {
    const said: string[] = [];
    const ended = runAttempt(
      held({
        run: () => Reflect.set(prototype, member, () => "all the same"),
        mistrust: async (why) => {
          undoChangeToAllObjects();
          said.push(why);
          throw new Error("the process would have ended");
        },
      }),
      () => {},
    );

    await expect(ended).rejects.toThrow("would have ended");
    expect(said).toEqual([change]);
    expect(JSON.stringify([{}])).toBe("[{}]");
  },
);

test("an error's name, message and details are kept", () => {
  const error = thrown({ type: "Declined", message: "no funds", details: { code: 51 } });

  expect(failureOf(error)).toEqual({
    type: "Declined",
    message: "no funds",
    details: { code: 51 },
    retryable: true,
  });
});

function thrown({ message = "failed", ...members }: { readonly [key: string]: unknown }): Error {
  return Object.assign(new Error(String(message)), members);
}

function long(end: string): string {
  return `${"m".repeat(3_999)}${end}`;
}

/** As much of a held step as its run asks for. */
function held({ run, mistrust }: { run: () => unknown; mistrust: Held["mistrust"] }): Held {
  const known = { task: { id: "t", run }, timeoutMs: null, heartbeatTimeoutMs: null, retry: null };
  const step = { stepId: "s", path: "s", iteration: 1, attempt: 1, input: {}, timeoutMs: null };
  const definition = { compensationFor: new Map(), retry: {} };
  const snapshot = { id: "i", input: {} };
  return {
    known,
    step,
    definition,
    snapshot,
    call: {},
    abort: openAbort(),
    mistrust,
  } as unknown as Held;
}
