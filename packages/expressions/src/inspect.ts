import { originOf } from "./expression.ts";
import type { Expression } from "./expression.ts";
import { infer } from "./infer.ts";
import type { Mismatch, Roots } from "./infer.ts";
import type { Shape } from "./shape.ts";
import { shapeOfTemplate } from "./template.ts";
import type { PlacedReport, Template } from "./template.ts";

export interface Inspection {
  /** What its value can be. */
  readonly shape: Shape;
  /** What is wrong whatever the values are; `pointer` is that of the string in a template. */
  readonly mismatches: readonly (Mismatch & { readonly pointer: string })[];
  /** Outputs of steps that are read without a care whether they are there. */
  readonly bareOutputs: readonly { readonly stepId: string; readonly pointer: string }[];
}

/**
 * Looks at an expression or template in the light of what is known of its roots. A root that is not
 * among `roots` may be anything.
 */
export function inspect(value: Expression | Template, roots: Roots): Inspection {
  const mismatches: (Mismatch & { pointer: string })[] = [];
  const bareOutputs: { stepId: string; pointer: string }[] = [];
  const report: PlacedReport = (pointer) => ({
    mismatch: (code, message, offset) => mismatches.push({ code, message, offset, pointer }),
    bareOutput: (stepId) => bareOutputs.push({ stepId, pointer }),
  });
  const shape =
    "isConstant" in value
      ? shapeOfTemplate(value, roots, report)
      : infer(originOf(value).tree, value.source, roots, report(""));
  return { shape, mismatches, bareOutputs };
}
