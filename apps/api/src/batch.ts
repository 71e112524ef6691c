import type { ProblemDetails } from "@millrace/contract";
import type * as z from "zod";
import { problemOf } from "./error-handler.ts";
import type { Caller, Outcome } from "./runtime.ts";
import { parsePart } from "./validation.ts";

interface BatchOptions<Item, Answer extends object> {
  readonly schema: z.ZodType<Item>;
  /** On whose behalf an item is; may refuse it. */
  readonly callerOf: (item: Item) => Caller;
  /** @param indexes Where in the whole batch the items stand. */
  readonly run: (
    caller: Caller,
    items: readonly Item[],
    indexes: readonly number[],
  ) => Promise<readonly Outcome<Answer>[]>;
  /** Of an item that went well. */
  readonly statusOf: (answer: Answer) => number;
}

type Result<Answer> = {
  readonly index: number;
  readonly status: number;
  readonly problem?: ProblemDetails;
} & Partial<Answer>;

/**
 * Runs each item of a batch for itself, those of one tenant together, and answers in their order:
 * what is wrong with one item is its own result and nobody else's.
 */
export async function answerBatch<Item, Answer extends object>(
  items: readonly unknown[],
  { schema, callerOf, run, statusOf }: BatchOptions<Item, Answer>,
): Promise<Result<Answer>[]> {
  const outcomes = new Map<number, Outcome<Answer>>();
  const byTenant = new Map<
    string,
    { readonly caller: Caller; readonly at: number[]; readonly items: Item[] }
  >();
  for (const [index, value] of items.entries()) {
    try {
      const item = parsePart("body", schema, value);
      const caller = callerOf(item);
      const group = byTenant.get(caller.tenantId) ?? { caller, at: [], items: [] };
      byTenant.set(caller.tenantId, group);
      group.at.push(index);
      group.items.push(item);
    } catch (error) {
      outcomes.set(index, { error });
    }
  }

  await Promise.all(
    [...byTenant.values()].map(async (group) => {
      const answers = await run(group.caller, group.items, group.at);
      for (const [position, index] of group.at.entries()) {
        outcomes.set(index, answers[position] ?? { error: new Error("an item has no outcome") });
      }
    }),
  );

  const results = items.map((_, index) =>
    resultOf(index, outcomes.get(index) ?? { error: undefined }, statusOf),
  );
  // What nothing at all came of is answered as a single call would be, with the time to ask again.
  const [first] = outcomes.values();
  if (first !== undefined && "error" in first && results.every(({ status }) => status === 503)) {
    throw first.error;
  }
  return results;
}

function resultOf<Answer extends object>(
  index: number,
  outcome: Outcome<Answer>,
  statusOf: (answer: Answer) => number,
): Result<Answer> {
  if (!("error" in outcome)) return { index, status: statusOf(outcome), ...outcome };
  const { problem } = problemOf(outcome.error);
  return { index, status: problem.status, problem } as Result<Answer>;
}
