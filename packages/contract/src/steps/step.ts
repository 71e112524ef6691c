import * as z from "zod";
import { BOUNDS } from "../bounds.ts";
import { ChoiceStep } from "./choice.ts";
import { DelayStep } from "./delay.ts";
import { EmitEventStep } from "./emit-event.ts";
import { EndStep } from "./end.ts";
import { EventWaitStep } from "./event-wait.ts";
import { mapStep, type MapStepOf } from "./map.ts";
import { parallelStep, type ParallelStepOf } from "./parallel.ts";
import { SetStep } from "./set.ts";
import { SubWorkflowStep } from "./sub-workflow.ts";
import { TaskStep } from "./task.ts";

export interface ParallelStep extends ParallelStepOf<StepDocument> {}
export interface MapStep extends MapStepOf<StepDocument> {}

export type StepDocument =
  | TaskStep
  | EventWaitStep
  | DelayStep
  | ChoiceStep
  | SetStep
  | ParallelStep
  | MapStep
  | SubWorkflowStep
  | EmitEventStep
  | EndStep;

export type StepType = StepDocument["type"];

/** The steps of a definition, a branch or a MAP. The first one is where it starts. */
export const StepList: z.ZodType<StepDocument[], StepDocument[]> = z.lazy(() =>
  z.array(StepDocument).min(1).max(BOUNDS.steps),
);

export const ParallelStep = parallelStep(StepList);
export const MapStep = mapStep(StepList);

export const StepDocument = z.discriminatedUnion("type", [
  TaskStep,
  EventWaitStep,
  DelayStep,
  ChoiceStep,
  SetStep,
  ParallelStep,
  MapStep,
  SubWorkflowStep,
  EmitEventStep,
  EndStep,
]);

/** Steps that take time and that no worker runs. */
export const WAITING_STEP_TYPES = [
  "EVENT_WAIT",
  "DELAY",
  "PARALLEL",
  "MAP",
  "SUB_WORKFLOW",
] as const satisfies readonly StepType[];

export const STEP_TYPES = [
  "TASK",
  "EVENT_WAIT",
  "DELAY",
  "CHOICE",
  "SET",
  "PARALLEL",
  "MAP",
  "SUB_WORKFLOW",
  "EMIT_EVENT",
  "END",
] as const satisfies readonly StepType[];
