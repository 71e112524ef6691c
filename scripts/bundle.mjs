// Each app in one file, out of what tsc has built: a process that has to find and read a thousand files
// takes three times as long to start. Nothing is minified, so that stack traces can be read, and there are
// no source maps, which Node would read at every start: 60 ms and 33 MB.
import { execFile } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const root = fileURLToPath(new URL("..", import.meta.url));

const apps = ["api", "cli", "scheduler", "worker"];

/** All of it is needed at every start, so it is kept compiled as well: see `start.mjs`. */
const compiled = ["api", "scheduler", "worker"];
const compile = join(root, "scripts/compile.mjs");
const start = join(root, "scripts/start.mjs");

/** Programs of threads: not one bundle with their apps, since they must load nothing but what they need. */
const threads = {
  api: ["packages/runtime/dist/definitions/simulation-thread.js"],
  worker: ["packages/store/dist/beat-thread.js"],
};

const external = [
  // Each app is a program by itself.
  /^@millrace\/(api|scheduler|worker)\/main$/,
  // Native, and optional.
  "msgpackr-extract",
  "pg-native",
];

// pg asks by this whether it runs at Cloudflare, and where there is none by a Response: loading what
// Node fetches with takes 40 ms of every start.
const define = { "navigator.userAgent": JSON.stringify("Node.js"), navigator: "globalThis" };

/** Code that comes from a cache can import nothing, so what imports the modules of tasks stays out of it. */
const compilable = {
  format: "cjs",
  entryFileNames: "[name].cjs",
  chunkFileNames: "[name].cjs",
  codeSplitting: { groups: [{ name: "import-module", test: /\/import-module\.js$/ }] },
};

const made = newest([
  ...["packages", "apps"].flatMap(projects).flatMap((path) => filesBelow(join(path, "dist"))),
  join(root, "package-lock.json"),
  fileURLToPath(import.meta.url),
  compile,
  start,
]);
await Promise.all(apps.map(bundleApp));

/**
 * Writes `apps/<name>/bundle`, where there is none that is as new as what it is made of. It takes its place
 * whole, so that nobody finds half of it, whoever is killed.
 */
async function bundleApp(app) {
  const folder = join(root, "apps", app, "bundle");
  if (newest([join(folder, "main.js")]) > made) return;
  const { rolldown } = await import("rolldown");
  const aside = mkdtempSync(join(root, "node_modules", `.bundle-${app}-`));
  const bundle = async (input, output) => {
    const bundled = await rolldown({ input, external, platform: "node", transform: { define } });
    await bundled.write({ dir: aside, ...output });
    await bundled.close();
  };
  for (const file of threads[app] ?? []) await bundle(join(root, file), { format: "esm" });
  const main = join(root, "apps", app, "dist/main.js");
  if (compiled.includes(app)) {
    await bundle({ program: main }, compilable);
    makeCompilable(join(aside, "program.cjs"));
    copyFileSync(start, join(aside, "main.js"));
    const name = `apps/${app}/bundle/program.cjs`;
    await promisify(execFile)(process.execPath, [compile, aside, name], { env: {} });
  } else {
    await bundle(main, { format: "esm" });
  }
  // Either may fail: there is none yet, or somebody else has made the same meanwhile.
  move(folder, `${aside}-old`, "ENOENT");
  move(aside, folder, "ENOTEMPTY");
  for (const left of [aside, `${aside}-old`]) rmSync(left, { recursive: true, force: true });
}

/**
 * As a function of what CommonJS gives to a module, and strict, as all that was one before is. In ASCII alone,
 * which is read without decoding it, and held in half the memory: outside strings there is nothing else.
 */
function makeCompilable(file) {
  const parameters = "exports, require, module, __filename, __dirname";
  const source = `(function (${parameters}) { "use strict"; ${readFileSync(file, "utf8")}\n})`;
  const escaped = source.replaceAll(
    /[^\0-\x7f]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  writeFileSync(file, escaped);
}

function move(from, to, tolerated) {
  try {
    renameSync(from, to);
  } catch (error) {
    if (error.code !== tolerated) throw error;
  }
}

function projects(group) {
  const folder = join(root, group);
  return readdirSync(folder).map((name) => join(folder, name));
}

function filesBelow(folder) {
  if (!existsSync(folder)) return [];
  const names = readdirSync(folder, { recursive: true });
  return names.filter((name) => name.endsWith(".js")).map((name) => join(folder, name));
}

/** When the last of the files was written; 0 where there is none. */
function newest(files) {
  return Math.max(0, ...files.filter(existsSync).map((file) => statSync(file).mtimeMs));
}
