import { below } from "./outline.ts";
import { formatRuleOf } from "./schema-keywords.ts";
import { boundsOfAll, isAnyLeft } from "./schema-numbers.ts";
import type { Inside, Said } from "./schema-together.ts";

/** At most how many texts that no schema names fit all that is said. */
export function countTexts(said: readonly Said[], inside: Inside): number {
  const bounds = boundsOfAll(said, "string");
  if (!isAnyLeft(said, bounds, inside)) return 0;
  for (const each of said) {
    const rule = formatRuleOf(each.fields);
    if (rule === undefined || !inside.look.formats.hasNone(rule)) continue;
    inside.blame(
      [each],
      below(each.path, "format"),
      `no text of the format ${rule.format} is within its limits`,
    );
    return 0;
  }
  return Infinity;
}
