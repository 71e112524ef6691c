// A cell without a database: what it does with a step is the id of the task.
import { closeSync, openSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { meetKeeper, takeFromKeeper } from "../../dist/worker/cell.js";

const channel = 3;
const never = new Promise(() => {});
const forged = (message) => writeSync(channel, `${JSON.stringify(message)}\n`);

const deeds = {
  complete: () =>
    keeper.count({ metric: "steps", labels: { send: typeof process.send }, value: 1 }),
  async forge() {
    writeSync(channel, 'no message\n{"kind":"nobody knows"}\nnull\n7\nhalf a line');
    forged({ kind: "begun", workerId: "forged" });
    forged({ kind: "free", counts: [], isHaunted: false, token: "forged" });
    keeper.count({ metric: "steps", labels: {}, value: 1 });
  },
  async closeChannel() {
    closeSync(channel);
    await never;
  },
  async flood() {
    for (;;) {
      try {
        writeSync(channel, "x".repeat(50_000));
      } catch (error) {
        // Full, since whoever reads it is slow.
        if (error.code !== "EAGAIN") await never;
      }
      await sleep(5);
    }
  },
  crash: () => process.kill(process.pid, "SIGSEGV"),
  async allocate() {
    // What V8 has to say is no news here.
    closeSync(2);
    openSync("/dev/null", "w");
    const kept = [];
    for (;;) {
      kept.push(Array.from({ length: 1_000_000 }, () => Math.random()));
      await sleep(20);
    }
  },
  stand: () => process.kill(process.pid, "SIGSTOP"),
};

const keeper = await meetKeeper();
takeFromKeeper(keeper, { id: "worker" }, async ({ taskId }) => ({ ended: deeds[taskId]() }));
keeper.tell({ kind: "ready" });
await keeper.ended;
process.exit();
