/**
 * A task module, by its URL. In a file of its own, which is not part of the program that is loaded from the
 * cache of compiled code: what comes from there can import nothing (scripts/bundle.mjs).
 */
export async function importModule(url: string): Promise<Record<string, unknown>> {
  return (await import(url)) as Record<string, unknown>;
}
