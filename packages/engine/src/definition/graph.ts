// Questions about a directed graph whose nodes are 0 … n-1 and whose edges are lists of successors.
// All of them take time in proportion to nodes and edges and keep their own stacks: a definition may
// chain ten thousand steps.

export type Graph = readonly (readonly number[])[];

/** For each node whether it can be reached from `start`, which can. */
export function reachable(graph: Graph, start: number): boolean[] {
  const seen = graph.map(() => false);
  const stack = [start];
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if (seen[node] !== false) continue;
    seen[node] = true;
    stack.push(...(graph[node] ?? []));
  }
  return seen;
}

/**
 * The strongly connected components that hold a cycle: more than one node, or one that leads to
 * itself. Nodes come in ascending order (Tarjan, with the recursion unrolled).
 */
export function cyclicComponents(graph: Graph): number[][] {
  const order = graph.map(() => -1);
  const lowest = graph.map(() => -1);
  const onPath = graph.map(() => false);
  const path: number[] = [];
  const components: number[][] = [];
  let visited = 0;

  const enter = (node: number): { node: number; next: number } => {
    order[node] = lowest[node] = visited;
    visited += 1;
    onPath[node] = true;
    path.push(node);
    return { node, next: 0 };
  };

  for (const root of graph.keys()) {
    if (order[root] !== -1) continue;
    const frames = [enter(root)];
    for (let frame = frames.at(-1); frame !== undefined; frame = frames.at(-1)) {
      const { node } = frame;
      const target = graph[node]?.[frame.next];
      frame.next += 1;
      if (target !== undefined) {
        if (order[target] === -1) frames.push(enter(target));
        else if (onPath[target]) lowest[node] = Math.min(at(lowest, node), at(order, target));
        continue;
      }
      frames.pop();
      const parent = frames.at(-1)?.node;
      if (parent !== undefined) lowest[parent] = Math.min(at(lowest, parent), at(lowest, node));
      if (lowest[node] !== order[node]) continue;
      const component = path.splice(path.lastIndexOf(node));
      for (const member of component) onPath[member] = false;
      if (component.length > 1 || graph[node]?.includes(node)) {
        components.push(component.toSorted((a, b) => a - b));
      }
    }
  }
  return components.toSorted((a, b) => at(a, 0) - at(b, 0));
}

function at(values: readonly number[], index: number): number {
  return values[index] ?? -1;
}
