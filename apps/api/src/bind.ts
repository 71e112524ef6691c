import {
  type BulkFilter,
  DEFAULT_BULK_LIMIT,
  DEFAULT_PAGE_SIZE,
  type InstanceView,
  type ListInstancesQuery,
} from "@millrace/contract";
import {
  actOnMany,
  cancelInstance,
  checkInstance,
  InstanceNotFoundError,
  patchInstance,
  pauseInstance,
  planCompensation,
  previewDefinition,
  publishEvent,
  publishEvents,
  registerDefinition,
  repairInstance,
  promoteInstance,
  resumeInstance,
  retryInstance,
  type Services,
  simulateDefinition,
  startInstance,
  startInstances,
  stateAt,
  waitCondition,
  waitUntilSettled,
  watchServices,
  whyInstance,
  WorkflowNotFoundError,
} from "@millrace/runtime";
import {
  getDefinition,
  type InstanceFilter,
  type InstanceRead,
  listDefinitions,
  listInstances,
  listSteps,
  loadInstance,
  readInstance,
} from "@millrace/store";
import { calendarsOf } from "./calendars.ts";
import { limitsOf } from "./limits.ts";
import { consistencyView, repairView } from "./consistency-view.ts";
import { deadLettersOf } from "./dead-letters.ts";
import { forOwner, refusalOf } from "./for-owner.ts";
import { historyPage } from "./history.ts";
import { operationsOf } from "./operations.ts";
import { planView } from "./plan-view.ts";
import type { Caller, Runtime } from "./runtime.ts";
import { schedulesOf } from "./schedules.ts";
import { stateView } from "./state-view.ts";
import { streamsOf } from "./streams.ts";
import { webhooksOf } from "./webhooks.ts";
import {
  type DefinitionFacts,
  definitionSummary,
  definitionView,
  instanceView,
  stepExecutionView,
  publishedView,
} from "./views.ts";
import { whyView } from "./why-view.ts";

/** What somebody asks of one instance, whoever it is of. */
type Verb<Request> = (
  services: Services,
  owner: Caller,
  id: string,
  request: Request,
  ifMatch: number | undefined,
) => Promise<InstanceRead>;

