import { availableParallelism } from "node:os";
import { dirname, resolve } from "node:path";
import { mergeConfig, type ViteUserConfig } from "vitest/config";
import { testSettings } from "./test/support/config.ts";
import { LongestFirst } from "./test/support/sequencer.ts";

// Tests run on the sources, without a build: only this file activates the condition. The same for
// the environment in which Vitest loads global set-ups.
const conditions = ["@millrace/source"];
const nodeConditions = [...conditions, "module", "node", "development|production"];
const onSources: ViteUserConfig = {
  resolve: { conditions },
  ssr: { resolve: { conditions: nodeConditions } },
  environments: {
    __vitest__: { resolve: { conditions: nodeConditions, noExternal: [/^@millrace\//] } },
  },
};

/** `npm test` has built all, and has them run on that: nothing is compiled once more for each project. */
const onWhatIsBuilt: ViteUserConfig = {
  plugins: [
    {
      name: "as-built",
      enforce: "pre",
      resolveId(source, importer) {
        if (importer === undefined || !source.startsWith(".")) return undefined;
        const path = resolve(dirname(importer), source);
        const built = path.replace(ofSources, "$<root>/dist/$<file>.js");
        return built === path ? undefined : built;
      },
    },
  ],
  test: { server: { deps: { external: [/\/(?:packages|apps)\/[^/]+\/dist\//] } } },
};
const ofSources = /(?<root>\/(?:packages|apps)\/[^/]+)\/src\/(?<file>.*)\.ts$/;

/** What needs Postgres and Redis gets one server of each per run. */
const withServices = {
  globalSetup: ["test/support/stack.ts"],
  testTimeout: 60_000,
  hookTimeout: 60_000,
};

/** What the chaos run plans and how it judges, without any process. */
const pureChaos = [
  "test/chaos/plan.test.ts",
  "test/chaos/oracle.test.ts",
  "test/chaos/forged/*.test.ts",
];

/** Unit tests that compute for longest, most of them properties of random definitions. */
const properties = [
  "packages/engine/test/model.test.ts",
  "packages/engine/test/definition/{checked-runs,hostile,validate}.test.ts",
  "packages/expressions/test/inspect.test.ts",
  "packages/input-schema/test/{known-input,schema-fits}.test.ts",
];

/** Faults that are mostly waited for. */
const faultsBesideOthers = ["test/faults/workers-lost.test.ts", "test/faults/suspects.test.ts"];

/**
 * After all others, three files at a time: faults at certain moments, which ask for some quiet and wait half of
 * their time, and beside them, at a lower priority, what only computes.
 */
const lastOfAll = { maxWorkers: 3, sequence: { groupOrder: 1 } };

const pure = {
  // Nothing here keeps state in its modules, and loading them anew takes longer than the tests.
  isolate: false,
  setupFiles: ["test/support/seed.ts"],
};

const tests: ViteUserConfig = {
  test: {
    // On two cores twice as many as there are: those that need services wait for a third of their time.
    // What happens at a certain moment asks for some quiet, and comes after it. In which order: LongestFirst.
    maxWorkers: Math.max(4, availableParallelism() - 1),
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          // On a busy machine a property of many runs takes its time; none of them times anything.
          testTimeout: 60_000,
          ...pure,
          include: [
            "packages/*/test/**/*.test.ts",
            "apps/*/test/**/*.test.ts",
            "test/architecture/**/*.test.ts",
            ...pureChaos,
          ],
          exclude: properties,
        },
      },
      {
        extends: true,
        test: {
          name: "properties",
          // It gets what the faults leave.
          testTimeout: 300_000,
          ...pure,
          setupFiles: [...pure.setupFiles, "test/support/give-way.ts"],
          include: properties,
          ...lastOfAll,
        },
      },
      {
        extends: true,
        test: {
          name: "integration",
          // As above: each file opens databases and services of its own.
          isolate: false,
          include: ["test/integration/**/*.test.ts"],
          ...withServices,
        },
      },
      {
        extends: true,
        test: {
          name: "e2e",
          isolate: false,
          include: ["test/e2e/**/*.test.ts", ...faultsBesideOthers],
          ...withServices,
        },
      },
      {
        extends: true,
        test: {
          name: "faults",
          isolate: false,
          include: ["test/faults/**/*.test.ts"],
          exclude: faultsBesideOthers,
          ...withServices,
          ...lastOfAll,
        },
      },
      {
        extends: true,
        test: {
          name: "chaos",
          include: ["test/chaos/**/*.test.ts"],
          exclude: pureChaos,
          ...lastOfAll,
        },
      },
    ],
  },
};

export default mergeConfig(testSettings().isBuilt ? onWhatIsBuilt : onSources, tests);
