/**
 * Checked tree to closures. Every node kind has its case here and nothing else runs: no code is
 * generated, and no function is ever taken from a value.
 */
import { findFunction } from "./functions.ts";
import { copyMembers } from "./functions/objects.ts";
import { limits } from "./limits.ts";
import { findMethod } from "./methods.ts";
import { readProperty } from "./properties.ts";
import { charge, chargeNewElements, Failure } from "./run.ts";
import type { Code, Run } from "./run.ts";
import type { BinaryNode, CallNode, LogicalNode, MethodNode, Node, UnaryNode } from "./tree.ts";
import type { ArrayNode, ObjectNode, TextNode } from "./tree.ts";
import {
  add,
  concatenate,
  hasOwn,
  isMissing,
  isObject,
  keyText,
  looselyEqual,
  order,
  readComputed,
  strictlyEqual,
  toNumber,
  toText,
  typeOf,
} from "./values.ts";

export interface CompileOptions {
  /** An `===` or `==` with a side that is undefined is false (CONTRACT 1.2, eventCondition). */
  readonly undefinedNeverEqual: boolean;
}

export function compile(node: Node, options: CompileOptions): Code {
  switch (node.kind) {
    case "literal": {
      const { value } = node;
      return () => value;
    }
    case "root":
      return readRoot(node.name);
    case "member":
      return compileMember(compile(node.object, options), node.key);
    case "computed": {
      const object = compile(node.object, options);
      const key = compile(node.key, options);
      const { start } = node;
      return (run) => {
        const value = object(run);
        if (isMissing(value)) return undefined;
        const name = key(run);
        run.at = start;
        return readComputed(run, value, name);
      };
    }
    case "call":
      return compileCall(node, options);
    case "method":
      return compileMethod(node, options);
    case "unary":
      return compileUnary(node, compile(node.operand, options));
    case "binary":
      return compileBinary(node, options);
    case "logical":
      return compileLogical(node, compile(node.left, options), compile(node.right, options));
    case "conditional": {
      const test = compile(node.test, options);
      const consequent = compile(node.consequent, options);
      const alternate = compile(node.alternate, options);
      return (run) => (test(run) ? consequent(run) : alternate(run));
    }
    case "array":
      return compileArray(node, options);
    case "object":
      return compileObject(node, options);
    case "text":
      return compileText(node, options);
  }
}

/** One closure per root with a name of its own: a keyed read of the scope is several times slower. */
function readRoot(name: string): Code {
  switch (name) {
    case "workflow":
      return ({ scope }) => scope.workflow;
    case "input":
      return ({ scope }) => scope.input;
    case "variables":
      return ({ scope }) => scope.variables;
    case "steps":
      return ({ scope }) => scope.steps;
    case "event":
      return ({ scope }) => scope.event;
    case "item":
      return ({ scope }) => scope.item;
    case "index":
      return ({ scope }) => scope.index;
    default:
      return ({ scope }) => readProperty(scope, name);
  }
}

function compileMember(object: Code, key: string): Code {
  return (run) => readProperty(object(run), key);
}

function compileCall(node: CallNode, options: CompileOptions): Code {
  const specification = findFunction(node.name);
  if (specification === undefined) throw new TypeError(`no function ${node.name}`);
  const { call } = specification;
  const values = node.arguments.map((argument) => compile(argument, options));
  const { start } = node;
  return (run) => {
    const given = values.map((value) => value(run));
    run.at = start;
    charge(run, 1);
    return call(run, ...given);
  };
}

function compileMethod(node: MethodNode, options: CompileOptions): Code {
  const method = findMethod(node.name);
  if (method === undefined) throw new TypeError(`no method ${node.name}`);
  const { string, array, number } = method;
  const object = compile(node.object, options);
  const values = node.arguments.map((argument) => compile(argument, options));
  const { start, name } = node;
  return (run) => {
    const self = object(run);
    // As with `?.`: nothing is called on a missing value, and the arguments are not looked at.
    if (isMissing(self)) return undefined;
    const given = values.map((value) => value(run));
    run.at = start;
    charge(run, 1);
    if (typeof self === "string" && string !== undefined) return string.call(run, self, ...given);
    if (Array.isArray(self) && array !== undefined) return array.call(run, self, ...given);
    if (typeof self === "number" && number !== undefined) return number.call(run, self, ...given);
    throw new Failure("NO_SUCH_METHOD", `a value of type ${typeOf(self)} has no method ${name}`);
  };
}

function compileUnary(node: UnaryNode, operand: Code): Code {
  switch (node.operator) {
    case "!":
      return (run) => !operand(run);
    case "-":
      return (run) => -toNumber(run, operand(run));
    case "+":
      return (run) => toNumber(run, operand(run));
  }
}

function compileLogical(node: LogicalNode, left: Code, right: Code): Code {
  switch (node.operator) {
    case "&&":
      return (run) => left(run) && right(run);
    case "||":
      return (run) => left(run) || right(run);
    case "??":
      return (run) => left(run) ?? right(run);
  }
}

