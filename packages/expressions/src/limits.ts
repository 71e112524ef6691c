/**
 * What one expression may cost (CONTRACT 1.2). A breach is an error with a code, never a hang.
 *
 * An expression has no loops, so its cost is the length of its source times what one operation may
 * touch. The first two bound the source, the others what an operation makes or walks over.
 */
export const limits = Object.freeze({
  /** Characters of one expression. */
  sourceLength: 10_000,
  /** Expressions in one template. */
  expressions: 2_000,
  /** Levels of nesting in a source; each operator and each pair of parentheses is one. */
  depth: 100,
  /** Work of one evaluation: one unit per element visited and per 16 characters read or made. */
  work: 1_000_000,
  /** Characters of a string that an expression makes. */
  stringLength: 1_048_576,
  /** Elements of an array, and keys of an object, that an expression makes. */
  arrayLength: 100_000,
  /** Approximate characters of JSON in the result of a template. */
  resultSize: 4_194_304,
  /** Levels of nesting in a template and its result, and in what becomes JSON text. */
  resultDepth: 64,
});

/** Characters that cost as much as one element. */
export const charactersPerUnit = 16;
