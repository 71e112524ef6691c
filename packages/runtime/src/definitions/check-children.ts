import { childInputProblems, childWorkflowsOf } from "@millrace/engine";
import type { ChildWorkflow } from "@millrace/engine";
import { getDefinition } from "@millrace/store";
import type { DefinitionDocument } from "@millrace/store";
import type { Problem } from "../errors.ts";
import type { Services } from "../services.ts";

/** What is wrong, or likely wrong, with the workflows that a definition starts. */
export interface ChildFindings {
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
}

/** Definitions that are looked into, beside the one that is checked. */
const mostLookedAt = 500;

/**
 * Looks a definition's children up among those that are registered. One that is not there may come
 * later; one that waits for the definition itself, by whatever way, would never come to an end.
 */
export async function checkChildren(
  { database }: Pick<Services, "database">,
  tenantId: string,
  document: DefinitionDocument,
): Promise<ChildFindings> {
  const { id } = document;
  const known = new Map<string, Promise<DefinitionDocument | undefined>>();
  const load = ({ workflowId, version }: ChildWorkflow) => {
    const name = nameOf(workflowId, version);
    const loading =
      known.get(name) ??
      getDefinition(database.db, tenantId, workflowId, version).then((found) => found?.document);
    known.set(name, loading);
    return loading;
  };

  /** The names along a way that leads back to the definition; undefined where there is none. */
  async function wayBack(
    child: ChildWorkflow,
    seen: Set<string>,
  ): Promise<readonly string[] | undefined> {
    const { workflowId, version, isCertain } = child;
    if (!isCertain) return undefined;
    if (workflowId === id && version === undefined) return [workflowId];
    const name = nameOf(workflowId, version);
    if (seen.has(name) || seen.size > mostLookedAt) return undefined;
    seen.add(name);
    const found = await load(child);
    for (const next of found === undefined ? [] : childWorkflowsOf(found)) {
      const way = await wayBack(next, seen);
      if (way !== undefined) return [name, ...way];
    }
    return undefined;
  }

  const problems: Problem[] = [];
  const warnings: Problem[] = [];
  for (const child of childWorkflowsOf(document)) {
    const { path, workflowId, version } = child;
    // The checker of single documents has seen to those that name it themselves.
    if (workflowId === id && version === undefined) continue;
    const found = await load(child);
    const refused = found ? childInputProblems(document, child, found.inputSchema) : [];
    // The latest version may be another one by the time it is started.
    if (version !== undefined) problems.push(...refused);
    else warnings.push(...refused.map((each) => ({ ...each, code: "CHILD_INPUT" })));
    if (found === undefined) {
      const message = `no workflow ${nameOf(workflowId, version)} is registered yet; the step fails unless it is when it starts`;
      warnings.push({ path, code: "UNKNOWN_WORKFLOW", message });
    }
    const way = await wayBack(child, new Set());
    if (way === undefined) continue;
    const message = `the workflow waits for itself, again and again: ${[id, ...way].join(" → ")}; give one of the steps a condition, lead a way past it, or make it detached`;
    problems.push({ path, code: "RECURSIVE_WORKFLOW", message });
  }
  return { problems, warnings };
}

function nameOf(workflowId: string, version: number | undefined): string {
  return version === undefined ? workflowId : `${workflowId} version ${version}`;
}
