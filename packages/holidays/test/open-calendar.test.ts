import { describe, expect, test } from "vitest";
import { openCalendar } from "../src/index.ts";

const now = new Date("2026-06-01T12:00:00Z");
const office = { id: "office", timeZone: "Europe/Berlin" };

async function holidaysOf(...places: readonly object[]): Promise<readonly string[]> {
  const opened = await openCalendar({ ...office, holidays: { public: places } }, now);
  if ("problems" in opened) throw new Error(JSON.stringify(opened.problems));
  return opened.holidays?.dates ?? [];
}

async function problemsOf(value: unknown) {
  const opened = await openCalendar(value, now);
  return "problems" in opened ? opened.problems : [];
}

describe("public holidays", () => {
  test("are those of the country and the region, for twenty years", async () => {
    const dates = await holidaysOf({ country: "DE", region: "BY" });

    const days = dates.flatMap((date) => (date.startsWith("2026") ? date.slice(5) : []));
    expect(days.join(" ")).toBe(
      "01-01 01-06 04-03 04-06 05-01 05-14 05-25 06-04 10-03 11-01 12-25 12-26",
    );
    expect(dates.at(-1)).toBe("2046-12-26");
    expect(await holidaysOf({ country: "DE", region: "BE" })).not.toContain("2026-06-04");
    expect(await holidaysOf({ country: "DE", region: "BY-A" })).toContain("2026-08-08");
  });

  test("of several places are those of all of them, each once", async () => {
    const dates = await holidaysOf({ country: "US" }, { country: "DE" });

    expect(dates).toEqual(expect.arrayContaining(["2026-07-03", "2026-10-03"]));
    expect(dates).toEqual([...new Set(dates)].toSorted());
  });

  test("that begin in the evening are the day after, and a half day is none", async () => {
    // Pesach begins in the evening of 1 April; 8 March is a holiday from noon on, for women.
    expect(await holidaysOf({ country: "IL" })).toContain("2026-04-02");
    expect(await holidaysOf({ country: "IL" })).not.toContain("2026-04-01");
    expect(await holidaysOf({ country: "CN" })).not.toContain("2026-03-08");
    // Eid al-Fitr, four days of it.
    const eid = ["2026-03-19", "2026-03-20", "2026-03-21", "2026-03-22"];
    expect(await holidaysOf({ country: "SA" })).toEqual(expect.arrayContaining(eid));
  });

  test("are not looked up where the calendar has none", async () => {
    expect(await openCalendar(office, now)).toMatchObject({ holidays: null });
  });
});

describe("a calendar", () => {
  test("without hours is one of weekdays from 9 to 17", async () => {
    const hours = [{ from: "09:00", to: "17:00" }];
    expect(await openCalendar(office, now)).toMatchObject({
      document: {
        ...office,
        workingHours: { monday: hours, tuesday: hours, friday: hours },
      },
    });
  });

  test("is refused with all its problems", async () => {
    const problems = await problemsOf({
      id: "1",
      timeZone: "Europe/Bonn",
      workingHours: {
        monday: [{ from: "9:00", to: "17:00" }],
        tuesday: [{ from: "22:00", to: "06:00" }],
        wednesday: [
          { from: "09:00", to: "12:00" },
          { from: "11:00", to: "17:00" },
        ],
        sonntag: [],
      },
      holidays: { dates: ["2026-02-29", { date: "24.12.2026" }], public: [{ country: "Germany" }] },
      workingDays: [{ date: "2026-12-24" }],
    });

    expect(problems.map(({ path, code }) => [path, code])).toEqual([
      ["/id", "BAD_FORMAT"],
      ["/timeZone", "BAD_VALUE"],
      ["/workingHours/monday/0/from", "BAD_FORMAT"],
      ["/workingHours/tuesday/0/to", "BAD_VALUE"],
      ["/workingHours/wednesday/1/from", "BAD_VALUE"],
      ["/workingHours/sonntag", "UNKNOWN_FIELD"],
      ["/holidays/public/0/country", "BAD_FORMAT"],
      ["/holidays/dates/0", "BAD_FORMAT"],
      ["/holidays/dates/1/date", "BAD_FORMAT"],
      ["/workingDays/0/hours", "MISSING_FIELD"],
    ]);
  });

  test("with two lists of hours for one day is refused", async () => {
    const day = { date: "2026-12-24", hours: [{ from: "09:00", to: "12:00" }] };
    const problems = await problemsOf({ ...office, workingDays: [day, day] });

    expect(problems).toMatchObject([{ path: "/workingDays/1/date", code: "BAD_VALUE" }]);
  });

  test.each(["+01:00", "UTC+1", "Mars/Olympus", ""])(
    "in the zone %j is refused",
    async (timeZone) => {
      expect(await problemsOf({ ...office, timeZone })).toMatchObject([{ path: "/timeZone" }]);
    },
  );

  test("of a place that is not known is refused, with those that are", async () => {
    const places = [
      { country: "XX" },
      { country: "DE", region: "XX" },
      { country: "DE", region: "BY-X" },
    ];
    const problems = await problemsOf({ ...office, holidays: { public: places } });

    expect(problems).toMatchObject([
      { path: "/holidays/public/0/country", code: "UNKNOWN_COUNTRY" },
      { path: "/holidays/public/1/region", code: "UNKNOWN_REGION" },
      { path: "/holidays/public/2/region", code: "UNKNOWN_REGION" },
    ]);
    expect(problems[1]?.message).toContain("BY, HB");
    expect(problems[2]?.message).toContain("BY-A");
  });

  test("in which nobody ever works is refused", async () => {
    expect(await problemsOf({ ...office, workingHours: { monday: [] } })).toEqual([
      {
        path: "/workingHours",
        code: "NO_WORKING_TIME",
        message: "the calendar has no working time within 10 years",
      },
    ]);
  });
});
