// Each app in one file, out of what tsc has built: a process that has to find and read a thousand files
// takes three times as long to start. Nothing is minified, so that stack traces can be read, and there are
// no source maps, which Node would read at every start: 60 ms and 33 MB.
import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

const apps = ["api", "cli", "scheduler", "worker"];

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

const made = newest([
  ...["packages", "apps"].flatMap(projects).flatMap((path) => filesBelow(join(path, "dist"))),
  join(root, "package-lock.json"),
  fileURLToPath(import.meta.url),
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
  const bundle = async (file) => {
    const bundled = await rolldown({
      input: join(root, file),
      external,
      platform: "node",
      transform: { define },
    });
    await bundled.write({ dir: aside, format: "esm" });
    await bundled.close();
  };
  for (const file of threads[app] ?? []) await bundle(file);
  await bundle(`apps/${app}/dist/main.js`);
  // Either may fail: there is none yet, or somebody else has made the same meanwhile.
  move(folder, `${aside}-old`, "ENOENT");
  move(aside, folder, "ENOTEMPTY");
  for (const left of [aside, `${aside}-old`]) rmSync(left, { recursive: true, force: true });
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
