/** What the environment tells `profiler.ts`; the only place of the benchmarks that sees it. */
export function profileTarget(): string | undefined {
  return process.env["BENCH_PROFILE_FOLDER"];
}
