import { writeFileSync } from "node:fs";
import { Session } from "node:inspector";
import { isMainThread } from "node:worker_threads";
import { profileTarget } from "./config.ts";

// Loaded into a process by `--import`: writes a CPU profile of its whole life when it ends.
const folder = profileTarget();
if (folder !== undefined && isMainThread) {
  const session = new Session();
  session.connect();
  session.post("Profiler.enable");
  session.post("Profiler.setSamplingInterval", { interval: 500 });
  session.post("Profiler.start");
  process.once("exit", () => {
    session.post("Profiler.stop", (error, answer) => {
      if (error !== null) return;
      const program = /apps\/(\w+)/.exec(process.argv[1] ?? "")?.[1] ?? "process";
      writeFileSync(
        `${folder}/${program}-${process.pid}.cpuprofile`,
        JSON.stringify(answer.profile),
      );
    });
  });
}
