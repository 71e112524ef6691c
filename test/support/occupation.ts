/** Who is at the task `occupy` (tasks/occupy.mjs) in this process. */
export interface Occupation {
  /** Ids of the instances at it. One that is taken out goes on. */
  readonly now: Set<string>;
  /** Most at once so far. */
  most: number;
  /** Ids in the order in which they came. */
  began: string[];
  /** Whether those that come are held. */
  isHeld: boolean;
}

/** That of the task module, which is loaded beside the tests' own modules. */
export function occupation(): Occupation {
  const key = Symbol.for("occupation");
  const shared = globalThis as { [key]?: Occupation };
  return (shared[key] ??= { now: new Set(), most: 0, began: [], isHeld: false });
}
