import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { millrace } from "./streams.ts";

const example = resolve(import.meta.dirname, "../../../examples/order-processing");
const order = join(example, "order_processing.json");

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "millrace-cli-test-"));
});
afterEach(() => rm(folder, { recursive: true }));

test("simulate tells what happens, what comes of it and which transitions were taken", async () => {
  const scenario = join(example, "scenarios/paid.json");

  const { exitCode, stdout } = await millrace(["simulate", order, "--scenario", scenario]);

  expect(exitCode).toBe(0);
  expect(stdout).toContain("reserve_inventory fails with WarehouseBusy");
  expect(stdout).toContain("event payment.received arrives, and nothing waits for it");
  expect(stdout).toContain("SETTLED: COMPLETED");
  expect(stdout).toContain("coverage   5 of 10 transitions");
});

test("a file that cannot be read, or is no document, fails the command, whose line is right", async () => {
  const bad = join(folder, "bad.yaml");
  await writeFile(bad, "id: a\nsteps: [\n");

  const runs = await Promise.all([
    millrace(["simulate", folder]),
    millrace(["simulate", bad]),
    millrace(["simulate", order, "--scenario", bad]),
    millrace(["schedules", "apply", bad]),
  ]);

  expect(runs.map(({ exitCode }) => exitCode)).toEqual([1, 1, 1, 1]);
  expect(runs[0]?.stderr).toBe(`millrace simulate: ${folder}: is a folder, not a file\n`);
  for (const { stderr } of runs.slice(1)) expect(stderr).toContain(`${bad}:3:1: `);
});

test("simulate answers JSON", async () => {
  const scenario = join(example, "scenarios/cancelled-while-shipping.json");

  const { stdout } = await millrace(["simulate", order, "-s", scenario, "--json"]);

  expect(JSON.parse(stdout)).toMatchObject({
    workflowId: "order_processing",
    outcome: "SETTLED",
    instance: { status: "CANCELLED", compensation: { status: "COMPLETED" } },
  });
});

test("simulate counts by the calendars of the scenario, and names what is wrong with them", async () => {
  const file = join(folder, "resting.yaml");
  await writeFile(
    file,
    "id: resting\nsteps:\n  - { stepId: rest, type: DELAY, duration: P1D, calendarId: office }\n",
  );
  const scenario = join(folder, "office.yaml");
  const office = (country: string) =>
    writeFile(
      scenario,
      [
        "startAt: 2026-04-30T10:00:00Z",
        "calendars:",
        "  - id: office",
        "    timeZone: Europe/Berlin",
        `    holidays: { public: [{ country: ${country} }] }`,
        "",
      ].join("\n"),
    );

  await office("DE");
  const rested = await millrace(["simulate", file, "-s", scenario, "--json"]);
  await office("XX");
  const refused = await millrace(["simulate", file, "-s", scenario]);

  // The first of May is a holiday, and a Friday.
  const completedAt = "2026-05-04T10:00:00.000Z";
  expect(JSON.parse(rested.stdout)).toMatchObject({ instance: { completedAt } });
  expect(refused.exitCode).toBe(1);
  expect(refused.stdout).toMatch(
    /office\.yaml:\/calendars\/0\/holidays\/public\/0\/country \(line 5\): .*UNKNOWN_COUNTRY/,
  );
});

test("simulate names every fault of a scenario with its line", async () => {
  const scenario = join(folder, "bad.yaml");
  await writeFile(scenario, "tasks:\n  ship_ordre: {}\nevents:\n  - at: soon\n    pattern: go\n");

  const { exitCode, stdout } = await millrace(["simulate", order, "-s", scenario]);

  expect(exitCode).toBe(1);
  expect(stdout).toMatch(/bad\.yaml:\/events\/0\/at \(line 4\): .*BAD_DURATION/);
  expect(stdout).toMatch(/bad\.yaml:\/tasks\/ship_ordre \(line 2\): .*UNKNOWN_STEP/);
});

test("simulate says of an inputSchema and of the input what the server would", async () => {
  const file = join(folder, "typed.yaml");
  const scenario = join(folder, "input.yaml");
  const write = (type: string) =>
    writeFile(
      file,
      `id: typed\ninputSchema: { properties: { a: { type: ${type} } } }\nsteps:\n  - { stepId: end, type: END, outcome: COMPLETED }\n`,
    );
  await writeFile(scenario, "input:\n  a: text\n");

  await write("strnig");
  const broken = await millrace(["simulate", file, "-s", scenario]);
  await write("number");
  const unfit = await millrace(["simulate", file, "-s", scenario]);
  await write("string");
  const fit = await millrace(["simulate", file, "-s", scenario]);

  expect([broken, unfit, fit].map(({ exitCode }) => exitCode)).toEqual([1, 1, 0]);
  expect(broken.stdout).toContain("/inputSchema/properties/a/type (line 2)");
  expect(broken.stdout).toContain("[BAD_SCHEMA]");
  expect(unfit.stdout).toContain("/input/a (line 2): must be number");
});
