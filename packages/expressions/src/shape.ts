/**
 * What is known of a value before it is there. A shape never claims too much: whatever it leaves open
 * counts as possible, so that what contradicts it is wrong for every value.
 */
import type { ValueType } from "./values.ts";

export type KnownType = Exclude<ValueType, "foreign">;
export type PlainValue = undefined | null | boolean | number | string;

export interface Shape {
  readonly types: readonly KnownType[];
  /** All values that it can be, where these are known. */
  readonly values?: readonly PlainValue[];
  /** The own member of an object; where it is absent any member may be there. */
  readonly member?: (key: string) => Shape;
  /** Names that `member` knows, to suggest one. */
  readonly names?: readonly string[];
  /** Any element of an array. */
  readonly element?: () => Shape;
  /** Of how many shapes it is made; absent: it is one by itself. */
  readonly weight?: number;
}

/**
 * A shape of more parts is taken for anything: schemas that refer to one another would make ever
 * larger ones, level by level.
 */
const maxWeight = 300;

export const anyType: readonly KnownType[] = [
  "undefined",
  "null",
  "boolean",
  "number",
  "string",
  "array",
  "object",
];

export const anything: Shape = { types: anyType };
export const absent: Shape = { types: ["undefined"], values: [undefined] };

export function ofType(...types: readonly KnownType[]): Shape {
  return { types };
}

/** One of these values, texts for instance. */
export function oneOf(...values: readonly PlainValue[]): Shape {
  return { types: [...new Set(values.map(typeOfPlain))], values };
}

/** An object with these members; any other is absent, or whatever `others` says. */
export function objectOf(members: Readonly<Record<string, Shape>>, others: Shape = absent): Shape {
  const member = (key: string): Shape =>
    (Object.hasOwn(members, key) ? members[key] : undefined) ?? others;
  return { types: ["object"], member, names: Object.keys(members) };
}

export function listOf(element: () => Shape): Shape {
  return { types: ["array"], element };
}

export function optional(shape: Shape): Shape {
  return either(shape, absent);
}

/** Either of two. */
export function either(left: Shape, right: Shape): Shape {
  if (left === right || left === anything) return left;
  const weight = weightOf(left, right);
  if (right === anything || weight > maxWeight) return anything;
  const { values: some } = left;
  const { values: others } = right;
  const members = [left, right].filter(({ types }) => types.includes("object"));
  const lists = [left, right].filter(({ types }) => types.includes("array"));
  return {
    weight,
    types: [...new Set([...left.types, ...right.types])],
    ...(some && others && some.length + others.length <= 200 && { values: [...some, ...others] }),
    ...(members.length > 0 &&
      members.every(({ member }) => member !== undefined) && {
        member: remembered((key) => members.map((each) => memberOf(each, key)).reduce(either)),
      }),
    names: together(members),
    ...(lists.length > 0 &&
      lists.every(({ element }) => element !== undefined) && {
        element: once(() => lists.map((each) => each.element?.() ?? anything).reduce(either)),
      }),
  };
}

/** Both at once: a value that each of the two allows. */
export function both(left: Shape, right: Shape): Shape {
  if (left === right || right === anything) return left;
  if (left === anything) return right;
  const weight = weightOf(left, right);
  if (weight > maxWeight) return anything;
  const { member: one, element: oneElement } = left;
  const { member: other, element: otherElement } = right;
  const element =
    oneElement && otherElement
      ? once(() => both(oneElement(), otherElement()))
      : (oneElement ?? otherElement);
  const member = one && other ? remembered((key) => both(one(key), other(key))) : (one ?? other);
  const types = left.types.filter((type) => right.types.includes(type));
  const values = left.values?.filter((value) => !right.values || right.values.includes(value));
  const known = values ?? right.values;
  return {
    weight,
    types,
    ...(known && { values: known.filter((value) => types.includes(typeOfPlain(value))) }),
    ...(member && { member }),
    names: together([left, right]),
    ...(element && { element }),
  };
}

/**
 * Shapes that refer to themselves are made as they are looked at. What was made once is kept: each
 * level down would cost a multiple of the one above it.
 */
export function remembered(find: (key: string) => Shape): (key: string) => Shape {
  const found = new Map<string, Shape>();
  return (key) => {
    const shape = found.get(key) ?? find(key);
    found.set(key, shape);
    return shape;
  };
}

export function once(make: () => Shape): () => Shape {
  let made: Shape | undefined;
  return () => (made ??= make());
}

/** More are not suggested. */
const maxNames = 100;

function together(shapes: readonly Shape[]): readonly string[] {
  return [...new Set(shapes.flatMap(({ names = [] }) => names))].slice(0, maxNames);
}

function weightOf({ weight: left = 1 }: Shape, { weight: right = 1 }: Shape): number {
  return left + right;
}

/** What is left of a shape without these types. */
export function without(shape: Shape, ...types: readonly KnownType[]): Shape {
  const { values, ...rest } = shape;
  return {
    ...rest,
    types: shape.types.filter((type) => !types.includes(type)),
    ...(values && { values: values.filter((value) => !types.includes(typeOfPlain(value))) }),
  };
}

/** The property that an expression reads of a value: absent where the value has none. */
export function memberOf(shape: Shape, key: string): Shape {
  if (shape === anything) return anything;
  return shape.types.map((type) => memberOfType(shape, type, key)).reduce(either, never);
}

const never: Shape = { types: [], values: [] };

function memberOfType(shape: Shape, type: KnownType, key: string): Shape {
  const isIndex = /^\d+$/.test(key);
  if (type === "object") return shape.member?.(key) ?? anything;
  if (type === "array" || type === "string") {
    if (key === "length") return ofType("number");
    if (isIndex && type === "string") return ofType("string", "undefined");
    if (isIndex) return optional(shape.element?.() ?? anything);
  }
  return absent;
}

export function isOnly(shape: Shape, ...types: readonly KnownType[]): boolean {
  return shape.types.length > 0 && shape.types.every((type) => types.includes(type));
}

export function typeOfPlain(value: PlainValue): KnownType {
  if (value === null) return "null";
  const type = typeof value;
  return type === "undefined" || type === "boolean" || type === "number" ? type : "string";
}

/** As messages have it: "a string", "a number or null". */
export function described({ types, values }: Shape): string {
  const present = values?.filter((value) => value !== undefined) ?? [];
  if (present.length > 0 && present.length <= 6) {
    return present.map((value) => JSON.stringify(value)).join(" or ");
  }
  const named = types.filter((type) => type !== "undefined").map((type) => names[type]);
  return named.length === 0 ? "undefined" : named.join(" or ");
}

const names: Readonly<Record<KnownType, string>> = {
  undefined: "undefined",
  null: "null",
  boolean: "a boolean",
  number: "a number",
  string: "a string",
  array: "an array",
  object: "an object",
};
