import type { ProblemList } from "../problem.ts";

/** Members of all objects in a schema and elements of all arrays: 0.3 s of compiling, 1.3 s at worst. */
const maxMembers = 5_000;

/** Nothing else happens in a process while it compiles a schema. */
export function checkSchemaSize(schema: unknown, list: ProblemList): void {
  let members = 0;
  const stack = [schema];
  for (let each = stack.pop(); each !== undefined; each = stack.pop()) {
    if (typeof each !== "object" || each === null) continue;
    const values: readonly unknown[] = Object.values(each);
    members += values.length;
    for (const value of values) stack.push(value);
  }
  if (members <= maxMembers) return;
  const message = `it has ${members} keywords, names and values, and at most ${maxMembers} are compiled; share parts by $ref, or check the rest in a first task`;
  list.add("/inputSchema", "SCHEMA_TOO_LARGE", message);
}
