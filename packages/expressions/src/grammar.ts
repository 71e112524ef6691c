/**
 * JavaScript's grammar, as acorn reads it, with its recursion bounded.
 *
 * Acorn recurses with the nesting of a source. Letting it run out of stack and catching the error
 * is not enough: when V8 has to compile a regular expression (acorn uses several) with the stack
 * nearly used up, it ends the process. So the methods that the recursion passes through count their
 * depth, and stop at about half of the stack that Node gives. What recurses in other ways and is no
 * part of the language is refused where it starts: statements, classes, regular expressions.
 */
import { Parser } from "acorn";
import type { Expression } from "acorn";
import { limits } from "./limits.ts";

/** Thrown for a source that is not read to its end. */
export class Refusal extends Error {
  readonly offset: number;
  /** What was found that is never allowed; undefined when the nesting is too deep. */
  readonly found: string | undefined;
  constructor(offset: number, found?: string) {
    super(found ?? "nested too deep");
    this.offset = offset;
    this.found = found;
  }
}

/**
 * Reads the expression at the start of a source.
 *
 * @throws Refusal, or acorn's SyntaxError with its `pos`
 */
export function readExpression(source: string): Expression {
  return BoundedParser.parseExpressionAt(source, 0, {
    ecmaVersion: 2022,
    sourceType: "module",
    preserveParens: true,
  });
}

/** Acorn's methods that every recursion of it passes through, at most four times a level of our tree. */
const recursiveMethods = [
  "parseMaybeAssign",
  "parseMaybeUnary",
  "parseExprOp",
  "parseExprAtom",
  "parseSubscript",
  "parseBindingAtom",
] as const;

/** Acorn's methods that only what is not in the language comes to. */
const refusedMethods = {
  parseBlock: "a block of statements",
  parseFunction: "a function",
  parseClass: "a class",
  readRegexp: "a regular expression",
} as const;

const mostCalls = 4 * limits.depth;

type Method = (this: Parser, ...values: readonly unknown[]) => unknown;

const BoundedParser = Parser.extend((Base) => {
  const depths = new WeakMap<Parser, number>();
  class Bounded extends Base {}
  for (const name of recursiveMethods) {
    const inherited = methodOf(Base, name);
    override(Bounded, name, function bounded(...values) {
      const depth = (depths.get(this) ?? 0) + 1;
      if (depth > mostCalls) throw new Refusal(offsetOf(this));
      depths.set(this, depth);
      const node = Reflect.apply(inherited, this, values);
      depths.set(this, depth - 1);
      return node;
    });
  }
  for (const [name, found] of Object.entries(refusedMethods)) {
    methodOf(Base, name);
    override(Bounded, name, function refuse() {
      throw new Refusal(offsetOf(this), found);
    });
  }
  return Bounded;
});

/** Plugins reach acorn by names that it does not declare: a new version without them must not load. */
function methodOf(parser: typeof Parser, name: string): Method {
  const method: unknown = Reflect.get(parser.prototype, name);
  if (typeof method !== "function") throw new TypeError(`acorn has no method ${name} any more`);
  return method as Method;
}

function override(parser: typeof Parser, name: string, method: Method): void {
  Object.defineProperty(parser.prototype, name, { value: method });
}

/** Where the token starts that is being read. */
function offsetOf(parser: Parser): number {
  const start: unknown = Reflect.get(parser, "start");
  return typeof start === "number" ? start : 0;
}
