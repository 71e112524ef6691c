// Starts a cell when this process may open no more files, and says what came of it.
import { openSync } from "node:fs";
import { openCell } from "../../dist/worker/cell-process.js";

const file = process.argv[2];
try {
  for (;;) openSync("/dev/null", "r");
} catch {
  // None are left.
}
const cell = openCell({ file, options: [], env: process.env }, () => {});
console.log(JSON.stringify([await cell.ready, await cell.exited, cell.isOver]));
process.exit();
