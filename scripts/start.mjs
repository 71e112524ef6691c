// `apps/<name>/bundle/main.js`: starts the program beside it from its compiled form. Where this Node cannot take
// that, being another one than has built it, the program is compiled anew: a quarter of what its start takes.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { Script } from "node:vm";
import { crc32 } from "node:zlib";

// Whoever is asked to end while it loads hears of it from here on: the event waits for whom the program has listen
// (run-process.ts), since nothing below lets it come earlier. Without a listener the process would die of it.
for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => {});

const beside = (name) => fileURLToPath(new URL(name, import.meta.url));

/** Undefined where it was left out of a copy of the folder, is kept from who runs it, or is not as it was built. */
function compiled() {
  try {
    const stored = readFileSync(beside("program.cache"));
    const form = stored.subarray(0, -4);
    return crc32(form) === stored.readUInt32LE(form.length) ? form : undefined;
  } catch {
    return undefined;
  }
}

const run = new Script(readFileSync(beside("program.cjs"), "latin1"), {
  filename: beside("program.cjs"),
  cachedData: compiled(),
}).runInThisContext();
const module = { exports: {} };
run(module.exports, createRequire(import.meta.url), module, beside("main.js"), beside("."));
await module.exports.started;
