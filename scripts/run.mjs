// The entry of `npm run demo`, `test`, `bench` and `test:chaos`: sets up what is missing, then hands
// over to the built program. Built-in modules only, since in a bare clone there is nothing else.
import { spawn } from "node:child_process";
import fs, { existsSync, readdirSync, readFileSync } from "node:fs";
import { constants } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

const verbs = {
  /** Installs and builds, nothing more. */
  build: async () => {},

  demo: (args) => node(join(root, "apps/cli/bin/millrace.js"), "demo", ...args),

  test: async (args) => {
    const { howToGetRedis, installRedisOnDebian } = await import(
      pathToFileURL(join(root, "packages/devstack/dist/index.js")).href
    );
    if (!process.env.REDIS_URL && !installRedisOnDebian(say)) {
      throw new Failure(`The tests need a real Redis: ${howToGetRedis}.`);
    }
    await buildChaos();
    const vitest = ["--enable-source-maps", tool("vitest", "vitest.mjs"), "run", ...args];
    await run(process.execPath, vitest, { ...testsOfWhatIsBuilt, ...foldersInMemory() });
  },

  chaos: async (args) => {
    await buildChaos();
    await node(join(root, "test/chaos/dist/chaos/run.js"), ...args);
  },

  // The benchmarks are TypeScript with a project of their own, built on top of the packages.
  bench: async (args) => {
    await node(tool("typescript", "bin/tsc"), "-b", "test/bench");
    await node(join(root, "test/bench/dist/main.js"), ...args);
  },

  // Turbo reports on its use unless the environment forbids it; there is no setting for that.
  turbo: (args) => run(process.execPath, [tool("turbo", "bin/turbo"), ...args], quietTurbo),
};

const quietTurbo = { TURBO_TELEMETRY_DISABLED: "1", DO_NOT_TRACK: "1" };

/** Tests load what has just been built, instead of compiling the sources once more (vitest.config.ts). */
const testsOfWhatIsBuilt = { MILLRACE_TEST_BUILT: "1" };

/**
 * Where the folders of tests go, clusters of Postgres above all: a hundred databases are made and dropped, and a
 * file system on a disk takes three times as long for their files. They come to a quarter of a gigabyte.
 */
function foldersInMemory() {
  const { TMPDIR, MILLRACE_TEST_DURABLE, MILLRACE_TEST_KEEP } = process.env;
  if (TMPDIR || MILLRACE_TEST_DURABLE || MILLRACE_TEST_KEEP) return {};
  const path = "/dev/shm";
  const gigabyte = 2 ** 30;
  if (!existsSync(path) || process.availableMemory() < 6 * gigabyte) return {};
  const { bavail, bsize } = fs.statfsSync(path);
  return bavail * bsize < 2 * gigabyte ? {} : { TMPDIR: path };
}

class Failure extends Error {
  constructor(message, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

main(process.argv[2], process.argv.slice(3)).catch((error) => {
  if (!(error instanceof Failure)) throw error;
  if (error.message) process.stderr.write(`${error.message}\n`);
  process.exitCode = error.exitCode;
});

async function main(verb, args) {
  checkNode();
  if (!Object.hasOwn(verbs, verb)) {
    throw new Failure(`usage: node scripts/run.mjs ${Object.keys(verbs).join("|")} [arguments]`, 2);
  }
  await install();
  await build();
  await verbs[verb](args);
}

function checkNode() {
  const { engines } = readJson("package.json");
  const wanted = /\d+\.\d+/.exec(engines.node)[0].split(".").map(Number);
  const actual = process.versions.node.split(".").map(Number);
  if (actual[0] > wanted[0] || (actual[0] === wanted[0] && actual[1] >= wanted[1])) return;
  throw new Failure(
    `Millrace needs Node.js ${wanted.join(".")} or later, and this is ${process.versions.node}.\n` +
      "A newer one is at https://nodejs.org, or: nvm install 22.",
  );
}

/** `npm ci`, unless what is installed is what the lock file says. */
async function install() {
  if (isInstalled()) return;
  say("Installing the dependencies (npm ci), once …");
  // Under `npm run`, npm says where it is; that one is used, whatever is on the PATH.
  const npm = process.env.npm_execpath;
  const args = ["ci", "--include=dev", "--no-audit", "--no-fund"];
  if (npm && /\.c?js$/.test(npm)) await run(process.execPath, [npm, ...args]);
  else await run(process.platform === "win32" ? "npm.cmd" : "npm", args);
}

function isInstalled() {
  if (!existsSync(join(root, "node_modules/.package-lock.json"))) return false;
  const installed = readJson("node_modules/.package-lock.json").packages;
  return Object.entries(readJson("package-lock.json").packages).every(([path, entry]) => {
    // Optional packages are those of other platforms, as a rule; the root is not listed.
    if (!path.startsWith("node_modules/") || entry.optional) return true;
    return installed[path] !== undefined && installed[path].version === entry.version;
  });
}

/** The packages, and the apps in one file each; not the tests, which are compiled only to check their types. */
async function build() {
  const projects = ["packages", "apps"]
    .flatMap((group) => readdirSync(join(root, group)).map((name) => join(group, name)))
    .filter((folder) => existsSync(join(root, folder, "tsconfig.json")));
  await node(tool("typescript", "bin/tsc"), "-b", ...projects);
  await node(join(root, "scripts/bundle.mjs"));
}

/** The chaos run, like the benchmarks, is a project of its own on top of the packages. */
function buildChaos() {
  return node(tool("typescript", "bin/tsc"), "-b", "test/chaos");
}

function tool(name, file) {
  return join(root, "node_modules", name, file);
}

function node(file, ...args) {
  return run(process.execPath, ["--enable-source-maps", file, ...args]);
}

/**
 * Runs a program to its end, passing signals on. At Ctrl-C the terminal tells the child as well, so
 * it may hear of it twice; what matters is that this process outlives it.
 */
async function run(command, args, env = {}) {
  const child = spawn(command, args, {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, ...env },
    shell: command.endsWith(".cmd"),
  });
  const pass = (signal) => child.kill(signal);
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
  for (const signal of signals) process.on(signal, pass);
  const [code, signal] = await new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (...exit) => resolve(exit));
  });
  for (const name of signals) process.off(name, pass);
  if (code !== 0) throw new Failure("", code ?? 128 + constants.signals[signal]);
}

function readJson(path) {
  return JSON.parse(readFileSync(join(root, path), "utf8"));
}

function say(line) {
  process.stderr.write(`${line}\n`);
}
