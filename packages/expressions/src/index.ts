export { equalityConjuncts } from "./conjuncts.ts";
export type { EqualityConjunct } from "./conjuncts.ts";
export { ExpressionError, ExpressionSyntaxError } from "./errors.ts";
export type { ExpressionErrorCode, Problem, ProblemCode, Warning, WarningCode } from "./errors.ts";
export { explainCondition } from "./explain.ts";
export type { ExplainedCondition, ExplainedConjunct } from "./explain.ts";
export { parseExpression } from "./expression.ts";
export type { Expression, ExpressionOptions } from "./expression.ts";
export { functions } from "./functions.ts";
export { guardsOf, noGuards, withBoth, withEither } from "./guards.ts";
export type { Guards } from "./guards.ts";
export { limits } from "./limits.ts";
export { methods } from "./methods.ts";
export { readPath } from "./properties.ts";
export { mergeReads } from "./reads.ts";
export type { Reads } from "./reads.ts";
export type { Scope } from "./run.ts";
export type { Documented } from "./spec.ts";
export { parseSoundParts, parseTemplate } from "./template.ts";
export type { Json, Template, TemplateOptions } from "./template.ts";
export { failuresOf, inspect } from "./inspect.ts";
export type { Inspection } from "./inspect.ts";
export type { Mismatch, Roots } from "./infer.ts";
export {
  absent,
  anything,
  both,
  described,
  either,
  isOnly,
  listOf,
  objectOf,
  once,
  ofType,
  oneOf,
  optional,
  remembered,
} from "./shape.ts";
export type { KnownType, PlainValue, Shape } from "./shape.ts";
export { implies, isContradiction, overlapOf } from "./compare.ts";
