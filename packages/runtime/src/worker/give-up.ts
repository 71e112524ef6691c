import { errorMessageOf } from "@millrace/sdk";
import { disownSteps, failedRun } from "@millrace/store";
import type { HeldStep } from "@millrace/store";
import type { Services } from "../services.ts";
import { storable } from "./run-attempt.ts";

/** As much of an error as tells what it is. */
const longestText = 300;

/**
 * A step that this worker holds and can do nothing with, its outcome included: it counts as a run that came
 * to nothing, and the row says of what, so that it is tried again after pauses that grow, and is POISONED
 * at last. Handed back it would come again for ever.
 *
 * @param workerId Under which it is held.
 */
export async function giveUp(
  { database, log }: Services,
  workerId: string,
  step: HeldStep,
  error: unknown,
): Promise<void> {
  const why = `${failedRun}${storable(errorMessageOf(error), longestText)}`;
  try {
    await disownSteps(database.db, workerId, [step], why);
  } catch (trouble) {
    // Whoever watches over what this worker holds finds that it does not run.
    log.warn({ err: trouble, instanceId: step.instanceId }, "a step could not be given up");
  }
}
