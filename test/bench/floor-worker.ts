import { Worker } from "bullmq";
import { Redis } from "ioredis";
import pg from "pg";
import { entryBody, itemBody, updateMany } from "./floors.ts";

/**
 * A BullMQ worker for the floors. `empty` jobs do nothing. A `skeleton` job is a workflow of three
 * steps without an engine: three version-checked updates one after the other, those of concurrent jobs
 * grouped into statements on two connections.
 */
const [kind = "", redisUrl = "", databaseUrl = ""] = process.argv.slice(2);

const pool = new pg.Pool({ connectionString: databaseUrl, max: 2 });

interface Waiting {
  readonly id: number;
  readonly version: number;
  readonly done: () => void;
}
let waiting: Waiting[] = [];
let busy = 0;

function pump(): void {
  while (busy < 2 && waiting.length > 0) {
    const batch = waiting.slice(0, 200);
    waiting = waiting.slice(200);
    busy += 1;
    void send(batch).finally(() => {
      busy -= 1;
      pump();
    });
  }
}

async function send(batch: readonly Waiting[]): Promise<void> {
  const { rowCount } = await pool.query({
    ...updateMany,
    values: [
      batch.map(({ id }) => id),
      batch.map(({ version }) => version),
      batch.map(() => itemBody),
      batch.map(() => entryBody),
    ],
  });
  if (rowCount !== batch.length) throw new Error("an update did not find its version");
  for (const { done } of batch) done();
}

function update(id: number, version: number): Promise<void> {
  return new Promise((done) => {
    waiting.push({ id, version, done });
    if (waiting.length === 1) setImmediate(pump);
  });
}

let finished: number[] = [];
function tell(id: number): void {
  finished.push(id);
  if (finished.length > 1) return;
  setImmediate(() => {
    process.send?.(finished);
    finished = [];
  });
}

const worker = new Worker<{ readonly id: number }>(
  `floor-${kind}`,
  async ({ data: { id } }) => {
    if (kind === "skeleton") {
      for (let version = 0; version < 3; version++) await update(id, version);
    }
    tell(id);
  },
  { connection: new Redis(redisUrl, { maxRetriesPerRequest: null }), concurrency: 50 },
);
worker.on("error", (error) => {
  process.stderr.write(`${error.message}\n`);
});
process.on("disconnect", () => process.exit(0));
