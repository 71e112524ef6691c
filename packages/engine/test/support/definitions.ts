import { readFileSync } from "node:fs";
import type { WorkflowDefinition } from "@millrace/contract";
import type { Definition } from "../../src/definition/definition.ts";
import { compileDefinition } from "../../src/definition/compile.ts";
import { validateDefinition } from "../../src/definition/validate.ts";

const fixtures = new URL("../../../../test/fixtures/definitions/", import.meta.url);

/** What a test says of a definition; the rest has defaults. Steps without a type are TASKs. */
export interface Sketch extends Omit<Partial<WorkflowDefinition>, "steps" | "compensationSteps"> {
  readonly steps: readonly object[];
  readonly compensationSteps?: readonly object[];
}

/** Compiles a sketch as registration would, warnings aside. */
export function define(sketch: Sketch): Definition {
  return compiled({
    id: "test",
    ...sketch,
    steps: sketch.steps.map(withTask),
    ...(sketch.compensationSteps && {
      compensationSteps: sketch.compensationSteps.map(withTask),
    }),
  });
}

/** Compiles one of the documents that are kept as files. */
export function fixture(name: string): Definition {
  return compiled(JSON.parse(readFileSync(new URL(name, fixtures), "utf8")));
}

function compiled(value: unknown): Definition {
  const { document, problems = [] } = validateDefinition(value);
  if (document === undefined) {
    throw new Error(problems.map(({ path, message }) => `${path}: ${message}`).join("\n"));
  }
  return compileDefinition(document, 1);
}

/** A step, and those inside it, with the type and task that go without saying. */
function withTask(step: object): object {
  const inside = step as { branches?: { steps: object[] }[]; steps?: object[] };
  return {
    type: "TASK",
    ...taskOf(step),
    ...step,
    ...(inside.steps && { steps: inside.steps.map(withTask) }),
    ...(inside.branches && {
      branches: inside.branches.map((each) => ({ ...each, steps: each.steps.map(withTask) })),
    }),
  };
}

function taskOf(step: object): object {
  const isTask = !("type" in step) || step.type === "TASK";
  return isTask && "stepId" in step ? { taskId: `${String(step.stepId)}_task` } : {};
}
