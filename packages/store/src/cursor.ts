import { BadCursorError, DataRefusedError } from "./errors.ts";

/** Where a list goes on: the key of the last item, so that nothing that is added shifts the pages. */
export function encodeCursor(list: string, key: readonly string[]): string {
  return Buffer.from(JSON.stringify([list, ...key])).toString("base64url");
}

/** @throws BadCursorError */
export function decodeCursor(list: string, cursor: string, length: number): readonly string[] {
  let decoded: unknown;
  try {
    decoded = JSON.parse(Buffer.from(cursor, "base64url").toString());
  } catch (cause) {
    throw new BadCursorError("the cursor was not given out by this API", { cause });
  }
  const parts: readonly unknown[] = Array.isArray(decoded) ? decoded : [];
  const texts = parts.filter((part) => typeof part === "string");
  if (texts.length !== parts.length || parts.length !== length + 1) {
    throw new BadCursorError("the cursor was not given out by this API");
  }
  const [of, ...key] = texts;
  if (of !== list) throw new BadCursorError(`the cursor is one of "${of}", not of "${list}"`);
  return key;
}

/** Reads a page: what Postgres cannot read as the key of an item was no key that was given out. */
export async function readPage<T>(cursor: string | undefined, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (cursor === undefined || !(error instanceof DataRefusedError)) throw error;
    throw new BadCursorError("the cursor was not given out by this API", { cause: error });
  }
}
