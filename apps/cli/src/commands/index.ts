import type { Command } from "../command.ts";
import { apply } from "./apply.ts";
import { cancel } from "./cancel.ts";
import { demo } from "./demo.ts";
import { dev } from "./dev.ts";
import { event } from "./event.ts";
import { history } from "./history.ts";
import { ls } from "./ls.ts";
import { migrate } from "./migrate.ts";
import { api, scheduler, worker } from "./serve.ts";
import { show } from "./show.ts";
import { start } from "./start.ts";

/** In the order in which help lists them. */
export const commands: readonly Command[] = [
  demo,
  dev,
  apply,
  start,
  event,
  ls,
  show,
  history,
  cancel,
  api,
  worker,
  scheduler,
  migrate,
];
