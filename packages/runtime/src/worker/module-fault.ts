import { spawnSync } from "node:child_process";
import { noInspector } from "./no-inspector.ts";
import { ownFrames } from "./own-frames.ts";

/** Whether this Node strips types. Older ones take TypeScript for JavaScript, or for nothing that they know. */
const stripsTypes = "typescript" in process.features && process.features.typescript !== false;

/** Why a module could not be imported, and where that is. */
export function moduleFault(file: string, error: Error, isStripping = stripsTypes): string {
  const { name, message, stack = "" } = error;
  const isTyped = /\.[cm]?ts$/.test(file);
  const isForeign =
    /Unknown file extension|Unexpected (?:token|identifier)|Missing initializer/.test(message);
  if (isTyped && isForeign && !isStripping) {
    return "Node.js runs TypeScript from 22.18 on; with an older one compile it, or write the task in .mjs";
  }
  // To check a file Node strips no types.
  const fault = error instanceof SyntaxError && !isTyped ? syntaxFault(file) : undefined;
  if (fault !== undefined) return fault;
  const frames = ownFrames(error);
  // One that has frames was thrown by what the module runs, as JSON.parse does.
  if (error instanceof SyntaxError && frames.length === 0) {
    return `${name}: ${message}, in ${namedIn(stack) ?? "what it imports"}`;
  }
  return [`${name}: ${message}`, ...frames].join("\n");
}

/**
 * Which line asks for what another module does not export, or is not TypeScript, Node writes before the error:
 * with a path where it first had to find out what kind of module it is.
 */
function namedIn(stack: string): string | undefined {
  return /^(?:file:|\/|[A-Z]:\\).*:\d+$/m.exec(stack)?.[0];
}

/** It takes a moment, and nothing else goes on here. */
const longestCheckMs = 10_000;

/** An import does not say where a module cannot be read; Node itself does. */
function syntaxFault(file: string): string | undefined {
  const { stderr } = spawnSync(process.execPath, [...noInspector, "--check", file], {
    encoding: "utf8",
    timeout: longestCheckMs,
  });
  const [, line, fault] = /:(\d+)\n[\s\S]*?(SyntaxError: .*)/.exec(stderr) ?? [];
  return line === undefined ? undefined : `${fault}, in line ${line}`;
}
