import { setImmediate as turn } from "node:timers/promises";
import type { Problem, PublicHolidays } from "@millrace/contract";
import type { KnownHolidays } from "@millrace/engine";

/** So far ahead of the year from which they are looked up. */
const yearsAhead = 20;

/**
 * The public holidays of several places together, from the year of `from` on. What is half a day only,
 * from noon on, is none.
 *
 * The library takes 0.4 s and 25 MB to load: only who asks for such holidays pays for it. Chinese ones
 * are worked out by astronomy, 20 ms a year, so that others get their turn in between.
 *
 * @returns Or what is wrong with the places, by their index.
 */
export async function publicHolidays(
  places: readonly PublicHolidays[],
  from: Date,
): Promise<KnownHolidays | { readonly problems: readonly Problem[] }> {
  const { default: Holidays } = await import("date-holidays");
  const atlas = new Holidays();
  const problems = places.flatMap((place, index) => problemsOf(atlas, place, index));
  if (problems.length > 0) return { problems };

  const first = from.getUTCFullYear();
  const dates = new Set<string>();
  for (const { country, region } of places) {
    const [state = "", part = ""] = region?.split("-") ?? [];
    const book = new Holidays(country, state, part, { types: ["public"] });
    // Days are days, wherever they are: the calendar says in which zone.
    book.setTimezone("UTC");
    for (let year = first; year <= first + yearsAhead; year++) {
      for (const { start, end } of book.getHolidays(year)) {
        for (const date of daysBetween(start, end)) dates.add(date);
      }
      await turn();
    }
  }
  return { dates: [...dates].toSorted(), until: `${first + yearsAhead}-12-31` };
}

interface Atlas {
  getCountries(language?: string): Names;
  getStates(country: string, language?: string): Names | undefined;
  getRegions(country: string, state: string, language?: string): Names | undefined;
}

interface Names {
  readonly [code: string]: string;
}

function problemsOf(
  atlas: Atlas,
  { country, region }: PublicHolidays,
  index: number,
): readonly Problem[] {
  const at = `/holidays/public/${index}`;
  if (!Object.hasOwn(atlas.getCountries("en"), country)) {
    const message = `no public holidays are known of ${JSON.stringify(country)}; list its days in "dates"`;
    return [{ path: `${at}/country`, code: "UNKNOWN_COUNTRY", message }];
  }
  const [state, part] = region?.split("-") ?? [];
  if (state === undefined) return [];
  const states = atlas.getStates(country, "en") ?? {};
  const parts = atlas.getRegions(country, state, "en") ?? {};
  if (Object.hasOwn(states, state) && (part === undefined || Object.hasOwn(parts, part))) return [];
  const known = Object.hasOwn(states, state)
    ? Object.keys(parts).map((each) => `${state}-${each}`)
    : Object.keys(states);
  const choice = known.length === 0 ? "there are none; leave it out" : `known: ${known.join(", ")}`;
  const message = `${country} has no region ${JSON.stringify(region)} with holidays of its own; ${choice}`;
  return [{ path: `${at}/region`, code: "UNKNOWN_REGION", message }];
}

const day = 86_400_000;
const noon = day / 2;

/** The days whose noon lies between: some holidays begin on the evening before, some at noon. */
function* daysBetween(start: Date, end: Date): Generator<string, void, void> {
  let at = (Math.floor((start.getTime() - noon) / day) + 1) * day;
  for (; at + noon < end.getTime(); at += day) yield new Date(at).toISOString().slice(0, 10);
}
