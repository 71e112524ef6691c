import { ExpressionError } from "./errors.ts";
import { originOf } from "./expression.ts";
import type { Expression } from "./expression.ts";
import { failingPart } from "./failing-parts.ts";
import { infer } from "./infer.ts";
import { noGuards } from "./guards.ts";
import type { Guards } from "./guards.ts";
import type { Mismatch, Roots } from "./infer.ts";
import { startRun } from "./run.ts";
import type { Shape } from "./shape.ts";
import { failuresInTemplate, shapeOfTemplate } from "./template.ts";
import type { PlacedReport, Template } from "./template.ts";

export interface Inspection {
  /** What its value can be. */
  readonly shape: Shape;
  /** What is wrong whatever the values are; `pointer` is that of the string in a template. */
  readonly mismatches: readonly (Mismatch & { readonly pointer: string })[];
  /** Outputs of steps that are read without a care whether they are there. */
  readonly bareOutputs: readonly { readonly stepId: string; readonly pointer: string }[];
  /** Members of outputs that are read so. */
  readonly bareMembers: readonly BareMember[];
}

export interface BareMember {
  readonly stepId: string;
  readonly member: string;
  readonly pointer: string;
}

/**
 * Looks at an expression or template in the light of what is known of its roots. A root that is not
 * among `roots` may be anything.
 *
 * @param guards What has been asked of the types of values before it is evaluated.
 */
export function inspect(
  value: Expression | Template,
  roots: Roots,
  guards: Guards = noGuards,
): Inspection {
  const known = { roots, guards };
  const mismatches: (Mismatch & { pointer: string })[] = [];
  const bareOutputs: { stepId: string; pointer: string }[] = [];
  const bareMembers: BareMember[] = [];
  const report: PlacedReport = (pointer) => ({
    mismatch: (code, message, offset) => mismatches.push({ code, message, offset, pointer }),
    bareOutput: (stepId) => bareOutputs.push({ stepId, pointer }),
    bareMember: (stepId, member) => bareMembers.push({ stepId, member, pointer }),
  });
  const shape =
    "isConstant" in value
      ? shapeOfTemplate(value, known, report)
      : infer(originOf(value).tree, value.source, known, report(""));
  return { shape, mismatches, bareOutputs, bareMembers };
}

/**
 * What in an expression, or in each of a template's, fails in every run: a part that reads nothing
 * comes to the same each time, and no other part is evaluated once it has failed. A part that is
 * evaluated only at times is not among them.
 *
 * @param work Units that finding out may cost altogether; what is not found by then is left out.
 */
export function failuresOf(value: Expression | Template, work: number): readonly ExpressionError[] {
  const run = startRun({ now: "" }, work);
  if ("isConstant" in value) return failuresInTemplate(value, run);
  const { source } = value;
  const { tree, rules } = originOf(value);
  const found = failingPart(tree, rules, run);
  if (found === undefined) return [];
  const { failure, offset } = found;
  return [new ExpressionError(failure.code, failure.message, { source, offset })];
}
