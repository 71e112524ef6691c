// node scripts/compile.mjs <folder> <name>: keeps `program.cjs` of the folder in its compiled form beside it, for
// `start.mjs`. It runs the program without settings, which it refuses when all of it is loaded (exit code 2): what
// ran by then is what every start runs. Stack traces will call it by the name, which is a part of the form.
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import v8 from "node:v8";
import { Script } from "node:vm";
import { crc32 } from "node:zlib";

const [folder, name] = process.argv.slice(2);
const main = join(folder, "main.js");

// A form is taken only under the flags under which it was made, and a program that starts changes some.
v8.setFlagsFromString = () => {};

const script = new Script(readFileSync(join(folder, "program.cjs"), "latin1"), { filename: name });
process.once("exit", (code) => {
  if (code !== 2) return;
  // V8 takes a form that was damaged, and ends by it.
  const form = script.createCachedData();
  const sum = Buffer.alloc(4);
  sum.writeUInt32LE(crc32(form));
  writeFileSync(join(folder, "program.cache"), Buffer.concat([form, sum]));
  process.exitCode = 0;
});
const module = { exports: {} };
script.runInThisContext()(module.exports, createRequire(main), module, main, folder);
