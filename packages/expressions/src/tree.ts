/**
 * The checked tree: what parsing lets through, in the language's own terms. Everything behind the
 * parser works on this and never sees the parser's own nodes.
 */
export type Node =
  | LiteralNode
  | RootNode
  | MemberNode
  | ComputedNode
  | CallNode
  | MethodNode
  | UnaryNode
  | BinaryNode
  | LogicalNode
  | ConditionalNode
  | ArrayNode
  | ObjectNode
  | TextNode;

interface Placed {
  /** Source offsets of the first character and behind the last. */
  readonly start: number;
  readonly end: number;
}

export interface LiteralNode extends Placed {
  readonly kind: "literal";
  readonly value: undefined | null | boolean | number | string;
}

/** `input` */
export interface RootNode extends Placed {
  readonly kind: "root";
  readonly name: string;
}

/** `object.key`, `object?.key`, `object["key"]`: all the same, since a missing value is never read. */
export interface MemberNode extends Placed {
  readonly kind: "member";
  readonly object: Node;
  readonly key: string;
}

/** `object[key]` */
export interface ComputedNode extends Placed {
  readonly kind: "computed";
  readonly object: Node;
  readonly key: Node;
}

/** `size(input.lines)`: a function of the table. */
export interface CallNode extends Placed {
  readonly kind: "call";
  readonly name: string;
  readonly arguments: readonly Node[];
}

/** `input.name.startsWith("x")` */
export interface MethodNode extends Placed {
  readonly kind: "method";
  readonly object: Node;
  readonly name: string;
  readonly arguments: readonly Node[];
}

export interface UnaryNode extends Placed {
  readonly kind: "unary";
  readonly operator: UnaryOperator;
  readonly operand: Node;
}

export interface BinaryNode extends Placed {
  readonly kind: "binary";
  readonly operator: BinaryOperator;
  readonly left: Node;
  readonly right: Node;
}

export interface LogicalNode extends Placed {
  readonly kind: "logical";
  readonly operator: "&&" | "||" | "??";
  readonly left: Node;
  readonly right: Node;
}

export interface ConditionalNode extends Placed {
  readonly kind: "conditional";
  readonly test: Node;
  readonly consequent: Node;
  readonly alternate: Node;
}

export interface ArrayNode extends Placed {
  readonly kind: "array";
  readonly elements: readonly Element[];
}

export interface Element {
  readonly spread: boolean;
  readonly value: Node;
}

export interface ObjectNode extends Placed {
  readonly kind: "object";
  readonly members: readonly ObjectMember[];
}

/** `key: value`, `[key]: value`, `...value` */
export type ObjectMember =
  | { readonly kind: "static"; readonly key: string; readonly value: Node }
  | { readonly kind: "computed"; readonly key: Node; readonly value: Node }
  | { readonly kind: "spread"; readonly value: Node };

/** A template literal: `texts` has one more element than `values`. */
export interface TextNode extends Placed {
  readonly kind: "text";
  readonly texts: readonly string[];
  readonly values: readonly Node[];
}

export const unaryOperators = ["!", "-", "+"] as const;
export type UnaryOperator = (typeof unaryOperators)[number];

export const binaryOperators = [
  "===",
  "!==",
  "==",
  "!=",
  "<",
  "<=",
  ">",
  ">=",
  "+",
  "-",
  "*",
  "/",
  "%",
  "in",
] as const;
export type BinaryOperator = (typeof binaryOperators)[number];

/** The nodes directly below one, in the order of the source, which is that of evaluation. */
export function childrenOf(node: Node): readonly Node[] {
  switch (node.kind) {
    case "literal":
    case "root":
      return [];
    case "member":
      return [node.object];
    case "computed":
      return [node.object, node.key];
    case "call":
      return node.arguments;
    case "method":
      return [node.object, ...node.arguments];
    case "unary":
      return [node.operand];
    case "binary":
    case "logical":
      return [node.left, node.right];
    case "conditional":
      return [node.test, node.consequent, node.alternate];
    case "array":
      return node.elements.map(({ value }) => value);
    case "object":
      return node.members.flatMap((member) =>
        member.kind === "computed" ? [member.key, member.value] : [member.value],
      );
    case "text":
      return node.values;
  }
}

/** The parts that a chain of `&&` joins: all must hold for the whole to hold. */
export function conjunctsOf(node: Node): readonly Node[] {
  if (node.kind !== "logical" || node.operator !== "&&") return [node];
  return [...conjunctsOf(node.left), ...conjunctsOf(node.right)];
}
