import type { Outline } from "./outline.ts";
import { sources } from "./value-checker.ts";

/** Whether the conditions of a step may know on which way it was reached, and so what has run. */
export type IsTelling = (index: number, of: number) => boolean;

/**
 * They may where they ask for something that something else depends on too: other conditions, a step
 * that may have failed, a variable that is set on some way. A condition that alone asks for a thing
 * is where ways part.
 */
export function tellingSteps(
  { steps, byId }: Outline,
  asked: ReadonlyMap<number, ReadonlySet<string>>,
): IsTelling {
  const dependents = new Map<string, number>();
  const count = (key: string): void => void dependents.set(key, (dependents.get(key) ?? 0) + 1);
  for (const [index, step] of steps.entries()) {
    const own = new Set(asked.get(index));
    const parts = step.edges.some(({ kind }) => kind === "error" || kind === "timeout");
    if (step.stepId !== undefined && (parts || step.fields["condition"] !== undefined)) {
      own.add(step.stepId);
    }
    if (step.type === "SET" || step.fields["eventPayloadMapping"] !== undefined) {
      own.add(sources.variables);
    }
    own.forEach(count);
  }
  return (index, of) => {
    const target = steps[of]?.path ?? "";
    // Of what is around it, or inside: the one completes with the other.
    const concerns = (key: string): boolean => {
      const path = byId.get(key)?.path;
      if (path === undefined) return false;
      return path === target || path.startsWith(`${target}/`) || target.startsWith(`${path}/`);
    };
    return [...(asked.get(index) ?? [])].some(
      (key) => concerns(key) || (dependents.get(key) ?? 0) > 1,
    );
  };
}
