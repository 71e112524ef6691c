/** Whether a pattern begins with the reserved prefix, as the partial indexes have it (0032_lifecycle.sql). */
export function isLifecycle(column: string): string {
  return `starts_with(${column}, 'workflow.')`;
}
