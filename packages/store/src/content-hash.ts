import { createHash } from "node:crypto";
import { canonicalJson } from "./json.ts";

/** Of a definition's document, however its keys are ordered: by it a version is known that was edited. */
export function contentHashOf(document: unknown): string {
  return createHash("sha256").update(canonicalJson(document)).digest("hex");
}
