import { fileURLToPath } from "node:url";
import {
  closeServices,
  isCell,
  meetKeeper,
  openBeatThread,
  openMetricsOf,
  openServices,
  orphanMsOf,
  runProcess,
  runWorker,
  samplePool,
} from "@millrace/runtime";
import { readConfig, readEnvironment } from "./config.ts";

export const started = runProcess(async () => {
  const config = readConfig();
  const keeper = isCell() ? await meetKeeper() : undefined;
  const beat = openBeatThread(
    config.databaseUrl,
    keeper ? { orphanMs: orphanMsOf(config.graceMs), isKilled: false } : { isKilled: true },
  );
  const services = await openServices({ name: "worker", ...config, onCount: keeper?.count });
  samplePool(services);
  const worker = await runWorker(services, {
    ...config,
    beat,
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
