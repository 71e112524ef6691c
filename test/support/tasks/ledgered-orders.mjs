// The tasks of the example `order_processing`, each of which ends by telling the ledger what it
// came to: its output names the record, so that it can be seen which run's outcome was stored.
import * as orders from "../../../examples/order-processing/tasks/order-tasks.mjs";
import { tell } from "./witness.mjs";

export const tasks = Object.values(orders).map((task) => ({
  ...task,
  async run(context, input) {
    const output = await task.run(context, input);
    return { ...output, record: await tell(context, { kind: "outcome" }) };
  },
}));