/** What the routes ask for, done with the services of this process. */
export function bindRuntime(services: Services): Runtime {
  const { db } = services.database;
  const readiness = watchServices(services);

  const viewOf = async (read: InstanceRead): Promise<InstanceView> =>
    instanceView(read, await factsOf(services, read));
  const verb =
    <Request>(act: Verb<Request>) =>
    (caller: Caller, id: string, request: Request, ifMatch?: number) =>
      forOwner(services, caller, id, async (owner) =>
        viewOf(await act(services, owner, id, request, ifMatch)),
      );

  return {
    async registerDefinition(caller, document, by) {
      const { created, ...answer } = await registerDefinition(services, caller, document, by);
      return { answer: { ...answer, warnings: [...answer.warnings] }, created };
    },
    async validateDefinition(caller, document, by) {
      const { created: _, ...answer } = await previewDefinition(services, caller, document, by);
      return { ...answer, warnings: [...answer.warnings] };
    },
    async readDefinition({ tenantId }, id, version) {
      const stored = await getDefinition(db, tenantId, id, version);
      return stored && definitionView(stored);
    },
    async simulate(caller, workflowId, request) {
      const { version, result } = await simulateDefinition(services, caller, workflowId, request);
      return { workflowId, workflowVersion: version, ...result };
    },
    async listDefinitions({ tenantId }, { limit = DEFAULT_PAGE_SIZE, cursor }) {
      const { items, nextCursor } = await listDefinitions(db, tenantId, { limit, cursor });
      return { items: items.map(definitionSummary), nextCursor };
    },

    async startInstance(caller, request, idempotencyKey) {
      const { instance, replayed } = await startInstance(services, caller, request, idempotencyKey);
      return { instance: await viewOf(instance), replayed };
    },
    async startInstances(caller, requests, idempotencyKeys) {
      const outcomes = await startInstances(services, caller, requests, idempotencyKeys);
      return Promise.all(
        outcomes.map(async (outcome) =>
          "error" in outcome
            ? outcome
            : { instance: await viewOf(outcome.instance), replayed: outcome.replayed },
        ),
      );
    },
    readInstance: (caller, instanceId, outputsOf) =>
      forOwner(services, caller, instanceId, async ({ tenantId }) => {
        const read = await readInstance(db, { tenantId, instanceId }, outputsOf);
        return read === undefined ? notThere(instanceId) : viewOf(read);
      }).catch(undefinedIfNotThere),
    waitUntilSettled: (caller, id, options) =>
      forOwner(services, caller, id, async (owner) =>
        viewOf(await waitUntilSettled(services, owner, id, options)),
      ),
    async listInstances({ tenantId }, query, variables) {
      const { limit = DEFAULT_PAGE_SIZE, cursor, order } = query;
      const filter = { ...filterOf(query), variables };
      const { items, nextCursor } = await listInstances(db, {
        tenantId,
        filter,
        order,
        limit,
        cursor,
      });
      return { items: await Promise.all(items.map(viewOf)), nextCursor };
    },
    async actOnMany(caller, { limit = DEFAULT_BULK_LIMIT, dryRun = false, filter, ...request }) {
      const variables = Object.entries(filter.variables ?? {}).map(([path, value]) => ({
        path: path.split("."),
        json: JSON.stringify(value),
      }));
      const bulk = { ...request, limit, dryRun, filter: { ...filterOf(filter), variables } };
      const { outcomes, nextCursor } = await actOnMany(services, caller, bulk);
      return {
        outcomes: outcomes.map(({ id, error }) =>
          error === undefined ? { id } : { id, error: refusalOf(id, error) },
        ),
        nextCursor,
      };
    },
    cancelInstance: verb(cancelInstance),
    pauseInstance: verb(pauseInstance),
    patchInstance: verb(patchInstance),
    retryInstance: verb(retryInstance),
    promoteInstance: verb(promoteInstance),
    resumeInstance: verb(resumeInstance),
    planCompensation: (caller, id, reason) =>
      forOwner(services, caller, id, async (owner) =>
        planView(await planCompensation(services, owner, id, reason)),
      ),
    readState: (caller, id, version) =>
      forOwner(services, caller, id, async (owner) =>
        stateView(await stateAt(services, owner, id, version)),
      ),
    checkConsistency: (caller, id) =>
      forOwner(services, caller, id, async ({ tenantId }) =>
        consistencyView(await checkInstance(services, { tenantId, instanceId: id })),
      ),
    repairInstance: (caller, id, ifMatch) =>
      forOwner(services, caller, id, async (owner) =>
        repairView(await repairInstance(services, owner, id, ifMatch)),
      ),
    why: (caller, id) =>
      forOwner(services, caller, id, async (owner) =>
        whyView(await whyInstance(services, owner, id)),
      ),
    listSteps: (caller, instanceId, { limit = DEFAULT_PAGE_SIZE, cursor, path, status = [] }) =>
      forOwner(services, caller, instanceId, async ({ tenantId }) => {
        const key = { tenantId, instanceId };
        const { items, nextCursor } = await listSteps(db, key, { path, status, limit, cursor });
        // A path may lead nowhere, and a page may be the last; the instance has to be there.
        if (items.length === 0 && !(await loadInstance(db, key))) return notThere(instanceId);
        return { items: items.map(stepExecutionView), nextCursor };
      }),
    readHistory: (caller, instanceId, query) =>
      forOwner(services, caller, instanceId, async ({ tenantId }) => {
        const page = await historyPage(db, { tenantId, instanceId }, query);
        // Every instance has the history of its start, unless that is damaged.
        const isThere = page.items.length > 0 || query.cursor !== undefined;
        if (!isThere && !(await loadInstance(db, { tenantId, instanceId })))
          return notThere(instanceId);
        return page;
      }).catch(undefinedIfNotThere),

    publishEvent: async (caller, event) =>
      publishedView(await publishEvent(services, caller, event)),
    async publishEvents(caller, events) {
      const outcomes = await publishEvents(services, caller, events);
      return outcomes.map((outcome) =>
        "error" in outcome ? outcome : { event: publishedView(outcome) },
      );
    },

    ...calendarsOf(services),
    ...limitsOf(services),
    ...deadLettersOf(services),
    ...schedulesOf(services),
    ...operationsOf(services),
    ...streamsOf(services),
    ...webhooksOf(services),
    async readiness() {
      const { status, checks, required } = await readiness();
      return {
        status: status === "ok" ? "ok" : "unavailable",
        checks: Object.fromEntries(
          checks.map(({ name, detail, ...check }) => [
            name,
            {
              status: check.status === "ok" ? "ok" : "down",
              required: required.includes(name),
              ...(detail !== "" && { detail }),
            },
          ]),
        ),
      };
    },
    async metrics() {
      return { contentType: services.metrics.contentType, text: await services.metrics.text() };
    },
  };
}

function notThere(instanceId: string): never {
  throw new InstanceNotFoundError(instanceId);
}

function undefinedIfNotThere(error: unknown): undefined {
  if (!(error instanceof InstanceNotFoundError)) throw error;
}

/** Definitions in use are kept compiled, so this waits only for the first instance of a version. */
async function factsOf(services: Services, { snapshot }: InstanceRead): Promise<DefinitionFacts> {
  const { tenantId, workflowId, workflowVersion } = snapshot;
  try {
    const { definition } = await services.definitions.get(tenantId, workflowId, workflowVersion);
    return {
      size: definition.size,
      conditionOf: (wait) => waitCondition(definition, wait),
    };
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error;
    // One that has lost its definition is shown without, and keeps no other from being shown.
    return { size: snapshot.completedSteps, conditionOf: () => undefined };
  }
}

function filterOf(query: ListInstancesQuery | BulkFilter): InstanceFilter {
  const { ids, status, workflowId, workflowVersion, correlationId, currentStep, waitingFor } =
    query;
  return {
    ids,
    status,
    workflowId,
    workflowVersion,
    correlationId,
    currentStep,
    waitingFor,
    createdAfter: dateOf(query.createdAfter),
    createdBefore: dateOf(query.createdBefore),
    updatedAfter: dateOf(query.updatedAfter),
    updatedBefore: dateOf(query.updatedBefore),
  };
}

function dateOf(text: string | undefined): Date | undefined {
  return text === undefined ? undefined : new Date(text);
}
