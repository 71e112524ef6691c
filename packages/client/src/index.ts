export { MillraceClient } from "./client.ts";
export type { CalendarCalls } from "./calendars.ts";
export type { DeadLetterCalls } from "./dead-letters.ts";
export type { DefinitionCalls, DefinitionSource, Registered, Validated } from "./definitions.ts";
export type { LimitCalls } from "./limits.ts";
export {
  MillraceApiError,
  MillraceClientError,
  MillraceConnectionError,
  MillraceWaitTimeoutError,
} from "./errors.ts";
export type { EventCalls } from "./events.ts";
export type {
  ChangeOptions,
  GetOptions,
  InstanceCalls,
  InstanceFilter,
  ListInstances,
  StartOptions,
  WaitOptions,
} from "./instances.ts";
export type { ScheduleCalls } from "./schedules.ts";
export type { FollowedEvent, FollowOptions } from "./stream.ts";
export type { CallOptions, ClientOptions } from "./transport.ts";
export type { WebhookCalls } from "./webhooks.ts";
