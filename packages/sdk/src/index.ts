export type { TaskContext, TaskInstance, TaskLog, TaskLogger } from "./context.ts";
export {
  defineTask,
  isTask,
  type Task,
  taskFault,
  type ValueIssue,
  type ValueSchema,
} from "./define-task.ts";
export {
  errorDetailsOf,
  errorMessageOf,
  errorNameOf,
  isTaskError,
  retryableOf,
  TaskError,
  type TaskErrorOptions,
} from "./task-error.ts";
export {
  MillraceApiError,
  MillraceClient,
  MillraceClientError,
  MillraceConnectionError,
  MillraceWaitTimeoutError,
} from "@millrace/client";
export type { JsonValue, RetryDocument, WorkflowDefinition } from "@millrace/contract";
export {
  type CompensationOptions,
  DefinitionError,
  defineWorkflow,
  WorkflowBuilder,
  type WorkflowOptions,
} from "./define-workflow.ts";
export {
  type ChoiceOptions,
  type Continuation,
  type DelayOptions,
  type EmitEventOptions,
  type EndOptions,
  type EventWaitOptions,
  type Expressed,
  type MapOptions,
  type ParallelOptions,
  type SetOptions,
  StepChain,
  type SubWorkflowOptions,
  type TaskOptions,
} from "./step-chain.ts";
