import {
  closeServices,
  openMetricsOf,
  openServices,
  runProcess,
  runScheduler,
  samplePool,
} from "@millrace/runtime";
import { readConfig } from "./config.ts";

export const started = runProcess(async () => {
  const config = readConfig();
  const services = await openServices({ name: "scheduler", ...config });
  samplePool(services);
  const scheduler = await runScheduler(services, config);
  const metrics = await openMetricsOf(services, config);
  return {
    log: services.log,
    settings: config,
    async close() {
      await scheduler.close();
      await metrics?.close();
      await closeServices(services);
    },
    resign: () => services.database.resign(),
  };
});
