// A task that goes on for an hour whatever it is told, and keeps no process up that wants to end.
export const stubborn = {
  id: "stubborn",
  run: () => new Promise((resolve) => void setTimeout(resolve, 3_600_000).unref()),
};

// One that asks for a process for each of its runs, and answers which one it has got.
export const ownProcess = { id: "own_process", isolated: true, run: () => process.pid };
