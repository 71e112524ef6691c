/** Ours: what calls the code of users is in the folder of this file, or bundled into one with it. */
const ours = new URL(".", import.meta.url).href;

/** So many say where it was. */
const mostFrames = 5;

/**
 * The lines of a stack that are in modules of users, innermost first: none of Node's, and none of ours, which
 * have called them. Empty for an error that came from elsewhere.
 *
 * @param above Of a longer stack only what is below the line that this matches.
 */
export function ownFrames({ stack = "" }: Error, above?: RegExp): readonly string[] {
  const lines = stack.split("\n");
  const frames = lines.slice(above ? lines.findIndex((line) => above.test(line)) + 1 : 0);
  const end = frames.findIndex((line) => line.includes(ours));
  return (end < 0 ? frames : frames.slice(0, end))
    .filter((line) => /^ +at .*file:\/\//.test(line))
    .slice(0, mostFrames);
}
