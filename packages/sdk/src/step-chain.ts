import type {
  ChoiceStep,
  DelayStep,
  EmitEventStep,
  EndStep,
  EventWaitStep,
  JsonValue,
  MapStep,
  ParallelStep,
  SetStep,
  SubWorkflowStep,
  TaskStep,
  Transitions,
} from "@millrace/contract";
import type { Task } from "./define-task.ts";

/** A value of this type, any part of which may be an expression in text. */
export type Expressed<T> = unknown extends T
  ? JsonValue
  : | string
    | { readonly $literal: T }
    | (T extends readonly (infer Item)[]
        ? readonly Expressed<Item>[]
        : T extends object
          ? { readonly [Key in keyof T]: Expressed<T[Key]> }
          : T);

export interface Continuation {
  /** Where to go on; default: the step that is added next. Null: the branch ends here. */
  readonly next?: string | null | undefined;
  /** Tried before `next`, the first true one counts. */
  readonly conditions?: Transitions["conditions"];
}

type Options<Step, Given extends string> = Readonly<
  Omit<Step, "stepId" | "type" | "transitions" | Given>
>;

export type TaskOptions<Input> = Options<TaskStep, "taskId" | "input"> &
  Continuation & { readonly input?: Expressed<Input> | undefined };
export type EventWaitOptions = Options<EventWaitStep, "eventPattern" | "events"> & Continuation;
export type DelayOptions = Options<DelayStep, never> & Continuation;
export type ChoiceOptions = Options<ChoiceStep, "choices">;
export type SetOptions = Options<SetStep, "variables"> & Continuation;
export type ParallelOptions = Options<ParallelStep, "branches"> & Continuation;
export type MapOptions = Options<MapStep, "items" | "steps"> & Continuation;
export type SubWorkflowOptions = Options<SubWorkflowStep, "workflowId"> & Continuation;
export type EmitEventOptions = Options<EmitEventStep, "eventPattern" | "payload"> & Continuation;
export type EndOptions = Options<EndStep, "outcome">;

interface Draft {
  readonly stepId: string;
  readonly fields: Readonly<Record<string, unknown>>;
  /** Absent: the step has no transitions of its own (CHOICE, END). */
  readonly continuation?: Continuation;
}

/** Steps in the order in which they are added; each goes on to the next unless told otherwise. */
export class StepChain {
  readonly #drafts: Draft[] = [];

  /** @param task The task itself, which types `input`, or its id. */
  task<Input>(
    stepId: string,
    task: string | Task<Input>,
    options: TaskOptions<NoInfer<Input>> = {},
  ): this {
    return this.#add("TASK", stepId, { taskId: taskIdOf(task) }, options);
  }

  waitForEvent(stepId: string, eventPattern: string, options: EventWaitOptions = {}): this {
    return this.#add("EVENT_WAIT", stepId, { eventPattern }, options);
  }

  /** @param events With `mode: "ANY"` (default) the first of them, with `"ALL"` each of them. */
  waitForEvents(
    stepId: string,
    events: NonNullable<EventWaitStep["events"]>,
    options: EventWaitOptions = {},
  ): this {
    return this.#add("EVENT_WAIT", stepId, { events }, options);
  }

  delay(stepId: string, options: DelayOptions): this {
    return this.#add("DELAY", stepId, {}, options);
  }

  choice(stepId: string, choices: ChoiceStep["choices"], options: ChoiceOptions): this {
    return this.#addLast("CHOICE", stepId, { choices, ...options });
  }

  set(
    stepId: string,
    variables: Readonly<Record<string, JsonValue>>,
    options: SetOptions = {},
  ): this {
    return this.#add("SET", stepId, { variables }, options);
  }

  /** @param branches Name → what adds the steps of that branch. */
  parallel(
    stepId: string,
    branches: Readonly<Record<string, (branch: StepChain) => StepChain>>,
    options: ParallelOptions = {},
  ): this {
    const built = Object.entries(branches).map(([name, fill]) => ({
      name,
      steps: fill(new StepChain()).steps(),
    }));
    return this.#add("PARALLEL", stepId, { branches: built }, options);
  }

  /** @param items An expression that becomes an array, or an array. */
  map(
    stepId: string,
    items: string | readonly JsonValue[],
    fill: (item: StepChain) => StepChain,
    options: MapOptions = {},
  ): this {
    return this.#add("MAP", stepId, { items, steps: fill(new StepChain()).steps() }, options);
  }

  subWorkflow(stepId: string, workflowId: string, options: SubWorkflowOptions = {}): this {
    return this.#add("SUB_WORKFLOW", stepId, { workflowId }, options);
  }

  emitEvent(
    stepId: string,
    eventPattern: string,
    payload: JsonValue,
    options: EmitEventOptions = {},
  ): this {
    return this.#add("EMIT_EVENT", stepId, { eventPattern, payload }, options);
  }

  /** Ends the whole instance. */
  end(stepId: string, outcome: EndStep["outcome"], options: EndOptions = {}): this {
    return this.#addLast("END", stepId, { outcome, ...options });
  }

  /** The steps as the document has them, not yet checked. */
  steps(): unknown[] {
    return this.#drafts.map(({ stepId, fields, continuation }, index) => {
      const following = this.#drafts[index + 1]?.stepId;
      const transitions = continuation && transitionsOf(continuation, following);
      return { stepId, ...fields, ...(transitions && { transitions }) };
    });
  }

  #add(
    type: string,
    stepId: string,
    own: object,
    { next, conditions, ...rest }: Continuation,
  ): this {
    this.#drafts.push({
      stepId,
      fields: { type, ...own, ...rest },
      continuation: { next, conditions },
    });
    return this;
  }

  #addLast(type: string, stepId: string, fields: object): this {
    this.#drafts.push({ stepId, fields: { type, ...fields } });
    return this;
  }
}

export function taskIdOf(task: string | { readonly id: string }): string {
  return typeof task === "string" ? task : task.id;
}

function transitionsOf(
  { next, conditions }: Continuation,
  following: string | undefined,
): Transitions | undefined {
  const to = next === undefined ? following : (next ?? undefined);
  if (to === undefined && conditions === undefined) return undefined;
  return { ...(conditions && { conditions }), ...(to !== undefined && { default: to }) };
}
