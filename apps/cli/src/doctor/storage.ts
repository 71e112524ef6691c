import type { FaultyDefinition, Leftover } from "@millrace/store";
import type { Check } from "./check.ts";

/**
 * What no instance tells of, which takes a look at whole tables: rows of instances that are gone, and
 * definition versions that are not what was registered.
 */
export async function checkStorage(url: string, repair: boolean): Promise<readonly Check[]> {
  // Loaded for this alone: all other commands start without a database driver.
  const store = await import("@millrace/store");
  const { db, close } = await store.openDatabase({ url, poolSize: 1 });
  try {
    const left = await (repair ? store.deleteLeftovers(db) : store.findLeftovers(db));
    const faulty = await store.findFaultyDefinitions(db);
    return [
      leftovers(left, repair),
      definitionVersions(faulty),
      startKeys(await store.countKeysWithoutInstance(db)),
    ];
  } finally {
    await close();
  }
}

function leftovers(left: readonly Leftover[], isRepaired: boolean): Check {
  const name = "leftovers";
  if (left.length === 0)
    return { name, status: "OK", detail: "no rows of instances that are gone" };
  const told = left.map(({ table, rows, instanceId }) => `${rows} in ${table} (${instanceId}, …)`);
  const detail = `rows of instances that are gone: ${told.join(", ")}`;
  if (isRepaired) return { name, status: "OK", detail: `deleted ${detail}` };
  const advice =
    "With --repair they are deleted. To keep them, restore the instances from a backup.";
  return { name, status: "WARNING", detail, advice };
}

function definitionVersions(faulty: readonly FaultyDefinition[]): Check {
  const name = "versions";
  if (faulty.length === 0) {
    return { name, status: "OK", detail: "definition versions are as they were registered" };
  }
  const told = faulty.map(({ id, version, instances, fault }) => {
    const what = fault === "MISSING" ? "is not stored" : "has another document than was registered";
    return `version ${version} of ${id} ${what} (${instances} live instances)`;
  });
  const advice =
    "Restore the rows from a backup and restart all processes: registering again makes another version.";
  return { name, status: "FAILED", detail: told.join(", "), advice };
}

function startKeys(count: number): Check {
  const detail =
    count === 0
      ? "each names an instance that is stored"
      : `${count} name instances that are gone: a start repeated with one is answered 404`;
  return { name: "start keys", status: "OK", detail };
}
