import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { WorkflowDefinition } from "@millrace/contract";
import { root } from "../root.ts";

const folder = new URL("examples/order-processing/", root);

/** The folder of the task modules, for `--tasks`. */
export const orderTasksFolder = fileURLToPath(new URL("tasks", folder));

/** The definition document `order_processing`, as it is in the example. */
export async function readOrderDefinition(): Promise<WorkflowDefinition> {
  const text = await readFile(new URL("order_processing.json", folder), "utf8");
  return JSON.parse(text) as WorkflowDefinition;
}
