import type {
  JsonObject,
  ScheduleDocument,
  ScheduleRunView,
  ScheduleView,
} from "@millrace/contract";
import { SCHEDULE_STATUSES } from "@millrace/contract";
import type { MillraceClient } from "@millrace/client";
import { type Command, type Context, defineCommand } from "../command.ts";
import { readDocumentFile } from "../documents.ts";
import { UsageError } from "../errors.ts";
import { EXIT } from "../exit-codes.ts";
import { didYouMean } from "../near.ts";
import { jsonLine, type Output, printable } from "../output.ts";
import { table } from "../table.ts";
import { timeText } from "../times.ts";
import { integerOf, oneOf, timeOf } from "../values.ts";

const VERBS = [
  "ls",
  "show",
  "runs",
  "next",
  "apply",
  "pause",
  "resume",
  "trigger",
  "backfill",
  "rm",
] as const;
type Verb = (typeof VERBS)[number];

const options = {
  status: { type: "string", value: "status", description: "ls: ACTIVE, PAUSED or COMPLETED" },
  workflow: { type: "string", value: "id", description: "ls: of this workflow" },
  limit: { type: "string", short: "n", value: "count", description: "ls, runs, next: at most" },
  cursor: { type: "string", value: "cursor", description: "ls, runs: go on after a former page" },
  after: { type: "string", value: "time", description: "next: later than this (default: now)" },
  from: { type: "string", value: "time", description: "backfill: the range's begin" },
  to: { type: "string", value: "time", description: "backfill: the range's end (default: now)" },
  reason: { type: "string", short: "r", value: "text", description: "pause: why" },
} as const;

export const schedules: Command = defineCommand({
  name: "schedules",
  summary: "list, show, apply, pause, resume, trigger, preview and backfill schedules",
  isClient: true,
  arguments: [
    { name: "verb", description: `${VERBS.join(", ")} (default: ls)`, isOptional: true },
    {
      name: "id",
      description: "of a schedule; for apply the files, or -",
      isOptional: true,
      isRest: true,
    },
  ],
  options,
  details: [
    "A file for apply is a schedule as JSON or YAML. One with an id is made or replaced under it, one " +
      "without is made anew.",
  ],
  examples: [
    "millrace schedules",
    "millrace schedules apply nightly.yaml",
    "millrace schedules next nightly -n 5",
    "millrace schedules backfill nightly --from 2026-01-01 --to 2026-01-08",
  ],
  run: async (context, { options: given, positionals }) => {
    const [name = "ls", ...rest] = positionals;
    const verb = verbOf(name);
    if (verb === "ls") return list(context, given);
    if (verb === "apply") return apply(context, rest);
    const [id, ...others] = rest;
    if (id === undefined) throw new UsageError(`schedules ${verb} needs the id of a schedule`);
    if (others.length > 0) throw new UsageError(`schedules ${verb} takes one id`);
    return act(context, verb, id, given);
  },
});

interface Given {
  readonly status: string | undefined;
  readonly workflow: string | undefined;
  readonly limit: string | undefined;
  readonly cursor: string | undefined;
  readonly after: string | undefined;
  readonly from: string | undefined;
  readonly to: string | undefined;
  readonly reason: string | undefined;
}

function verbOf(given: string): Verb {
  const found = VERBS.find((verb) => verb === given);
  if (found !== undefined) return found;
  throw new UsageError(
    `schedules knows ${VERBS.join(", ")}, not ${JSON.stringify(given)}${didYouMean(given, VERBS)}`,
  );
}

async function list({ client, output }: Context, given: Given): Promise<number> {
  const limit = limitOf(given, 500);
  const status = oneOf("--status", given.status, SCHEDULE_STATUSES);
  const { workflow, cursor } = given;
  const ofWorkflow =
    workflow === undefined ? {} : ({ targetType: "workflow", targetId: workflow } as const);
  const page = await client.schedules.list({ limit, status, cursor, ...ofWorkflow });
  output.json(page);
  if (output.isJson) return EXIT.done;
  if (page.items.length === 0) output.note("There are no schedules.");
  const rows = page.items.map((schedule) => [
    schedule.id,
    schedule.status,
    printable(targetText(schedule)),
    printable(timingText(schedule)),
    timeText(schedule.nextTickAt),
  ]);
  if (rows.length > 0) {
    const lines = table(["id", "status", "target", "timing", "next tick (UTC)"], rows);
    for (const line of lines) output.line(line);
  }
  return EXIT.done;
}

async function apply({ client, output, readInput }: Context, files: readonly string[]) {
  if (files.length === 0) throw new UsageError("schedules apply needs a file, or - for the input");
  const results: ScheduleView[] = [];
  for (const file of files) {
    for (const { value } of await readDocumentFile(file, file === "-" ? readInput : undefined)) {
      const schedule = await put(client, value);
      results.push(schedule);
      if (!output.isJson) output.line(`${file}: ${scheduleLine(schedule)}`);
    }
  }
  output.json({ results });
  return EXIT.done;
}

