/**
 * The largest things that the outside may hand in. Generous on purpose: they stop abuse and
 * accidents, not large workflows. Lengths are in UTF-16 code units.
 */
export const BOUNDS = {
  /** Bytes of an HTTP body; more is answered 413. */
  bodyBytes: 1_048_576,
  /** Bytes of a task's output as JSON. */
  outputBytes: 1_000_000,
  /** Nesting of any JSON value, the outermost object being level 1. */
  depth: 64,

  /** Steps in one list: a definition, a branch, a MAP's body. */
  steps: 20_000,
  branches: 1_000,
  choices: 1_000,
  conditions: 1_000,
  errorHandlers: 100,
  errorNames: 100,
  triggers: 1_000,
  /** Events that one EVENT_WAIT waits for. */
  awaitedEvents: 100,
  variables: 1_000,
  tags: 100,

  /** Of a calendar. */
  hoursOfDay: 24,
  countries: 20,
  /** Of a scenario. */
  calendars: 100,
  holidays: 1_000,

  id: 128,
  stepId: 128,
  name: 300,
  description: 20_000,
  /** An expression, a duration or any other text that may hold `${…}`. */
  expression: 10_000,
  pattern: 1_000,
  errorName: 300,
  tag: 200,
  reason: 2_000,
  /** Correlation ids, user ids, event ids, idempotency keys. */
  key: 500,
  cursor: 4_000,

  attempts: 1_000_000,
  iterations: 1_000_000_000,
  /** Of a definition: what its column holds. */
  version: 2_147_483_647,
  priority: 1_000,
  /** Instances that one limit may let run, or queue. */
  admitted: 1_000_000_000,
  batch: 1_000,
  filterIds: 500,
  filterVariables: 100,
  /** Ticks of a schedule that one call previews, or backfills. */
  ticks: 100,
  pageSize: 500,
  url: 2_000,
  /** Workflows that a webhook names. */
  webhookWorkflows: 100,
  waitSeconds: 300,
} as const;
