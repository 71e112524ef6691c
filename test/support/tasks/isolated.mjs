// The witness in a process for each run, which also says what it is by all other means that a task has.
import { witness } from "./witness.mjs";

export const isolated = {
  id: "isolated",
  isolated: true,
  async run(context, input) {
    const { logger, instance, heartbeat } = context;
    logger.info({ workflow: instance.workflowId }, "an isolated task runs");
    heartbeat({ pid: process.pid });
    return witness.run(context, input);
  },
};
