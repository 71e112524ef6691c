/**
 * The id of a child instance: a UUIDv7 whose milliseconds are those of its start (CONTRACT 3) and whose
 * other bits depend on the text alone, so that a decision that is taken again names the same child.
 *
 * @param text Names the start among all starts: the parent's id, the execution and the attempt.
 */
export function childIdOf(text: string, at: Date): string {
  const [a, b, c] = hash128(text);
  const bits = at.getTime().toString(16).padStart(12, "0") + hex(a) + hex(b) + hex(c);
  const variant = "89ab"[c & 3] ?? "8";
  return [
    bits.slice(0, 8),
    bits.slice(8, 12),
    `7${bits.slice(12, 15)}`,
    variant + bits.slice(15, 18),
    bits.slice(18, 30),
  ].join("-");
}

function hex(word: number): string {
  return (word >>> 0).toString(16).padStart(8, "0");
}

/**
 * Four lanes that feed each other, so that no two texts of practice share their 128 bits: what is
 * mixed in with a character can be undone, and nothing is lost on the way. Then the last mixing of
 * MurmurHash3, as in `spread`, so that the last characters reach every bit.
 */
function hash128(text: string): readonly [number, number, number, number] {
  let [a, b, c, d] = [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344];
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    [a, b, c, d] = [
      b ^ Math.imul(a ^ code, 0x85ebca6b),
      c ^ Math.imul(b ^ code, 0xc2b2ae35),
      d ^ Math.imul(c ^ code, 0x27d4eb2f),
      a ^ Math.imul(d ^ code, 0x165667b1),
    ];
  }
  const sum = a ^ b ^ c ^ d;
  return [mixed(a ^ (sum >>> 9)), mixed(b + sum), mixed(c ^ (sum << 7)), mixed(d - sum)];
}

function mixed(word: number): number {
  const once = Math.imul(word ^ (word >>> 16), 0x85ebca6b);
  const twice = Math.imul(once ^ (once >>> 13), 0xc2b2ae35);
  return twice ^ (twice >>> 16);
}
