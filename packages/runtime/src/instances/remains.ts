import { compileDefinition } from "@millrace/engine";
import type { Definition } from "@millrace/engine";
import { readInstance } from "@millrace/store";
import type { InstanceRead, Key } from "@millrace/store";
import { WorkflowNotFoundError } from "../errors.ts";
import type { Services } from "../services.ts";

/**
 * What takes the place of a definition that is lost to an instance which undoes what it has done, and which
 * nothing else could bring to its end.
 *
 * @param error Why nothing could be decided. Thrown again where that is not it.
 */
export async function remainsToUndo(
  { database }: Services,
  key: Key,
  error: unknown,
): Promise<Definition> {
  if (!(error instanceof WorkflowNotFoundError)) throw error;
  const read = await readInstance(database.db, key, []);
  if (read?.snapshot.compensation?.status !== "IN_PROGRESS") throw error;
  return remainsOf(read);
}

/**
 * As much of a lost definition as the rows of an instance tell: what it takes to close its waits, so that an
 * event which was for one of them alone goes to the next, and to give back its slot.
 */
export function remainsOf({ snapshot, waits }: InstanceRead): Definition {
  const { workflowId, workflowVersion, slot } = snapshot;
  const steps = waits.flatMap(({ stepId, deliver }) =>
    stepId === null ? [] : { stepId, type: "EVENT_WAIT" as const, eventPattern: "lost", deliver },
  );
  const end = { stepId: "end", type: "END" as const, outcome: "CANCELLED" as const };
  const document = { id: workflowId, steps: [...steps, end] };
  return compileDefinition(
    slot === null ? document : { ...document, concurrency: { limit: 1 } },
    workflowVersion,
  );
}
