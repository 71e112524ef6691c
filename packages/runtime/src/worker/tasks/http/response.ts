import type { Readable } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import type { JsonValue } from "@millrace/sdk";

export interface Received {
  readonly status: number;
  readonly statusText: string;
  /** By names in lower case; a list where one came several times and is no list by itself. */
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly bytes: Buffer;
  /** There were more bytes than were to be read. */
  readonly isCut: boolean;
}

/**
 * Reads what a body decodes to, and lets go of the connection where that is more than `limit` bytes, or cannot be
 * decoded.
 */
export async function readBytes(
  body: Readable,
  encoding: string | string[] | undefined,
  limit: number,
): Promise<Pick<Received, "bytes" | "isCut">> {
  const decoder = decoderOf(String(encoding ?? "").toLowerCase());
  // Also of what is broken off below, which nobody waits for any more.
  body.on("error", (error) => decoder?.destroy(error));
  const source: Readable = decoder === undefined ? body : body.pipe(decoder);
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of source as AsyncIterable<Buffer>) {
      size += chunk.length;
      chunks.push(chunk);
      if (size > limit) break;
    }
  } catch (error) {
    // That there is nothing to decode is no fault of it: so it is after a HEAD.
    if (!body.readableEnded || decoder?.bytesWritten !== 0) throw error;
  } finally {
    if (!body.readableEnded) body.destroy();
  }
  return { bytes: Buffer.concat(chunks).subarray(0, limit), isCut: size > limit };
}

/** Nothing asks for it, and some servers have nothing else. */
function decoderOf(encoding: string) {
  switch (encoding) {
    case "gzip":
    case "x-gzip":
      return createGunzip();
    case "deflate":
      return createInflate();
    case "br":
      return createBrotliDecompress();
    default:
      return undefined;
  }
}

export type DecodedBody =
  | { readonly body: JsonValue; readonly bodyEncoding?: "base64"; readonly isMalformed?: undefined }
  /** It says JSON and is none; `body` is its text. */
  | { readonly body: string; readonly bodyEncoding?: undefined; readonly isMalformed: true };

/** JSON where the content type says so, else text, and base64 of what is neither. */
export function decodedBody({ headers, bytes, isCut }: Received): DecodedBody {
  if (bytes.length === 0) return { body: null };
  const contentType = String(headers["content-type"] ?? "");
  const text = textOf(bytes, contentType, isCut);
  if (text === undefined) return { body: bytes.toString("base64"), bodyEncoding: "base64" };
  if (isCut || !/^application\/(?:[\w.+-]+\+)?json\b/i.test(contentType)) return { body: text };
  try {
    return { body: JSON.parse(text) as JsonValue };
  } catch {
    return { body: text, isMalformed: true };
  }
}

/** What is cut may end within a character. */
function textOf(bytes: Buffer, contentType: string, isCut: boolean): string | undefined {
  const [, charset = "utf-8"] = /\bcharset="?([\w-]+)/i.exec(contentType) ?? [];
  try {
    const text = new TextDecoder(charset, { fatal: true }).decode(bytes, { stream: isCut });
    return text.includes("\0") ? undefined : text;
  } catch {
    return undefined;
  }
}

/** Seconds, of a server that says when to come again. */
export function retryAfterOf(headers: Received["headers"], now: Date): number | undefined {
  const text = String(headers["retry-after"] ?? "").trim();
  if (/^\d{1,9}$/.test(text)) return Number(text);
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - now.getTime()) / 1_000));
}
