import type {
  QueueList,
  StatsView,
  TaskList,
  WorkerList,
  WorkflowDefinition,
} from "@millrace/contract";
import { costsOfSchema } from "@millrace/engine";
import type { Check } from "./check.ts";

/** Where definitions, workers and instances have drifted apart. */
export interface Installation {
  readonly workers: WorkerList["items"];
  readonly tasks: TaskList["items"];
  readonly queues: QueueList["items"];
  readonly workflows: StatsView["workflows"];
  /** The latest version of each definition. */
  readonly definitions: readonly WorkflowDefinition[];
}

export function checkDrift(installation: Installation): readonly Check[] {
  return [
    checkWorkers(installation),
    checkBlocked(installation),
    checkQueues(installation),
    checkTasks(installation),
    checkDefinitions(installation),
    checkSchemas(installation),
  ];
}

function checkWorkers({ workers }: Installation): Check {
  const name = "workers";
  if (workers.length > 0) return { name, status: "OK", detail: `${workers.length} are alive` };
  const advice = "Start one: millrace worker --tasks <folder>.";
  return { name, status: "WARNING", detail: "none is alive: no task runs", advice };
}

/** Steps that wait for a worker that knows their task. */
function checkBlocked({ tasks }: Installation): Check {
  const name = "blocked steps";
  const blocked = tasks.filter((task) => task.blocked > 0 && task.workers.length === 0);
  if (blocked.length === 0) return { name, status: "OK", detail: "none" };
  const told = blocked.map((task) => `${task.blocked} wait for task ${task.id}`).join(", ");
  const advice = "Start a worker that has the task; the steps then go on.";
  return { name, status: "WARNING", detail: `${told}, which no live worker knows`, advice };
}

function checkQueues({ queues }: Installation): Check {
  const name = "queues";
  const paused = queues.flatMap(({ name: queue, pause }) =>
    pause ? [`${queue} (by ${pause.by} since ${pause.at})`] : [],
  );
  if (paused.length > 0) {
    const resume = "Resume them, POST /v1/queues/<name>/resume, where that is over.";
    const told = `no worker takes steps of ${paused.join(", ")}: paused`;
    return { name, status: "WARNING", detail: told, advice: resume };
  }
  const left = queues.filter(
    ({ workers, pending, retrying }) => workers.length === 0 && pending + retrying > 0,
  );
  if (left.length === 0) return { name, status: "OK", detail: "each with steps has a worker" };
  const told = left.map((queue) => `${queue.pending + queue.retrying} steps in ${queue.name}`);
  const advice = "Start a worker with the queue in MILLRACE_QUEUES.";
  return {
    name,
    status: "WARNING",
    detail: `${told.join(", ")}, which no live worker serves`,
    advice,
  };
}

/** Tasks that definitions name, and no live worker knows: nothing waits for them yet. */
function checkTasks({ workers, definitions }: Installation): Check {
  const name = "tasks";
  const known = new Set(workers.flatMap(({ tasks }) => tasks));
  const named = new Map<string, Set<string>>();
  for (const { id, steps, compensationSteps = [] } of definitions) {
    for (const step of [...stepsWithin(steps), ...compensationSteps]) {
      const { taskId } = step as { readonly taskId?: string };
      // Which one an expression gives, nobody knows yet.
      if (taskId !== undefined && !taskId.includes("${"))
        named.set(taskId, (named.get(taskId) ?? new Set()).add(id));
    }
  }
  const unknown = [...named].filter(([taskId]) => !known.has(taskId));
  if (unknown.length === 0) {
    return { name, status: "OK", detail: `all ${named.size} that definitions name are known` };
  }
  const told = unknown.map(([taskId, ids]) => `${taskId} (${[...ids].join(", ")})`).join(", ");
  const advice = "Start a worker that has them, or register definitions without them.";
  return { name, status: "WARNING", detail: `no live worker knows ${told}`, advice };
}

/** Definitions that instances or other definitions name. */
function checkDefinitions({ workflows, definitions }: Installation): Check {
  const name = "definitions";
  const known = new Set(definitions.map(({ id }) => id));
  const missing = workflows.filter(({ workflowId }) => !known.has(workflowId));
  const children = definitions.flatMap(({ id, steps }) =>
    stepsWithin(steps).flatMap((step) => {
      const { workflowId } = step as { readonly workflowId?: string };
      const isKnown =
        workflowId === undefined || workflowId.includes("${") || known.has(workflowId);
      return isKnown ? [] : `${workflowId} (for ${id})`;
    }),
  );
  if (missing.length > 0) {
    const told = missing.map(({ workflowId, total }) => `${workflowId} (${total} instances)`);
    const advice = "Restore them from a backup: their instances cannot go on.";
    return { name, status: "FAILED", detail: `${told.join(", ")} are not stored`, advice };
  }
  if (children.length === 0) return { name, status: "OK", detail: `${known.size} are registered` };
  const advice = "Register them: steps that start them fail until then.";
  return { name, status: "WARNING", detail: `${children.join(", ")} are not registered`, advice };
}

/** What an earlier release registered, and this one does not compile. */
function checkSchemas({ definitions }: Installation): Check {
  const name = "input schemas";
  const costly = definitions.flatMap(({ id, inputSchema }) => {
    const [first] = costsOfSchema(inputSchema);
    return first === undefined ? [] : [`${id} (${first.code} at ${first.path})`];
  });
  if (costly.length === 0) return { name, status: "OK", detail: "each is compiled in good time" };
  const advice = "Register them with other schemas: until then each start is refused.";
  const detail = `${costly.join(", ")} would take too long to compile`;
  return { name, status: "WARNING", detail, advice };
}

type Step = WorkflowDefinition["steps"][number];

/** Those inside of branches and items, too. */
function stepsWithin(steps: readonly Step[]): readonly Step[] {
  return steps.flatMap((step) => {
    const { branches = [], steps: items = [] } = step as {
      readonly branches?: readonly { readonly steps: readonly Step[] }[];
      readonly steps?: readonly Step[];
    };
    return [
      step,
      ...branches.flatMap((branch) => stepsWithin(branch.steps)),
      ...stepsWithin(items),
    ];
  });
}
