export { driveOrder, type DriveOptions, type Outcome } from "./drive.ts";
export { orderTasksFolder, readOrderDefinition } from "./example.ts";
export {
  differencesOf,
  type Expectation,
  expectationOf,
  type StepExpectation,
} from "./expectations.ts";
export {
  type Order,
  ORDER_PATHS,
  type OrderOptions,
  type OrderPath,
  orderPaths,
  planOrders,
} from "./orders.ts";
export { stepsByWorker } from "./report.ts";
export { openWatch, type Watch, type WatchOptions } from "./watch.ts";
