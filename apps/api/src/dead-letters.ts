import { DEFAULT_PAGE_SIZE, type DeadLetterView } from "@millrace/contract";
import {
  DeadLetterNotFoundError,
  discardDeadLetter,
  retryDeadLetter,
  type Services,
} from "@millrace/runtime";
import {
  type DeadLetter,
  type LapsedDelivery,
  listDeadLetters,
  readDeadLetter,
} from "@millrace/store";
import type { Caller, Runtime } from "./runtime.ts";
import { errorView, time } from "./views.ts";

export function deadLettersOf(
  services: Services,
): Pick<Runtime, "listDeadLetters" | "readDeadLetter" | "discardDeadLetter" | "retryDeadLetter"> {
  const { db } = services.database;

  /** Found as the caller's, or as anybody's where the caller named no tenant. */
  async function find(caller: Caller, id: string): Promise<DeadLetter> {
    const own = await readDeadLetter(db, id, caller.tenantId);
    const letter = own ?? (caller.isAnyTenant ? await readDeadLetter(db, id) : undefined);
    if (letter === undefined) throw new DeadLetterNotFoundError(id);
    return letter;
  }

  return {
    async listDeadLetters({ tenantId }, { status = "OPEN", limit = DEFAULT_PAGE_SIZE, ...query }) {
      const { workflowId, instanceId, cursor } = query;
      const filter = { status: status === "ALL" ? undefined : status, workflowId, instanceId };
      const { items, nextCursor } = await listDeadLetters(db, tenantId, filter, { limit, cursor });
      return { items: items.map(deadLetterView), nextCursor };
    },
    readDeadLetter: async (caller, id) => deadLetterView(await find(caller, id)),
    async retryDeadLetter(caller, id, request) {
      const { tenantId } = await find(caller, id);
      return deadLetterView(await retryDeadLetter(services, { ...caller, tenantId }, id, request));
    },
    async discardDeadLetter(caller, id, request) {
      const { tenantId } = await find(caller, id);
      return deadLetterView(
        await discardDeadLetter(services, { ...caller, tenantId }, id, request),
      );
    },
  };
}

function deadLetterView(letter: DeadLetter): DeadLetterView {
  const {
    tenantId: _,
    path,
    iteration,
    error,
    deliveries,
    createdAt,
    resolvedAt,
    ...rest
  } = letter;
  return {
    ...rest,
    executionId: `${path}#${iteration}`,
    error: errorView(error),
    deliveries: deliveries.map(deliveryView),
    createdAt: createdAt.toISOString(),
    resolvedAt: time(resolvedAt),
  };
}

function deliveryView({
  lastBeatAt,
  foundAt,
  ...delivery
}: LapsedDelivery): DeadLetterView["deliveries"][number] {
  const view = {
    ...delivery,
    lastBeatAt: lastBeatAt === null ? null : new Date(lastBeatAt).toISOString(),
    foundAt: new Date(foundAt).toISOString(),
  };
  return { ...view, log: logOf(view) };
}

/** Each line has the host and the process; which of them is the last, nobody here can know. */
function logOf({
  host,
  pid,
  lastBeatAt,
  foundAt,
}: Pick<LapsedDelivery, "host" | "pid" | "lastBeatAt" | "foundAt">): string | null {
  if (host === null || pid === null) return null;
  const span = lastBeatAt === null ? `until ${foundAt}` : `from ${lastBeatAt} until ${foundAt}`;
  return `the last lines with "pid":${pid} and "hostname":${JSON.stringify(host)}, ${span}; one with "level":"fatal" says why, and without it the process was killed`;
}
