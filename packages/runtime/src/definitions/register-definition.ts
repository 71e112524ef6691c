import { besides, startListeners, validateDefinition } from "@millrace/engine";
import { faultsOfInputSchema, formats } from "@millrace/input-schema";
import {
  contentHashOf,
  getDefinition,
  registerDefinition as storeDefinition,
} from "@millrace/store";
import { InvalidDefinitionError } from "../errors.ts";
import type { Problem } from "../errors.ts";
import type { Caller, Services } from "../services.ts";
import { checkCalendars } from "../calendars/check-calendars.ts";
import { checkChildren } from "./check-children.ts";

export interface Registered {
  readonly id: string;
  readonly version: number;
  readonly contentHash: string;
  readonly warnings: readonly Problem[];
  /** False where the latest version had this content already. */
  readonly created: boolean;
}

/** What else is known of a document as it came. */
export interface GivenBy {
  /** The id under which it is to be registered, where the call names one. */
  readonly pathId?: string;
  /** What is wrong with its text, of which the value may no longer show a trace: numbers that have changed. */
  readonly faults?: readonly Problem[];
}

/** @throws InvalidDefinitionError with every problem. */
export async function registerDefinition(
  services: Services,
  { tenantId, actor }: Caller,
  value: unknown,
  by: GivenBy = {},
): Promise<Registered> {
  const { database, queue, log } = services;
  const { document, warnings } = await checkAmongOthers(services, tenantId, value, by);
  const contentHash = contentHashOf(document);
  const { id } = document;
  const stored = await storeDefinition(database.db, {
    tenantId,
    id,
    document,
    contentHash,
    actor,
    startTriggers: startListeners(document),
  });
  if (stored.created) {
    log.info({ workflowId: id, version: stored.version }, "definition registered");
    // It says how many instances run at once, of earlier versions too.
    queue.wake.publish("slot", {});
  }
  return { id, version: stored.version, contentHash, warnings, created: stored.created };
}

/** What a registration would answer now; nothing is stored. @throws InvalidDefinitionError */
export async function previewDefinition(
  services: Services,
  { tenantId }: Caller,
  value: unknown,
  by: GivenBy = {},
): Promise<Registered> {
  const { database } = services;
  const { document, warnings } = await checkAmongOthers(services, tenantId, value, by);
  const contentHash = contentHashOf(document);
  const { id } = document;
  const latest = await getDefinition(database.db, tenantId, id);
  const created = latest?.contentHash !== contentHash;
  const version = (latest?.version ?? 0) + (created ? 1 : 0);
  return { id, version, contentHash, warnings, created };
}

/** As `checkDefinition`, together with the workflows that it starts and the calendars that it names. @throws InvalidDefinitionError */
async function checkAmongOthers(
  services: Services,
  tenantId: string,
  value: unknown,
  by: GivenBy = {},
) {
  const { document, warnings } = checkDefinition(value, by);
  const children = await checkChildren(services, tenantId, document);
  if (children.problems.length > 0) throw new InvalidDefinitionError(children.problems);
  const calendars = await checkCalendars(services, tenantId, document);
  return { document, warnings: [...warnings, ...children.warnings, ...calendars] };
}

/** Everything that can be known before a definition runs. @throws InvalidDefinitionError */
export function checkDefinition(value: unknown, { pathId, faults = [] }: GivenBy = {}) {
  const checked = validateDefinition(value, formats);
  const found = checked.problems ?? [];
  const problems = besides(faults, [
    ...idProblems(value, pathId),
    ...faultsOfInputSchema(value, [...faults, ...found]),
    ...found,
  ]);
  if (checked.problems !== undefined || problems.length > 0) {
    throw new InvalidDefinitionError(problems);
  }
  return checked;
}

function idProblems(value: unknown, pathId: string | undefined): readonly Problem[] {
  if (pathId === undefined || !isRecord(value) || !("id" in value)) return [];
  const { id } = value;
  if (id === pathId) return [];
  const message = `is ${JSON.stringify(id)}, and the call registers "${pathId}"; make them the same`;
  return [{ path: "/id", code: "BAD_VALUE", message }];
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
