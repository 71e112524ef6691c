import { canCancel, mergePatch } from "@millrace/engine";
import type { JsonObject } from "@millrace/engine";
import { patchColumns } from "@millrace/store";
import type { InstanceRead, Json } from "@millrace/store";
import { InvalidPatchError, StatusConflictError } from "../errors.ts";
import type { Caller, Services } from "../services.ts";
import { intervene } from "./intervene.ts";

/** A JSON merge patch (RFC 7396). What is undefined stays as it is. */
export interface PatchBody {
  readonly state?: { readonly variables?: JsonObject | undefined } | undefined;
  readonly priority?: number | undefined;
  /** ISO 8601. */
  readonly deadline?: string | null | undefined;
  readonly metadata?: JsonObject | null | undefined;
}

/** Characters of JSON that all variables together may have: as many as an event or a start may bring. */
const mostCharacters = 1_048_576;

/**
 * Changes variables, priority, deadline and metadata of an instance that has not ended, or that could be
 * retried.
 *
 * @param ifMatch The version that the caller has seen; undefined: whichever.
 * @throws InstanceNotFoundError, StatusConflictError, PreconditionFailedError, InvalidPatchError
 */
export async function patchInstance(
  services: Services,
  caller: Caller,
  instanceId: string,
  { state, priority, deadline, metadata }: PatchBody,
  ifMatch?: number,
): Promise<InstanceRead> {
  const { tenantId, actor } = caller;
  const variables = state?.variables;
  const others = {
    ...(deadline !== undefined && { deadline }),
    ...(metadata !== undefined && { metadata }),
  };
  const isEmpty =
    variables === undefined && priority === undefined && Object.keys(others).length === 0;
  return intervene(services, caller, instanceId, {
    ifMatch,
    signals: (snapshot) => {
      if (!canCancel(snapshot)) {
        throw new StatusConflictError("changed", instanceId, snapshot.status);
      }
      if (isEmpty) return [];
      if (variables !== undefined) checkSize(mergePatch(snapshot.variables, variables));
      return [
        {
          kind: "variablesPatched",
          intervention: snapshot.interventions + 1,
          actor,
          reason: null,
          patch: variables ?? null,
          priority: priority ?? null,
          others,
        },
      ];
    },
    within: (trx) =>
      patchColumns(
        trx,
        { tenantId, instanceId },
        {
          deadline: typeof deadline === "string" ? new Date(deadline) : deadline,
          metadata: metadata === undefined ? undefined : (current) => mergePatch(current, metadata),
        },
      ),
  });
}

function checkSize(variables: Json): void {
  const size = JSON.stringify(variables).length;
  if (size <= mostCharacters) return;
  throw new InvalidPatchError(
    `the variables would be ${size} characters of JSON, and at most ${mostCharacters} are kept`,
  );
}
