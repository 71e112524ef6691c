import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * The files that take longest begin first: one that begins last is waited for with nothing else to do.
 * Of the last ones, faults take turns with what computes, so that there is seldom more than one beside
 * the chaos run. Otherwise Vitest goes by the last run, of which a fresh clone has none, and then by size.
 */
const longest = [
  "test/faults/workers-lost.test.ts",
  "test/integration/known-faults.test.ts",
  "test/integration/wait-against-event.test.ts",
  "test/e2e/cli-demo.test.ts",
  "test/e2e/cli-dev.test.ts",
  "test/faults/suspects.test.ts",
  "test/e2e/cli-commands.test.ts",
  "test/integration/devstack.test.ts",
  "test/integration/consistency.test.ts",
  "test/integration/event-races.test.ts",
  "test/integration/reconciler.test.ts",
  "test/integration/store/database.test.ts",
  "test/integration/stack.test.ts",
  "test/chaos/run.test.ts",
  "test/faults/redis-faults.test.ts",
  "engine/test/model.test.ts",
  "test/faults/stood-still.test.ts",
  "engine/test/definition/checked-runs.test.ts",
  "test/faults/postgres-faults.test.ts",
  "engine/test/definition/hostile.test.ts",
  "engine/test/definition/validate.test.ts",
  "test/faults/worker-stopped.test.ts",
];

/** So many of them begin before the unit tests: they mostly wait, and leave the cores to what computes. */
const beforeUnit = 2;

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // oxlint-disable-next-line unicorn/no-array-sort -- Vitest's own, which gives back a new array.
    const sorted = await super.sort(files);
    return sorted.toSorted((a, b) => rank(a) - rank(b));
  }
}

/** Unit tests stay in one piece: a process goes on to the next of them only where it follows at once. */
function rank({ moduleId, project }: TestSpecification): number {
  if (project.name === "unit") return beforeUnit - 0.5;
  const index = longest.findIndex((path) => moduleId.endsWith(path));
  return index < 0 ? longest.length : index;
}
