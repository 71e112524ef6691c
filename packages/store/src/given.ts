/**
 * A hash of what an instance is given when it is started and keeps, as Postgres works it out from the stored texts:
 * written once, and held against the row by the consistency check.
 *
 * @param row Name of the table that has these columns.
 * @param hasParent SQL: whether another instance has started it.
 */
export function givenHash(row: string, hasParent: string): string {
  const columns = [
    "workflow_id",
    "workflow_version",
    "correlation_id",
    "user_id",
    "start_event_id",
    "input",
  ].map((column) => `${row}.${column}`);
  return `md5(json_build_array(${columns.join(", ")}, ${hasParent})::text)`;
}
