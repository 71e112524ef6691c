import { below } from "../outline.ts";
import type { Fields } from "../outline.ts";
import {
  boundsOf,
  isAnyWithin,
  multiplesIn,
  narrowed,
  noBounds,
  wholeNumbersIn,
} from "./keywords.ts";
import type { Bounds } from "./keywords.ts";
import { keyOf } from "./kinds.ts";
import type { Kind } from "./kinds.ts";
import type { Inside, Said } from "./together.ts";

/** What bounds values of a type or their sizes, the narrowest of each side. */
export function boundsOfAll(said: readonly Pick<Said, "fields">[], type: Kind["type"]): Bounds {
  const bounds = type === "number" ? noBounds : { ...noBounds, low: { ...noBounds.low, at: 0 } };
  return said.reduce((soFar, { fields }) => narrowed(soFar, boundsOf(fields, type)), bounds);
}

/** Whether there is anything between the bounds; why not is noted. */
export function isAnyLeft(said: readonly Said[], bounds: Bounds, { blame }: Inside): boolean {
  if (isAnyWithin(bounds)) return true;
  const { low, high } = bounds;
  const by = (key: string) => said.find(({ fields }) => Object.hasOwn(fields, key));
  const [from, to] = [by(low.key), by(high.key)];
  const involved = [from, to].filter((each) => each !== undefined);
  if (from !== undefined)
    blame(involved, below(from.path, low.key), `${low.said}, and ${high.said}`);
  return false;
}

/** At most how many numbers that no schema names fit all that is said. */
export function countNumbers(said: readonly Said[], { isInteger }: Kind, inside: Inside): number {
  const bounds = boundsOfAll(said, "number");
  if (!isAnyLeft(said, bounds, inside)) return 0;
  const isWhole = said.some(({ fields: { format } }) => format === "int32" || format === "int64");
  if (isWhole && isInteger === false) return 0;
  const isFine = (value: number): boolean =>
    Number.isInteger(value) === isInteger &&
    !inside.look.named.keys.has(keyOf(value)) &&
    said.every((each) => inside.canBe(each, value));
  if (bounds.low.at === bounds.high.at) return isFine(bounds.low.at) ? 1 : 0;
  const whole = isInteger === true ? wholeNumbersIn(bounds) : undefined;
  if (whole !== undefined) return whole.filter(isFine).length;
  const factors = said.flatMap(({ fields }) => factorOf(fields) ?? []);
  return multiplesIn(bounds, factors) ? Infinity : 0;
}

/** What is no factor is reported as such. */
export function factorOf({ multipleOf }: Fields): number | undefined {
  return typeof multipleOf === "number" && multipleOf > 0 ? multipleOf : undefined;
}
