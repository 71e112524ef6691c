import { pointer } from "@millrace/contract";

// A definition document as far as it can be read, whatever else is wrong with it, so that every
// problem is found in one go. What has the wrong shape counts as absent: the contract's schema
// reports it.

export type Fields = { readonly [key: string]: unknown };

/** A step's way to another. `path` is the JSON pointer of the target's id. */
export interface Edge {
  readonly path: string;
  readonly to: string;
  readonly kind: "default" | "condition" | "error" | "timeout";
}

export interface StepOutline {
  readonly path: string;
  readonly stepId: string | undefined;
  readonly type: string | undefined;
  readonly fields: Fields;
  readonly edges: readonly Edge[];
  /** Index of the step that it is inside of; undefined in the definition's own list. */
  readonly parent: number | undefined;
  /** The list of steps that it stands in: within one list alone steps can lead to one another. */
  readonly list: StepList;
}

export interface StepList {
  /** JSON pointer of the array. */
  readonly path: string;
  /** Indices of its steps. */
  readonly members: readonly number[];
}

export interface CompensationOutline {
  readonly path: string;
  readonly stepId: string | undefined;
  readonly compensationFor: string | undefined;
  readonly fields: Fields;
}

export interface Outline {
  readonly fields: Fields;
  /** All, each before what is inside it. */
  readonly steps: readonly StepOutline[];
  readonly lists: readonly StepList[];
  readonly compensationSteps: readonly CompensationOutline[];
  /** By step id; the first one where ids repeat. */
  readonly byId: ReadonlyMap<string, StepOutline>;
}

export function outlineOf(value: unknown): Outline {
  const fields = fieldsOf(value);
  const steps: StepOutline[] = [];
  const lists: StepList[] = [];
  addList(steps, lists, fields["steps"], "/steps", undefined);
  const compensationSteps = itemsOf(fields["compensationSteps"]).map((step, index) => {
    const own = fieldsOf(step);
    return {
      path: `/compensationSteps/${index}`,
      stepId: textOf(own["stepId"]),
      compensationFor: textOf(own["compensationFor"]),
      fields: own,
    };
  });
  const byId = new Map<string, StepOutline>();
  for (const step of steps) {
    if (step.stepId !== undefined && !byId.has(step.stepId)) byId.set(step.stepId, step);
  }
  return { fields, steps, lists, compensationSteps, byId };
}

/** An object's own members; none where there is no object. */
export function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Fields)
    : {};
}

export function itemsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** The pointer of a member below another. */
export function below(path: string, ...keys: readonly (string | number)[]): string {
  return path + pointer(keys);
}

function addList(
  steps: StepOutline[],
  lists: StepList[],
  values: unknown,
  path: string,
  parent: number | undefined,
): void {
  const members: number[] = [];
  const list = { path, members };
  lists.push(list);
  for (const [index, value] of itemsOf(values).entries()) {
    const at = `${path}/${index}`;
    const fields = fieldsOf(value);
    const type = textOf(fields["type"]);
    const own = steps.length;
    members.push(own);
    const stepId = textOf(fields["stepId"]);
    steps.push({ path: at, stepId, type, fields, edges: edgesOf(fields, at), parent, list });
    if (type === "MAP") addList(steps, lists, fields["steps"], `${at}/steps`, own);
    if (type !== "PARALLEL") continue;
    for (const [position, branch] of itemsOf(fields["branches"]).entries()) {
      const inside = `${at}/branches/${position}/steps`;
      addList(steps, lists, fieldsOf(branch)["steps"], inside, own);
    }
  }
}

function edgesOf(fields: Fields, path: string): Edge[] {
  const edges: Edge[] = [];
  const add = (kind: Edge["kind"], to: unknown, at: string): void => {
    if (typeof to === "string") edges.push({ kind, to, path: `${path}${at}` });
  };

  const transitions = fieldsOf(fields["transitions"]);
  for (const [index, condition] of itemsOf(transitions["conditions"]).entries()) {
    add("condition", fieldsOf(condition)["to"], `/transitions/conditions/${index}/to`);
  }
  add("default", transitions["default"], "/transitions/default");
  if (fields["type"] === "CHOICE") {
    for (const [index, choice] of itemsOf(fields["choices"]).entries()) {
      add("condition", fieldsOf(choice)["to"], `/choices/${index}/to`);
    }
    add("default", fields["default"], "/default");
  }
  for (const [index, handler] of itemsOf(fields["onError"]).entries()) {
    add("error", fieldsOf(handler)["to"], `/onError/${index}/to`);
  }
  if (fields["type"] === "EVENT_WAIT") {
    for (const [index, event] of itemsOf(fields["events"]).entries()) {
      add("condition", fieldsOf(event)["to"], `/events/${index}/to`);
    }
    const handler = fieldsOf(fields["eventTimeout"])["timeoutHandlerStepId"];
    add("timeout", handler, "/eventTimeout/timeoutHandlerStepId");
  }
  return edges;
}