function compileBinary(node: BinaryNode, options: CompileOptions): Code {
  const left = compile(node.left, options);
  const right = compile(node.right, options);
  const { start } = node;
  switch (node.operator) {
    case "===":
      return options.undefinedNeverEqual
        ? (run) => {
            const first = left(run);
            const second = right(run);
            return first !== undefined && strictlyEqual(run, first, second);
          }
        : (run) => strictlyEqual(run, left(run), right(run));
    case "!==":
      return (run) => !strictlyEqual(run, left(run), right(run));
    case "==":
      return options.undefinedNeverEqual
        ? (run) => {
            const first = left(run);
            const second = right(run);
            if (first === undefined || second === undefined) return false;
            return looselyEqual(run, first, second);
          }
        : (run) => looselyEqual(run, left(run), right(run));
    case "!=":
      return (run) => !looselyEqual(run, left(run), right(run));
    case "<":
      return (run) => order(run, left(run), right(run)) < 0;
    case "<=":
      return (run) => order(run, left(run), right(run)) <= 0;
    case ">":
      return (run) => order(run, left(run), right(run)) > 0;
    case ">=":
      return (run) => order(run, left(run), right(run)) >= 0;
    case "+":
      return (run) => {
        const first = left(run);
        const second = right(run);
        run.at = start;
        return add(run, first, second);
      };
    case "-":
      return (run) => toNumber(run, left(run)) - toNumber(run, right(run));
    case "*":
      return (run) => toNumber(run, left(run)) * toNumber(run, right(run));
    case "/":
      return (run) => toNumber(run, left(run)) / toNumber(run, right(run));
    case "%":
      return (run) => toNumber(run, left(run)) % toNumber(run, right(run));
    case "in":
      return (run) => {
        const key = left(run);
        const object = right(run);
        run.at = start;
        return hasOwn(run, object, key);
      };
  }
}

function compileArray(node: ArrayNode, options: CompileOptions): Code {
  const elements = node.elements.map(({ spread, value }) => ({
    spread,
    value: compile(value, options),
    start: value.start,
  }));
  if (elements.every(({ spread }) => !spread)) {
    const values = elements.map(({ value }) => value);
    return (run) => values.map((value) => value(run));
  }
  return (run) => {
    const result: unknown[] = [];
    for (const { spread, value, start } of elements) {
      const element = value(run);
      run.at = start;
      if (spread) appendElements(run, result, element);
      else result.push(element);
    }
    return result;
  };
}

/** `...list`: a missing one adds nothing, anything but a list is an error. */
function appendElements(run: Run, result: unknown[], list: unknown): void {
  if (isMissing(list)) return;
  if (!Array.isArray(list)) {
    throw new Failure("BAD_ARGUMENT", `... in a list takes a list, not a ${typeOf(list)}`);
  }
  charge(run, list.length);
  if (result.length + list.length > limits.arrayLength) {
    chargeNewElements(run, result.length + list.length);
  }
  for (const element of list) result.push(element);
}

function compileObject(node: ObjectNode, options: CompileOptions): Code {
  type Write = (run: Run, result: Record<string, unknown>) => void;
  const writes = node.members.map((member): Write => {
    const value = compile(member.value, options);
    const { start } = member.value;
    switch (member.kind) {
      case "static": {
        const { key } = member;
        // Parsing refuses __proto__ as a key, so that an assignment makes an own property.
        return (run, result) => {
          result[key] = value(run);
        };
      }
      case "computed": {
        const key = compile(member.key, options);
        return (run, result) => {
          const name = key(run);
          run.at = start;
          result[objectKey(run, name)] = value(run);
        };
      }
      case "spread":
        return (run, result) => {
          const members = value(run);
          run.at = start;
          if (isMissing(members)) return;
          if (!isObject(members)) {
            throw new Failure(
              "BAD_ARGUMENT",
              `... in an object takes an object, not a ${typeOf(members)}`,
            );
          }
          copyMembers(run, result, members);
        };
    }
  });
  return (run) => {
    const result: Record<string, unknown> = {};
    for (const write of writes) write(run, result);
    return result;
  };
}

function objectKey(run: Run, key: unknown): string {
  const name = keyText(run, key);
  if (name !== undefined) return name;
  throw new Failure("BAD_ARGUMENT", `a key must be a text or number, not a ${typeOf(key)}`);
}

function compileText(node: TextNode, options: CompileOptions): Code {
  const [first = "", ...texts] = node.texts;
  const values = node.values.map((value) => compile(value, options));
  const { start } = node;
  return (run) => {
    let result = first;
    for (const [index, value] of values.entries()) {
      const piece = value(run);
      run.at = start;
      result = concatenate(run, result, toText(run, piece) + (texts[index] ?? ""));
    }
    return result;
  };
}
