/**
 * Options of Node for a process that this one starts. Whoever debugs this one passes `--inspect-brk`, perhaps in
 * `NODE_OPTIONS`; with it every such process would stand still for a debugger that does not come. Those that
 * come last count.
 */
export const noInspector = ["--no-inspect", "--no-inspect-brk", "--no-inspect-wait"] as const;
