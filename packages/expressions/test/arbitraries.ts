import fc from "fast-check";

/** What the roots of random expressions hold. */
export const data = deepFreeze({
  workflow: { input: { a: 1, name: "Order 66" }, instance: { state: { variables: { n: -2 } } } },
  input: { a: 1, b: 0, name: "ab,c", list: [3, 1, 2], nested: { b: null }, "": 7, 0: "zero" },
  variables: { n: 2.5, t: true, f: false, text: "  x ", digits: "12", list: ["a", "b", null] },
  steps: { first: { output: { rows: [{ id: 1 }, { id: 2 }] }, status: "COMPLETED" } },
});

/** Sources, rather than trees, so that shrinking ends at something one can read. */
export const expressions = fc.letrec<{
  expression: string;
  primitive: string;
  textual: string;
  list: string;
  any: string;
}>((tie) => {
  const { expression, primitive, textual, list, any } = {
    expression: tie("expression"),
    primitive: tie("primitive"),
    textual: tie("textual"),
    list: tie("list"),
    any: tie("any"),
  };
  const join = (...parts: (string | fc.Arbitrary<string>)[]): fc.Arbitrary<string> =>
    fc
      .tuple(...parts.map((part) => (typeof part === "string" ? fc.constant(part) : part)))
      .map((texts) => texts.join(""));
  const position = fc.constantFrom("0", "1", "2", "-1", "-2", "1.5", "99", "undefined", "null");
  const key = fc.constantFrom("a", "b", "n", "name", "list", "nested", "missing", "length", "id");

  const literal = fc.constantFrom(
    "0", "1", "-1", "2.5", "1e21", "0.1", "-0", "42", "1_000", "0x1f", "''", "'a'", "'b'", "' '",
    "'12'", "'1e2'", "'ab,c'", "'é😀'", "true", "false", "null", "undefined", "`x`",
  ); // oxfmt-ignore
  const path = fc.constantFrom(
    "input?.a", "input?.b", "input?.name", "input?.missing", "input?.missing?.deeper",
    "input?.nested?.b", "variables?.n", "variables?.t", "variables?.f", "variables?.text",
    "variables?.digits", "workflow?.input?.a", "workflow?.instance?.state?.variables?.n",
    "steps?.first?.status", "steps?.first?.output?.rows?.[1]?.id", "steps?.['first']?.error",
    "input?.['']", "input?.[0]",
  ); // oxfmt-ignore
  // Mostly of the type that has the methods, sometimes of another.
  const word = fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom("''", "'a'", "' b '", "'a-b-a'", "'é😀'") },
    { weight: 3, arbitrary: fc.constantFrom("input?.name", "variables?.text", "input?.missing") },
    { weight: 3, arbitrary: textual },
    { weight: 1, arbitrary: any },
  );
  const number = fc.constantFrom("1", "2.5", "variables?.n", "input?.a", "(1 / 3)", "1e21", "''");
  const arithmetic = fc.constantFrom("+", "-", "*", "/", "%");
  const comparison = fc.constantFrom("===", "!==", "==", "!=", "<", "<=", ">", ">=");
  const logical = fc.constantFrom("&&", "||", "??");

  return {
    expression: fc.oneof({ maxDepth: 4, depthSize: "small" }, primitive, any, list),
    any: fc.oneof(
      { maxDepth: 4, depthSize: "small" },
      { weight: 4, arbitrary: primitive },
      list,
      fc.constantFrom("input", "input?.nested", "steps?.first", "variables"),
      join("({ a: ", expression, ", 'b': ", expression, ", 3: ", primitive, " })"),
      join("({ ...", any, ", [", primitive, "]: ", expression, " })"),
      join("(", any, ")?.", key),
      join("(", any, ")?.[", primitive, "]"),
    ),
    primitive: fc.oneof(
      { maxDepth: 4, depthSize: "small" },
      { weight: 3, arbitrary: literal },
      { weight: 3, arbitrary: path },
      join("(", primitive, " ", arithmetic, " ", primitive, ")"),
      join("(", primitive, " ", comparison, " ", primitive, ")"),
      join("(", any, " ", comparison, " ", any, ")"),
      join("(", any, " ", arithmetic, " ", primitive, ")"),
      join("((", primitive, ") ", logical, " (", primitive, "))"),
      join("((", any, ") ", logical, " (", any, "))"),
      join("(", any, " ? ", primitive, " : ", primitive, ")"),
      join("(", primitive, " in ", any, ")"),
      join("(!", any, ")"),
      join("(-(", primitive, "))"),
      join("(+(", primitive, "))"),
      join("`<${", primitive, "}-${", primitive, "}>`"),
      textual,
      join(list, "?.", fc.constantFrom("includes", "indexOf"), "(", any, ")"),
      join(list, "?.", fc.constantFrom("lastIndexOf", "includes"), "(", primitive, ", 1)"),
      join(list, "?.join(", primitive, ")"),
      join("(", list, ")?.length"),
    ),
    textual: fc.oneof(
      join("(", word, ")?.", fc.constantFrom("toLowerCase", "toUpperCase", "trim"), "()"),
      join("(", word, ")?.", fc.constantFrom("trimStart", "trimEnd"), "()"),
      join("(", word, ")?.", fc.constantFrom("at", "charAt", "charCodeAt"), "(", position, ")"),
      join("(", word, ")?.codePointAt(", position, ")"),
      join("(", word, ")?.", fc.constantFrom("slice", "substring"), "(", position, ")"),
      join("(", word, ")?.slice(", position, ", ", position, ")"),
      join("(", word, ")?.substring(", position, ", ", position, ")"),
      join("(", word, ")?.", fc.constantFrom("includes", "indexOf"), "(", primitive, ")"),
      join("(", word, ")?.", fc.constantFrom("startsWith", "endsWith"), "(", primitive, ")"),
      join("(", word, ")?.startsWith(", primitive, ", ", position, ")"),
      join("(", word, ")?.endsWith(", primitive, ", ", position, ")"),
      join("(", word, ")?.includes(", primitive, ", ", position, ")"),
      join("(", word, ")?.lastIndexOf(", primitive, ")"),
      join("(", textual, ")?.lastIndexOf('a', ", position, ")"),
      join("(", word, ")?.", fc.constantFrom("padStart", "padEnd"), "(", position, ")"),
      join("(", word, ")?.padStart(5, ", primitive, ")"),
      join("(", word, ")?.repeat(", position, ")"),
      join("(", word, ")?.replaceAll(", primitive, ", ", primitive, ")"),
      join("(", word, ")?.replace(", primitive, ", ", primitive, ")"),
      join("(", word, ")?.concat(", primitive, ", ", primitive, ")"),
      join("(", number, ")?.toFixed(", position, ")"),
    ),
    list: fc.oneof(
      { maxDepth: 4, depthSize: "small" },
      { weight: 2, arbitrary: fc.constantFrom("input?.list", "variables?.list", "[]") },
      join("[", any, ", ", any, "]"),
      join("[...", list, ", ", any, "]"),
      join("[...", any, "]"),
      join("(", list, ")?.slice(", position, ", ", position, ")"),
      join("(", list, ")?.concat(", any, ", ", any, ")"),
      join("(", list, ")?.flat(", position, ")"),
      join("(", list, ")?.toReversed()"),
      join("(", word, ")?.split(", primitive, ")"),
      join("(", textual, ")?.split(", primitive, ", ", position, ")"),
    ),
  };
});

function deepFreeze<Value>(value: Value): Value {
  if (typeof value === "object" && value !== null) {
    for (const member of Object.values(value)) deepFreeze(member);
    Object.freeze(value);
  }
  return value;
}
