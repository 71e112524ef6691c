import type { Check, Finding } from "../oracle.ts";
import { entriesOf } from "./evidence.ts";

/**
 * P5 for events that are for one wait alone: each of them is in one hand, and of its own round. That
 * nobody goes without shows in that all come to their end (P12): there are as many events as waits, and
 * what a cancelled one gives back goes to the next.
 */
export const checkRivals: Check = (evidence) => {
  const { plan, instance, takers } = evidence;
  if (plan.workflowId !== "rival" || !instance) return [];
  const findings: Finding[] = [];
  const saw = entriesOf(evidence, "run", "met").map((run) => run.saw);
  const wait = instance.view.state.steps["wait"];
  const stored = wait?.status === "COMPLETED" ? eventIn(wait.output) : undefined;
  for (const event of new Set(saw)) {
    if (event !== stored?.id) {
      findings.push(["P5", `"met" saw the event ${String(event)}, and ${stored?.id} is stored`]);
    }
  }
  if (stored === undefined) return findings;
  if (stored.round !== plan.input["round"]) {
    findings.push(["P4", `it took ${stored.id}, which is of round ${String(stored.round)}`]);
  }
  const others = (takers.get(stored.id) ?? []).filter((id) => id !== instance.view.id);
  if (others.length > 0) {
    findings.push(["P5", `${stored.id} is for one alone, and ${others.join(", ")} has it too`]);
  }
  return findings;
};

function eventIn(output: unknown): { readonly id: string; readonly round: unknown } {
  const { id, payload } = output as { id: string; payload?: { round?: unknown } };
  return { id, round: payload?.round };
}
