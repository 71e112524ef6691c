import type { StepOutline } from "./outline.ts";

export type Pair = readonly [step: number, reader: number];

/**
 * Two steps, or those around them, that stand in one list; one and the same where one is around the
 * other. Undefined where they are in two branches of one step.
 */
export function inOneList(
  steps: readonly StepOutline[],
  one: number,
  other: number,
): Pair | undefined {
  const around = (index: number): readonly number[] => {
    const chain: number[] = [];
    for (let at: number | undefined = index; at !== undefined; at = steps[at]?.parent) {
      chain.push(at);
    }
    return chain;
  };
  const others = around(other);
  for (const left of around(one)) {
    const right = others.find((each) => steps[each]?.list === steps[left]?.list);
    if (right === undefined) continue;
    return left === right && left !== one && right !== other ? undefined : [left, right];
  }
  return undefined;
}
