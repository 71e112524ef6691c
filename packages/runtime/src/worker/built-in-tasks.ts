import type { Task } from "@millrace/sdk";
import { echo } from "./tasks/echo.ts";
import { fail } from "./tasks/fail.ts";
import { noop } from "./tasks/noop.ts";
import { sleep } from "./tasks/sleep.ts";

/** Tasks that every worker knows (CONTRACT 4). */
export const builtInTasks: readonly Task[] = [noop, echo, fail, sleep];
