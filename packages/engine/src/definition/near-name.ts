/** Letters compared by one finder, over all its look-ups: some 20 ms. Then it suggests no more. */
const maxWork = 3_000_000;
const maxLength = 128;

export type NearName = (name: string) => string | undefined;

/**
 * Finds the known name that an unknown one most likely means: the nearest by edits, letters compared
 * without case, if it is near enough. In a document with very many names the last unknown ones get no
 * suggestion.
 */
export function nearNames(known: Iterable<string>): NearName {
  const names = [...known];
  const found = new Map<string, string | undefined>();
  const effort = { left: maxWork };
  return (name) => {
    if (!found.has(name)) found.set(name, nearest(name, names, effort));
    return found.get(name);
  };
}

/** Ends a message about an unknown name. */
export function didYouMean(near: string | undefined): string {
  return near === undefined ? "" : `; did you mean ${JSON.stringify(near)}?`;
}

interface Effort {
  left: number;
}

function nearest(name: string, known: readonly string[], effort: Effort): string | undefined {
  if (name.length > maxLength) return undefined;
  const wanted = name.toLowerCase();
  let best: string | undefined;
  // A third of the letters may differ; one in names of two or three; only its case in one letter.
  let bound = name.length < 2 ? 0 : Math.max(1, Math.floor(name.length / 3));
  for (const each of known) {
    if (effort.left <= 0) return best;
    const edits = distance(wanted, each.toLowerCase(), bound, effort);
    if (edits > bound) continue;
    best = each;
    bound = edits - 1;
    if (bound < 0) break;
  }
  return best;
}

/** Levenshtein's distance, or anything above `bound` once it is known to be above it. */
function distance(a: string, b: string, bound: number, effort: Effort): number {
  effort.left -= 1;
  if (Math.abs(a.length - b.length) > bound) return bound + 1;
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let row = 1; row <= a.length; row += 1) {
    effort.left -= b.length;
    const current = [row];
    let least = row;
    for (let column = 1; column <= b.length; column += 1) {
      const swapped = (previous[column - 1] ?? 0) + (a[row - 1] === b[column - 1] ? 0 : 1);
      const edited = Math.min((previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1, swapped);
      current.push(edited);
      least = Math.min(least, edited);
    }
    if (least > bound) return bound + 1;
    previous = current;
  }
  return previous[b.length] ?? 0;
}
