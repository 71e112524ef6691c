/** What an expression reads, known from its source alone. */
export interface Reads {
  /** Roots named: workflow, input, variables, steps, event, item, index, or a name of `roots`. */
  readonly roots: readonly string[];
  /**
   * Ids read by steps.<id>, workflow.steps.<id> or workflow.instance.state.steps.<id>; "ALL" when
   * the whole of steps, of a state, of the instance or of workflow is taken as a value.
   */
  readonly steps: readonly string[] | "ALL";
  /** Those of which the output, or the whole step, is read. With "ALL" every output is. */
  readonly stepOutputs: readonly string[];
  /** A step's status or attempts, or a whole step: a worker that begins it changes them by itself. */
  readonly stepProgress: boolean;
  /** The instance's input, by any of its names. */
  readonly input: boolean;
  /** The instance's variables, by any of their names. */
  readonly variables: boolean;
  /** Anything at or below workflow.instance, its state included. */
  readonly instance: boolean;
  /** The names directly below workflow.instance that are read; "ALL" when it is taken whole. */
  readonly instanceFields: readonly string[] | "ALL";
  readonly event: boolean;
  /** item, index, or a root of another name. */
  readonly item: boolean;
  /** The result depends on the time of the decision. */
  readonly now: boolean;
}

/** What several expressions read together; nothing for none. */
export function mergeReads(all: readonly Reads[]): Reads {
  return {
    roots: union(all.map(({ roots }) => roots)),
    steps: unionOrAll(all.map(({ steps }) => steps)),
    stepOutputs: union(all.map(({ stepOutputs }) => stepOutputs)),
    stepProgress: all.some(({ stepProgress }) => stepProgress),
    input: all.some(({ input }) => input),
    variables: all.some(({ variables }) => variables),
    instance: all.some(({ instance }) => instance),
    instanceFields: unionOrAll(all.map(({ instanceFields }) => instanceFields)),
    event: all.some(({ event }) => event),
    item: all.some(({ item }) => item),
    now: all.some(({ now }) => now),
  };
}

function union(lists: readonly (readonly string[])[]): readonly string[] {
  return [...new Set(lists.flat())].toSorted();
}

function unionOrAll(lists: readonly (readonly string[] | "ALL")[]): readonly string[] | "ALL" {
  const named = lists.filter((list) => list !== "ALL");
  return named.length === lists.length ? union(named) : "ALL";
}
