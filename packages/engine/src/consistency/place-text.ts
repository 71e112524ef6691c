/** An execution in words: its path, and the pass where it is not the first. */
export function placeText({ path, iteration }: { path: string; iteration: number }): string {
  return iteration > 1 ? `step ${path} (pass ${iteration})` : `step ${path}`;
}
