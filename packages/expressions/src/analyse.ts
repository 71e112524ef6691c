/**
 * What a tree reads, without running it.
 *
 * Each node is given the *places* its value may come from (`steps.a.output` is a place; a sum is
 * none). A place is read when its value is used for anything but reading further below it, so that
 * `(x ? steps : variables).a` reads `steps.a` and `variables.a`, while `size(steps)` reads all of it.
 */
import type { Problem, Warning } from "./errors.ts";
import { whereIn } from "./errors.ts";
import { findFunction } from "./functions.ts";
import { problem } from "./parse.ts";
import type { Reads } from "./reads.ts";
import type { BinaryNode, Node } from "./tree.ts";

export interface Analysis {
  readonly reads: Reads;
  readonly problems: readonly Problem[];
  readonly warnings: readonly Warning[];
}

/** Where a value may come from: a root and the keys below it. */
export interface Place {
  readonly root: string;
  readonly path: readonly string[];
}

export function analyse(
  tree: Node,
  source: string,
  { undefinedNeverEqual }: { readonly undefinedNeverEqual: boolean },
): Analysis {
  const reader = new ReadsCollector();
  const problems: Problem[] = [];
  const warnings: Warning[] = [];

  use(visit(tree));
  return { reads: reader.reads(), problems, warnings };

  function visit(node: Node): Origin {
    switch (node.kind) {
      case "literal":
        return nowhere;
      case "root":
        reader.root(node.name);
        return { places: [{ root: node.name, path: [] }], holdsSteps: false };
      case "member": {
        const { places, holdsSteps } = visit(node.object);
        const below = places.map(({ root, path }) => ({ root, path: [...path, node.key] }));
        for (const place of below) warnUnknown(place, node);
        return { places: below, holdsSteps };
      }
      case "computed": {
        const object = visit(node.object);
        if (object.holdsSteps || object.places.some(leadsToSteps)) {
          problems.push(problem("COMPUTED_STEPS", computedStepsText, source, node.start));
        }
        use(object);
        use(visit(node.key));
        return nowhere;
      }
      case "conditional":
        use(visit(node.test));
        return either(visit(node.consequent), visit(node.alternate));
      case "logical":
        return either(visit(node.left), visit(node.right));
      case "call": {
        const specification = findFunction(node.name);
        if (specification?.clock === true) reader.clock();
        const holdsSteps = useAll(node.arguments);
        return { places: [], holdsSteps: holdsSteps && specification?.plain !== true };
      }
      case "method":
        return { places: [], holdsSteps: useAll([node.object, ...node.arguments]) };
      case "array":
        return { places: [], holdsSteps: useAll(node.elements.map(({ value }) => value)) };
      case "object": {
        for (const member of node.members) {
          if (member.kind === "computed") use(visit(member.key));
        }
        return { places: [], holdsSteps: useAll(node.members.map(({ value }) => value)) };
      }
      case "unary":
        use(visit(node.operand));
        return nowhere;
      case "binary":
        warnNeverEqual(node);
        useAll([node.left, node.right]);
        return nowhere;
      case "text":
        useAll(node.values);
        return nowhere;
    }
  }

  function use({ places }: Origin): void {
    for (const place of places) reader.place(place);
  }

  /** Uses the values; says whether a value made of them may hold steps. */
  function useAll(nodes: readonly Node[]): boolean {
    const origins = nodes.map(visit);
    for (const origin of origins) use(origin);
    return origins.some(({ places, holdsSteps }) => holdsSteps || places.some(leadsToSteps));
  }

  function warnUnknown(place: Place, node: Node): void {
    const known = knownBelow(place);
    const key = place.path[place.path.length - 1] ?? "";
    if (known === undefined || known.includes(key)) return;
    const parent = [place.root, ...place.path.slice(0, -1)].join(".");
    const what = `${parent} has no ${JSON.stringify(key)}, this is always undefined; it has ${known.join(", ")}`;
    warn("UNKNOWN_PROPERTY", what, node.start);
  }

  function warnNeverEqual({ operator, left, right, start }: BinaryNode): void {
    const isEquality = operator === "===" || operator === "==";
    if (!undefinedNeverEqual || !isEquality) return;
    if (![left, right].some((side) => side.kind === "literal" && side.value === undefined)) return;
    warn("NEVER_EQUAL", "an equality with undefined is false here; use isDefined()", start);
  }

  function warn(code: Warning["code"], what: string, offset: number): void {
    warnings.push({ code, message: `${what} (${whereIn(source, offset)})`, offset });
  }
}

