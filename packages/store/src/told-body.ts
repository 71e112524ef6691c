import { isTerminal } from "@millrace/engine";
import type { ChildRefusal, InstanceStatus, TerminalStatus, WorkflowError } from "@millrace/engine";
import type { ReceivedSignal } from "./commit.ts";
import { parseJson } from "./json.ts";
import type { Json } from "./json.ts";

/** What a row of `child_signals` says, and whether it says anything. */

export type ChildSignalBody =
  | {
      readonly parentId: string;
      readonly reason: string | null;
      readonly shouldCompensate: boolean;
    }
  | {
      readonly status: TerminalStatus;
      readonly error: WorkflowError | null;
      readonly reason: string | null;
    }
  | { readonly refused: ChildRefusal };

export interface ToldRow {
  readonly kind: string;
  readonly child_id: string;
  readonly sent_version: number;
  readonly body: string;
}

export function receivedOf({ kind, child_id, sent_version }: ToldRow): ReceivedSignal {
  return {
    kind: kind === "CANCEL" ? "CANCEL" : "END",
    childId: child_id,
    sentVersion: sent_version,
  };
}

/** Undefined where it has not the form of what is told by a signal of its kind. */
export function toldBodyOf({
  kind,
  body: text,
}: Pick<ToldRow, "kind" | "body">): ChildSignalBody | undefined {
  const body = parseJson(text);
  if (!isObject(body)) return undefined;
  const { parentId, reason, shouldCompensate, refused, status, error } = body;
  const isReason = reason === null || typeof reason === "string";
  const isSound =
    kind === "CANCEL"
      ? typeof parentId === "string" && isReason && typeof shouldCompensate === "boolean"
      : parentId === undefined &&
        (refused === undefined
          ? isTerminal(status as InstanceStatus) && isReason && (error === null || isError(error))
          : isError(refused));
  return isSound ? (body as unknown as ChildSignalBody) : undefined;
}

function isError(value: Json | undefined): boolean {
  return (
    isObject(value) && ["kind", "type", "message"].every((key) => typeof value[key] === "string")
  );
}

function isObject(value: Json | undefined): value is { readonly [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