/** What is wrong with it, its shape included, the API says. */
function put({ schedules: calls }: MillraceClient, value: unknown): Promise<ScheduleView> {
  const schedule = value as ScheduleDocument;
  return typeof schedule?.id === "string"
    ? calls.put(schedule.id, schedule)
    : calls.create(schedule);
}

async function act(
  { client: { schedules: calls }, output }: Context,
  verb: Exclude<Verb, "ls" | "apply">,
  id: string,
  given: Given,
): Promise<number> {
  const say = (answer: JsonObject | object, print: () => void) => {
    output.json(answer);
    if (!output.isJson) print();
    return EXIT.done;
  };
  switch (verb) {
    case "show": {
      const schedule = await calls.get(id);
      return say(schedule, () => printOne(output, schedule));
    }
    case "runs": {
      const page = await calls.runs(id, { limit: limitOf(given, 500), cursor: given.cursor });
      return say(page, () => printRuns(output, page.items));
    }
    case "next": {
      const after = timeOf("--after", given.after);
      const next = await calls.next(id, { count: limitOf(given, 1_000) ?? 10, after });
      return say(next, () => {
        for (const tick of next.items) output.line(timeText(tick));
      });
    }
    case "pause": {
      const schedule = await calls.pause(id, { reason: given.reason });
      return say(schedule, () => output.line(scheduleLine(schedule)));
    }
    case "resume": {
      const schedule = await calls.resume(id);
      return say(schedule, () => output.line(scheduleLine(schedule)));
    }
    case "trigger": {
      const run = await calls.trigger(id);
      return say(run, () => output.line(run.instanceId ?? "–"));
    }
    case "backfill": {
      const from = timeOf("--from", given.from);
      if (from === undefined) throw new UsageError("schedules backfill needs --from");
      const to = timeOf("--to", given.to) ?? new Date().toISOString();
      const done = await calls.backfill(id, { from, to });
      const { ticks, started, waiting, failed, alreadyRan } = done;
      return say(done, () =>
        output.line(
          `${ticks} ticks: ${started} started, ${waiting} waiting, ${failed} failed, ${alreadyRan} had run`,
        ),
      );
    }
    case "rm":
      await calls.delete(id);
      return say({ id, deleted: true }, () => output.line(`schedule ${id} is deleted`));
  }
}

function limitOf({ limit }: Given, max: number): number | undefined {
  return integerOf("--limit", limit, { min: 1, max });
}

function scheduleLine({ id, status, nextTickAt }: ScheduleView): string {
  const next = nextTickAt === null ? "" : `, next tick ${timeText(nextTickAt)} UTC`;
  return `schedule ${id} is ${status}${next}`;
}

function targetText({ target }: ScheduleView): string {
  return target.type === "workflow" ? target.id : `task ${target.id}`;
}

function timingText({ timing }: ScheduleView): string {
  const { executeAt, cronExpression, interval, timezone } = timing;
  if (executeAt !== undefined) return `once at ${timeText(executeAt)} UTC`;
  if (interval !== undefined) return `every ${interval}`;
  return timezone === undefined ? `${cronExpression}` : `${cronExpression} (${timezone})`;
}

function printOne(output: Output, schedule: ScheduleView): void {
  const { id, status, overlapPolicy, catchupWindow, jitter, dst, counts, pause, calendarId } =
    schedule;
  const { trouble, nextTicks = [], recentRuns = [], input } = schedule;
  output.line(`schedule ${id}  ${status}`);
  output.line(`  target     ${printable(targetText(schedule))}`);
  output.line(`  timing     ${printable(timingText(schedule))}`);
  if (calendarId !== null) output.line(`  calendar   ${printable(calendarId)}`);
  if (dst !== null) output.line(`  clocks     ${dst.missing} and ${dst.duplicate}`);
  output.line(`  policy     ${overlapPolicy}, window ${catchupWindow}, jitter ${jitter}`);
  output.line(`  input      ${jsonLine(input, 200)}`);
  const { started, skipped, missed, failed } = counts;
  output.line(
    `  ticks      ${started} started, ${skipped} skipped, ${missed} missed, ${failed} failed`,
  );
  if (pause !== null) {
    const why = pause.reason === null ? "" : `: ${printable(pause.reason)}`;
    output.line(`  paused     ${timeText(pause.at)} UTC by ${printable(pause.by)}${why}`);
  }
  if (trouble !== null) output.line(`  trouble    ${printable(trouble)}`);
  for (const tick of nextTicks.slice(0, 3)) output.line(`  next       ${timeText(tick)} UTC`);
  if (recentRuns.length > 0) printRuns(output, recentRuns);
}

function printRuns(output: Output, runs: readonly ScheduleRunView[]): void {
  if (runs.length === 0) return output.note("There are no runs.");
  const rows = runs.map(({ tickAt, kind, status, reason, instanceId }) => [
    timeText(tickAt),
    kind,
    reason === null ? status : `${status} (${reason})`,
    instanceId ?? "–",
  ]);
  for (const line of table(["tick (UTC)", "kind", "status", "instance"], rows)) output.line(line);
}
