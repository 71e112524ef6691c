import type { Task } from "@millrace/sdk";
import { echo } from "./tasks/echo.ts";
import { fail } from "./tasks/fail.ts";
import { httpRequest } from "./tasks/http-request.ts";
import { noop } from "./tasks/noop.ts";
import { sleep } from "./tasks/sleep.ts";

/**
 * Tasks that every worker knows (CONTRACT 4).
 *
 * @param httpAllow What `http.request` may reach beside public addresses.
 */
export function builtInTasks(httpAllow: readonly string[]): readonly Task[] {
  return [noop, echo, fail, sleep, httpRequest(httpAllow)];
}
