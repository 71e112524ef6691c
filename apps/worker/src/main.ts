import {
  closeServices,
  openMetricsOf,
  openServices,
  runProcess,
  runWorker,
  samplePool,
} from "@millrace/runtime";
import { readConfig } from "./config.ts";

await runProcess(async () => {
  const config = readConfig();
  const services = await openServices({ name: "worker", ...config });
  samplePool(services);
  const worker = await runWorker(services, config);
  const metrics = await openMetricsOf(services, config);
  return {
    log: services.log,
    settings: config,
    isHost: true,
    async close() {
      await worker.close();
      await metrics?.close();
      await closeServices(services);
    },
  };
});
