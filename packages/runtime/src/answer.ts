import { mergeReads, noReads } from "@millrace/engine";
import type { Needs, ReadRequest, Reads } from "@millrace/engine";

/**
 * Asks something of the engine, and again with the rows that it lacks until it lacks none. Where it lacks none at
 * first, as nearly always, the answer is there at once.
 *
 * How many rounds that takes is not bounded: a walk may find out only at its hundredth step what the
 * hundredth step reads. But each of them has to ask for something that none before it has asked for.
 *
 * @param about Whom an error names.
 */
export function answerLoading<Answer>(
  about: string,
  ask: (reads: Reads) => Answer | Needs,
  load: (requests: readonly ReadRequest[]) => Promise<Reads>,
  known: Reads = noReads,
): Answered<Answer> | Promise<Answered<Answer>> {
  const answer = ask(known);
  return lacksRows(answer) ? askLoading(about, ask, load, known, answer) : { answer, reads: known };
}

async function askLoading<Answer>(
  about: string,
  ask: (reads: Reads) => Answer | Needs,
  load: (requests: readonly ReadRequest[]) => Promise<Reads>,
  known: Reads,
  lacking: Needs,
): Promise<Answered<Answer>> {
  const asked = new Set<string>();
  for (let reads = known, { needs } = lacking; ;) {
    const before = asked.size;
    for (const request of needs) asked.add(JSON.stringify(request));
    if (asked.size === before) {
      throw new Error(`${about}: the same rows were asked for twice: ${[...asked].at(-1)}`);
    }
    reads = mergeReads(reads, await load(needs));
    const answer = ask(reads);
    if (!lacksRows(answer)) return { answer, reads };
    ({ needs } = answer);
  }
}

export interface Answered<Answer> {
  readonly answer: Answer;
  /** All rows that it was given. */
  readonly reads: Reads;
}

function lacksRows(answer: unknown): answer is Needs {
  return typeof answer === "object" && answer !== null && "needs" in answer;
}
