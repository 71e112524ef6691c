import {
  type CancellationTrigger,
  type CompensationStep,
  type JsonValue,
  parseDocument,
  type Problem,
  type StartTrigger,
  type WorkflowDefinition,
} from "@millrace/contract";
import { validateDefinition } from "@millrace/engine";
import * as z from "zod";
import type { Task } from "./define-task.ts";
import { type Expressed, StepChain, taskIdOf } from "./step-chain.ts";

export type WorkflowOptions = Readonly<
  Omit<
    WorkflowDefinition,
    "id" | "steps" | "compensationSteps" | "cancellationTriggers" | "startTriggers"
  >
> & {
  /** Written into the document as its `inputSchema`. */
  readonly input?: z.ZodType | undefined;
};

export type CompensationOptions<Input> = Readonly<
  Omit<CompensationStep, "stepId" | "compensationFor" | "type" | "taskId" | "input">
> & { readonly input?: Expressed<Input> | undefined };

/** The document that a builder made is not one that can be registered. */
export class DefinitionError extends Error {
  override readonly name = "DefinitionError";
  readonly problems: readonly Problem[];

  constructor(id: string, problems: readonly Problem[]) {
    const lines = problems.map(({ path, message }) => `\n  ${path || "/"}: ${message}`);
    super(`workflow ${id} is not valid:${lines.join("")}`);
    this.problems = problems;
  }
}

/**
 * Builds a definition document, step after step.
 *
 * ```ts
 * const greeting = defineWorkflow("greeting", { input: z.object({ name: z.string() }) })
 *   .task("greet", greet, { input: { name: "${ workflow.input.name }" } })
 *   .waitForEvent("answer", "greeting.answered", { lookback: "instance" })
 *   .build();
 * ```
 */
export function defineWorkflow(id: string, options: WorkflowOptions = {}): WorkflowBuilder {
  return new WorkflowBuilder(id, options);
}

export class WorkflowBuilder extends StepChain {
  readonly #id: string;
  readonly #options: WorkflowOptions;
  readonly #compensationSteps: unknown[] = [];
  readonly #cancellationTriggers: CancellationTrigger[] = [];
  readonly #startTriggers: StartTrigger[] = [];

  constructor(id: string, options: WorkflowOptions) {
    super();
    this.#id = id;
    this.#options = options;
  }

  /** Adds the compensation step `stepId`, which undoes the step `compensationFor`. */
  compensate<Input>(
    compensationFor: string,
    stepId: string,
    task: string | Task<Input>,
    options: CompensationOptions<NoInfer<Input>> = {},
  ): this {
    this.#compensationSteps.push({
      stepId,
      compensationFor,
      type: "TASK",
      taskId: taskIdOf(task),
      ...options,
    });
    return this;
  }

  cancelOn(eventPattern: string, trigger: Omit<CancellationTrigger, "eventPattern">): this {
    this.#cancellationTriggers.push({ eventPattern, ...trigger });
    return this;
  }

  startOn(eventPattern: string, trigger: Omit<StartTrigger, "eventPattern"> = {}): this {
    this.#startTriggers.push({ eventPattern, ...trigger });
    return this;
  }

  /**
   * The document, checked as registration will check it.
   *
   * @throws {DefinitionError} With every fault.
   */
  build(): WorkflowDefinition {
    const { input, ...options } = this.#options;
    const draft = {
      id: this.#id,
      ...options,
      ...(input && { inputSchema: jsonSchemaOf(input) }),
      steps: this.steps(),
      ...listed("compensationSteps", this.#compensationSteps),
      ...listed("cancellationTriggers", this.#cancellationTriggers),
      ...listed("startTriggers", this.#startTriggers),
    };
    const { document } = parseDocument(draft);
    const { problems = [] } = validateDefinition(draft);
    if (document === undefined || problems.length > 0)
      throw new DefinitionError(this.#id, problems);
    return document;
  }

  /** So that a builder can stand where a document is sent. */
  toJSON(): WorkflowDefinition {
    return this.build();
  }
}

function jsonSchemaOf(schema: z.ZodType): unknown {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: "input" });
  // zod hangs functions on what it returns; a document is plain JSON.
  return JSON.parse(JSON.stringify(rest)) as JsonValue;
}

function listed(name: string, items: readonly unknown[]): Readonly<Record<string, unknown>> {
  return items.length > 0 ? { [name]: items } : {};
}
