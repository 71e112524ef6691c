// Each app in one file, out of what tsc has built: a process that has to find and read a thousand files
// takes three times as long to start. Nothing is minified, so that stack traces can be read, and there are
// no source maps, which Node would read at every start: 60 ms and 33 MB.
import { existsSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

const apps = ["api", "cli", "scheduler", "worker"];

/** Programs of threads: not one bundle with their apps, since they must load nothing but what they need. */
const threads = { worker: ["packages/store/dist/beat-thread.js"] };

const external = [
  // Each app is a program by itself.
  /^@millrace\/(api|scheduler|worker)\/main$/,
  // Native, and optional.
  "msgpackr-extract",
  "pg-native",
];

const built = newest(["packages", "apps"].flatMap(projects).map((path) => join(path, "dist")));
await Promise.all(apps.map(bundleApp));

/** Writes `apps/<name>/bundle`, where there is none that is as new as the build. */
async function bundleApp(app) {
  const folder = join(root, "apps", app, "bundle");
  if (newest([folder]) > built) return;
  const { rolldown } = await import("rolldown");
  const bundle = async (file) => {
    const bundled = await rolldown({ input: join(root, file), external, platform: "node" });
    await bundled.write({ dir: folder, format: "esm" });
    await bundled.close();
  };
  rmSync(folder, { recursive: true, force: true });
  for (const file of threads[app] ?? []) await bundle(file);
  await bundle(`apps/${app}/dist/main.js`);
}

function projects(group) {
  const folder = join(root, group);
  return readdirSync(folder).map((name) => join(folder, name));
}

/** When the last of the files below the folders was written. */
function newest(folders) {
  const files = folders.filter(existsSync).flatMap((folder) =>
    readdirSync(folder, { recursive: true })
      .filter((name) => name.endsWith(".js"))
      .map((name) => join(folder, name)),
  );
  return Math.max(0, ...files.map((file) => statSync(file).mtimeMs));
}
