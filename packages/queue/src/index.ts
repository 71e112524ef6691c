export type { Consumer, Running } from "./consumer.ts";
export { redactUrl } from "./connection.ts";
export { QueueUnavailableError } from "./errors.ts";
export {
  type AdvanceJob,
  advanceJobId,
  advanceJobSchema,
  advanceQueue,
  jobPriority,
  type StepJob,
  stepJobId,
  stepJobSchema,
} from "./job.ts";
export type { QueueLog } from "./log.ts";
export {
  type AdvanceToAdd,
  type ConsumeOptions,
  type Handler,
  openQueue,
  type PendingJob,
  type Queue,
  type QueueDepth,
  type QueueSettings,
  type StepToAdd,
} from "./queue.ts";
export type { Wake, WakeChannel, WakeListener, WakeMessage, WakeTopic } from "./wake.ts";
