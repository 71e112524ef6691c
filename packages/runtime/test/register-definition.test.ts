import { expect, test, vi } from "vitest";
import { InvalidDefinitionError } from "../src/errors.ts";
import { checkDefinition } from "../src/definitions/register-definition.ts";

function problemsOf(inputSchema: unknown): readonly { path: string; code: string }[] {
  try {
    checkDefinition({
      id: "a",
      inputSchema,
      steps: [{ stepId: "s", type: "TASK", taskId: "noop" }],
    });
    return [];
  } catch (error) {
    if (!(error instanceof InvalidDefinitionError)) throw error;
    return error.problems.map(({ path, code }) => ({ path, code }));
  }
}

function properties(count: number): object {
  const entries = Array.from({ length: count }, (_, index) => [
    `p${index}`,
    { type: "string", format: "email", minLength: 1, pattern: `^x${index}` },
  ]);
  return { type: "object", properties: Object.fromEntries(entries) as unknown };
}

/** Of this process alone: the machine may be busy with others. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

test("an inputSchema of thousands of properties is refused at once, and not compiled", () => {
  const schema = properties(20_000);
  const started = cpuMs();

  expect(problemsOf(schema)).toEqual([{ path: "/inputSchema", code: "SCHEMA_TOO_LARGE" }]);

  // Compiling it takes minutes.
  expect(cpuMs() - started).toBeLessThan(5_000);
});

test("one of some hundred properties is compiled", () => {
  expect(problemsOf(properties(900))).toEqual([]);
});

test("one whose check would be nested too deep is refused, and nothing is written to the console", () => {
  const written = vi.spyOn(console, "error");
  const alternatives = Array.from({ length: 2_400 }, (_, index) => ({ maxLength: index }));

  expect(problemsOf({ oneOf: alternatives })).toEqual([
    { path: "/inputSchema", code: "BAD_SCHEMA" },
  ]);

  expect(written).not.toHaveBeenCalled();
  written.mockRestore();
});

test("what is no JSON Schema is refused", () => {
  expect(problemsOf({ type: "strnig" })).toEqual([{ path: "/inputSchema", code: "BAD_SCHEMA" }]);
});
