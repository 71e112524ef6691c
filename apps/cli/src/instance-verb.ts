import type { InstanceView } from "@millrace/contract";
import type { Output } from "./output.ts";

/** What the commands that ask something of one instance have in common. */

export const instanceArguments = [{ name: "id", description: "the id of an instance" }] as const;

export const reasonOption = {
  type: "string",
  short: "r",
  value: "text",
  description: "why; kept in the history",
} as const;

export function tellStatus(output: Output, instance: InstanceView): void {
  output.json(instance);
  if (!output.isJson) output.line(`${instance.id} is ${instance.status}`);
}
