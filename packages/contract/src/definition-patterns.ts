/**
 * What the texts of a definition look like, as regular expressions for its published JSON Schema. The
 * engine reads the texts and is what counts: whatever it accepts fits, and what does not fit it refuses.
 * A text with `${…}` in it is not looked at; what it comes to is known when it runs.
 */

const whole = (text: string): string => `^(?:${text})$`;
const orExpression = (text: string): string => String.raw`\$\{|${text}`;
const noExpression = String.raw`(?![\s\S]*\$\{)`;

const segment = String.raw`[^.*\s\u0000-\u001f\u007f]+`;
const wildcard = String.raw`(?:\*|${segment})`;
const atMost255 = String.raw`(?!.{256})`;
/** A fifth `*` is too many (`**` at the end is another matter). */
const fewWildcards = String.raw`(?!(?:(?:${segment}\.)*\*(?:\.|$)){5})`;
/** Under `workflow.` only what hears a lifecycle event, as `workflow.*` does. */
const lifecycle = [
  String.raw`\*\*`,
  String.raw`(?:\*|started|completed|failed|cancelled|paused|resumed)(?:\.\*\*)?`,
  String.raw`(?:\*|step)\.(?:\*|completed|failed|retrying|skipped)(?:\.\*\*)?`,
  String.raw`(?:\*|compensation)\.(?:\*|completed)(?:\.\*\*)?`,
  String.raw`(?:\*|step|compensation)\.\*\*`,
].join("|");
/** Patterns that hear at least one of them. */
export const LIFECYCLE_TYPES = String.raw`^workflow\.(?:${lifecycle})$`;
const reserved = String.raw`(?!workflow\.(?!(?:${lifecycle})$))`;
const listened = `^${reserved}${atMost255}${fewWildcards}(?:${wildcard}\\.){0,11}(?:\\*\\*|${wildcard})$`;

/** Of a wait or a cancellation trigger. */
export const AWAITED_PATTERN = orExpression(listened);

/** Of a start trigger, which has no instance yet that an expression could read. */
export const START_PATTERN = listened.replace("^", `^${noExpression}`);

/** An event is emitted under a plain name. */
export const EMITTED_NAME = orExpression(
  String.raw`^(?!workflow(?:\.|$))${atMost255}(?:${segment}\.){0,11}${segment}$`,
);

const digits = String.raw`\d{1,15}`;
const amount = String.raw`\d{1,15}(?:\.\d{1,9})?`;
/** Only the last amount may have a fraction. */
const durationStart = String.raw`^(?=.{1,64}$)P(?!$)(?!.*\.\d*[A-Z].*\d)`;
const timeAmounts = `(?:T(?!$)(?:${amount}H)?(?:${amount}M)?(?:${amount}S)?)?$`;
const duration = `${durationStart}(?:${digits}Y)?(?:${digits}M)?(?:${amount}W)?(?:${amount}D)?${timeAmounts}`;

export const DURATION = orExpression(duration);

/** Of a retry, where months and years are too long. */
export const INTERVAL = orExpression(
  `${durationStart}(?:0{1,15}Y)?(?:0{1,15}M)?(?:${amount}W)?(?:${amount}D)?${timeAmounts}`,
);

/** By a calendar, which has whole days only. */
export const WORKING_DURATION = orExpression(
  `${durationStart}(?:${digits}Y)?(?:${digits}M)?(?:${digits}W)?(?:${digits}D)?${timeAmounts}`,
);

export const LOOKBACK = `^instance$|${DURATION}`;

const date = String.raw`(?!0000)\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])`;
const clock = String.raw`(?:[01]\d|2[0-4]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?`;
const time = String.raw`${date}(?:T${clock}(?:Z|[+-]\d{2}:\d{2}))?`;

/** An expression, or what begins as a time and then is one. */
export const UNTIL = orExpression(String.raw`^(?!\s*(?:\d|[+-]\d{4}|$))|${whole(time)}`);

const forbidden = "__proto__|constructor|prototype";
const name = String.raw`(?!(?:${forbidden})(?:[.[]|$))[^.[\]"'\s]+`;
const member = [
  String.raw`\.${name}`,
  String.raw`\[\d+\]`,
  String.raw`\["(?!(?:${forbidden})"\])[^"\\]+"\]`,
  String.raw`\['(?!(?:${forbidden})'\])[^'\\]+'\]`,
].join("|");

/** Into an event's payload. */
export const PAYLOAD_PATH = String.raw`^(?!event\.payload\.|\$\.)${noExpression}(?:${name}|${member})(?:${member})*$`;

/** There is something in it. */
export const NOT_BLANK = String.raw`\S`;

/** Names that expressions refuse. */
export const FORBIDDEN_NAMES = forbidden.split("|");

/** Names that stand for something in every expression, or inside every MAP. */
export const ROOT_NAMES = ["workflow", "input", "variables", "steps", "event", "index"] as const;
