import { Readable, Writable } from "node:stream";
import { run } from "../src/cli.ts";
import { readSettings } from "../src/config.ts";

export interface Ran {
  readonly exitCode: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command line in this process, with an environment of its own. */
export async function millrace(
  args: readonly string[],
  { input = "", environment = {} }: { input?: string; environment?: NodeJS.ProcessEnv } = {},
): Promise<Ran> {
  const stdout = sink();
  const stderr = sink();
  const streams = { stdin: Readable.from([input]), stdout: stdout.stream, stderr: stderr.stream };
  const exitCode = await run(args, streams, readSettings(environment));
  return { exitCode, stdout: stdout.text(), stderr: stderr.text() };
}

function sink() {
  let text = "";
  const stream = new Writable({
    write(chunk, _encoding, done) {
      text += String(chunk);
      done();
    },
  });
  return { stream, text: () => text };
}
