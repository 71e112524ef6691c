import { fileURLToPath } from "node:url";
import {
  closeServices,
  isCell,
  meetKeeper,
  openMetricsOf,
  openServices,
  runProcess,
  runWorker,
  samplePool,
} from "@millrace/runtime";
import { readConfig, readEnvironment } from "./config.ts";

export const started = runProcess(async () => {
  const config = readConfig();
  const keeper = isCell() ? await meetKeeper() : undefined;
  const services = await openServices({ name: "worker", ...config, onCount: keeper?.count });
  samplePool(services);
  const worker = await runWorker(services, {
    ...config,
    ...(keeper
      ? { keeper }
      : {
          program: {
            file: fileURLToPath(import.meta.url),
            options: process.execArgv,
            env: readEnvironment(),
          },
        }),
  });
  const metrics = await openMetricsOf(services, config);
  return {
    log: services.log,
    settings: config,
    isHost: true,
    keeper,
    async close() {
      await worker.close();
      await metrics?.close();
      await closeServices(services);
    },
    resign: () => services.database.resign(),
  };
});