/** The one place a node reads, when it is a plain chain of properties below a root. */
export function placeOf(node: Node): Place | undefined {
  if (node.kind === "root") return { root: node.name, path: [] };
  if (node.kind !== "member") return undefined;
  const parent = placeOf(node.object);
  return parent && { root: parent.root, path: [...parent.path, node.key] };
}

interface Origin {
  readonly places: readonly Place[];
  /** The value was made here and may hold the steps, or something they are in, as a part. */
  readonly holdsSteps: boolean;
}

const nowhere: Origin = { places: [], holdsSteps: false };

function either(left: Origin, right: Origin): Origin {
  return {
    places: [...left.places, ...right.places],
    holdsSteps: left.holdsSteps || right.holdsSteps,
  };
}

/** Whether a place is the steps, or something that holds them. */
function leadsToSteps({ root, path }: Place): boolean {
  return stepsPlaces.some(
    (steps) => path.length < steps.length && [root, ...path].every((key, at) => key === steps[at]),
  );
}

const stepsPlaces: readonly (readonly string[])[] = [
  ["steps"],
  ["workflow", "steps"],
  ["workflow", "instance", "state", "steps"],
];

/** The keys a place of fixed shape has; undefined where data may be anything. */
function knownBelow({ root, path }: Place): readonly string[] | undefined {
  return fixedShapes.get([root, ...path.slice(0, -1)].join("."));
}

const fixedShapes: ReadonlyMap<string, readonly string[]> = new Map([
  ["workflow", ["input", "variables", "steps", "instance"]],
  ["workflow.instance.state", ["input", "variables", "steps"]],
  ["event", ["id", "pattern", "payload", "occurredAt", "receivedAt"]],
]);

const computedStepsText =
  "a step must be named in the source, as in steps.<id> or steps['<id>'], so that what is read is known beforehand";

/** Sorts places into what they mean. */
class ReadsCollector {
  readonly #roots = new Set<string>();
  readonly #steps = new Set<string>();
  readonly #outputs = new Set<string>();
  readonly #fields = new Set<string>();
  #allSteps = false;
  #progress = false;
  #allFields = false;
  #input = false;
  #variables = false;
  #instance = false;
  #now = false;

  root(name: string): void {
    this.#roots.add(name);
  }

  clock(): void {
    this.#now = true;
  }

  place({ root, path }: Place): void {
    if (root === "workflow") this.#workflow(path);
    else this.#state(root, path);
  }

  #workflow([key, ...rest]: readonly string[]): void {
    if (key === undefined) {
      this.#wholeState();
      this.#wholeInstance();
    } else if (key === "instance") this.#instanceField(rest);
    else this.#state(key, rest);
  }

  #instanceField([field, ...rest]: readonly string[]): void {
    this.#instance = true;
    if (field === undefined) {
      this.#wholeState();
      this.#wholeInstance();
      return;
    }
    this.#fields.add(field);
    if (field === "input") this.#input = true;
    if (field !== "state") return;
    const [part, ...below] = rest;
    if (part === undefined) this.#wholeState();
    else this.#state(part, below);
  }

  #state(part: string, path: readonly string[]): void {
    if (part === "input") this.#input = true;
    if (part === "variables") this.#variables = true;
    if (part === "steps") this.#step(path);
  }

  #step([id, field]: readonly string[]): void {
    if (field !== "output" && field !== "error") this.#progress = true;
    if (id === undefined) {
      this.#allSteps = true;
      return;
    }
    this.#steps.add(id);
    if (field === undefined || field === "output") this.#outputs.add(id);
  }

  #wholeState(): void {
    this.#input = true;
    this.#variables = true;
    this.#allSteps = true;
    this.#progress = true;
  }

  #wholeInstance(): void {
    this.#instance = true;
    this.#allFields = true;
  }

  reads(): Reads {
    return {
      roots: [...this.#roots].toSorted(),
      steps: this.#allSteps ? "ALL" : [...this.#steps].toSorted(),
      stepOutputs: [...this.#outputs].toSorted(),
      stepProgress: this.#progress,
      input: this.#input,
      variables: this.#variables,
      instance: this.#instance,
      instanceFields: this.#allFields ? "ALL" : [...this.#fields].toSorted(),
      event: this.#roots.has("event"),
      item: [...this.#roots].some((root) => !otherRoots.has(root)),
      now: this.#now,
    };
  }
}

const otherRoots: ReadonlySet<string> = new Set([
  "workflow",
  "input",
  "variables",
  "steps",
  "event",
]);
