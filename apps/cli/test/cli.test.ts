import { freePort } from "@millrace/testkit";
import { expect, test } from "vitest";
import { commandNames } from "../src/commands/index.ts";
import { millrace } from "./streams.ts";

test.each(commandNames)("%s --help tells what there is to know", async (name) => {
  const { exitCode, stdout } = await millrace([name, "--help"]);

  expect(exitCode).toBe(0);
  expect(stdout).toContain(`Usage: millrace ${name}`);
  expect(stdout).toContain("--json");
  expect(stdout).toMatch(new RegExp(`Examples:\n.*millrace ${name}`));
  expect(stdout.split("\n").filter((line) => line.length > 110)).toEqual([]);
});

test("help lists every command", async () => {
  const { exitCode, stdout } = await millrace(["--help"]);

  expect(exitCode).toBe(0);
  for (const name of commandNames) expect(stdout).toMatch(new RegExp(`^ {2}${name} `, "m"));
});

test("help about one command is the command's own help", async () => {
  const [asked, own] = await Promise.all([
    millrace(["help", "start"]),
    millrace(["start", "--help"]),
  ]);

  expect(asked.stdout).toBe(own.stdout);
});

test("without a command there is help, and the exit code of a wrong command line", async () => {
  const { exitCode, stdout, stderr } = await millrace([]);

  expect(exitCode).toBe(2);
  expect(stdout).toBe("");
  expect(stderr).toContain("Usage: millrace <command>");
});

test("--version prints a version and nothing else", async () => {
  const { exitCode, stdout } = await millrace(["--version"]);

  expect(exitCode).toBe(0);
  expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
});

test.each([
  [["strat"], 'there is no command "strat"; did you mean start?'],
  [["hist"], "did you mean history?"],
  [["frobnicate"], "Commands: demo, dev, apply"],
  [["help", "strat"], "did you mean start?"],
  [["start"], "<workflowId> is missing"],
  [["apply"], "<file…> is missing"],
  [["start", "a", "b"], 'one argument too many: "b"'],
  [["ls", "--statsu", "RUNNING"], "there is no option --statsu; did you mean --status?"],
  [["start", "a", "--input", "--wait"], "--input needs a <json>"],
  [["start", "a", "--input"], "--input needs a <json>"],
  [["start", "a", "--wait=yes"], "--wait takes no value"],
  [["start", "a", "--input", "1", "--input", "2"], "--input is given twice"],
  [["start", "a", "--input", "hello"], `a text needs quotes: '"hello"'`],
  [["start", "a", "--input", "@/no/such/file.json"], "cannot read /no/such/file.json"],
  [["start", "a", "--metadata", "[]"], "--metadata must be a JSON object"],
  [["start", "a", "--priority", "1.5"], "--priority must be a whole number from -1000 to 1000"],
  [["ls", "--status", "runing"], "did you mean RUNNING?"],
  [["ls", "--var", "total"], "--var takes path=json"],
  [["ls", "--var", "name=ada"], `'"ada"'`],
  [["ls", "--created-after", "yesterday"], "--created-after must be a time"],
  [["ls", "--api", "localhost:8080"], "--api must be a URL"],
  [["dev", "--port", "70000"], "--port must be a whole number from 0 to 65535"],
  [["dev", "--tasks", "/no/such/folder"], "there is no /no/such/folder"],
  [["demo", "--orders", "0"], "--orders must be a whole number from 1 to 1000"],
  [["migrate"], "DATABASE_URL"],
  [["migrate", "--database-url", "db"], "--database-url must be a URL such as postgres://"],
  [["strat", "--json"], '{"error":{"code":"USAGE","message":"there is no command'],
] as const)("millrace %j is a wrong command line", async (args, message) => {
  const { exitCode, stdout, stderr } = await millrace(args);

  expect(stderr).toContain(message);
  expect(exitCode).toBe(2);
  expect(stdout).toBe("");
});

test("a wrong address in the environment is named as such", async () => {
  const environment = { MILLRACE_API: "here" };

  const { exitCode, stderr } = await millrace(["ls"], { environment });

  expect(exitCode).toBe(2);
  expect(stderr).toContain('MILLRACE_API must be a URL such as http://127.0.0.1:8080, not "here"');
});

test.each([[["ls"]], [["show", "x"]], [["event", "a.b"]], [["start", "a"]], [["cancel", "x"]]])(
  "millrace %j says where no API answers, and how to start one",
  async (args) => {
    const api = `http://127.0.0.1:${await freePort()}`;

    const { exitCode, stdout, stderr } = await millrace([...args, "--api", api]);

    expect(exitCode).toBe(3);
    expect(stderr).toContain(`no Millrace API at ${api}: connect ECONNREFUSED`);
    expect(stderr).toContain("millrace dev");
    expect(stdout).toBe("");
  },
);

test("with --json a failure is JSON too", async () => {
  const api = `http://127.0.0.1:${await freePort()}`;

  const { exitCode, stderr } = await millrace(["--json", "--api", api, "ls"]);

  expect(exitCode).toBe(3);
  expect(JSON.parse(stderr)).toMatchObject({ error: { code: "UNREACHABLE" } });
});
