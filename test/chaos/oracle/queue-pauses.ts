import { DEFINITIONS, sideQueue } from "../definitions.ts";
import type { Finding } from "../oracle.ts";
import type { RequestRecord, RunRecord } from "../record.ts";
import { onItsWayMs, stoodStill } from "./cancels.ts";
import { isAccepted } from "./evidence.ts";

/**
 * Of a paused queue no step begins, from the answer of the pause until somebody asks for the resume. As after
 * a cancel, what had been claimed before may still be on its way to the ledger.
 */
export function checkQueuePauses(record: RunRecord): readonly Finding[] {
  const runs = runsOfQueue(record);
  return record.requests.filter(isPause).flatMap((pause) => {
    const resume = record.requests.find(
      ({ operation, sentAt }) => operation === "resume queue" && sentAt >= pause.answeredAt,
    );
    return runs
      .filter(
        (run) =>
          run.at > pause.answeredAt + onItsWayMs &&
          run.at < (resume?.sentAt ?? Infinity) &&
          !stoodStill(record, run),
      )
      .map(({ step, instance, at }): Finding => {
        const late = `${at - pause.answeredAt} ms after the pause of its queue was answered`;
        return ["queue pause", `${step} of ${instance} began to run ${late}`];
      });
  });
}

function isPause(request: RequestRecord): boolean {
  return request.operation === "pause queue" && isAccepted(request);
}

interface Run {
  readonly instance: string;
  readonly step: string;
  readonly at: number;
  readonly pid: number;
}

function runsOfQueue({ instances, entries }: RunRecord): readonly Run[] {
  const stepsOf = new Map(
    DEFINITIONS.map(({ id, steps }) => [
      id,
      steps.flatMap((step) =>
        step.type === "TASK" && step.queue === sideQueue ? step.stepId : [],
      ),
    ]),
  );
  const workflows = new Map(instances.map(({ view: { id, workflowId } }) => [id, workflowId]));
  return entries.flatMap(({ instance, step, receivedAt: at, details: { kind, pid } }) =>
    kind === "run" && stepsOf.get(workflows.get(instance) ?? "")?.includes(step)
      ? { instance, step, at, pid: Number(pid) }
      : [],
  );
}
