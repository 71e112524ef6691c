import { constants, setPriority } from "node:os";

/** What runs beside this process comes before it. */
setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
