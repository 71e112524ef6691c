import { fileURLToPath } from "node:url";
import {
  closeServices,
  isCell,
  openMetricsOf,
  openServices,
  runProcess,
  runWorker,
  samplePool,
} from "@millrace/runtime";
import { readConfig, readEnvironment } from "./config.ts";

await runProcess(async () => {
  const config = readConfig();
  const services = await openServices({ name: "worker", ...config });
  samplePool(services);
  const worker = await runWorker(services, {
    ...config,
    ...(isCell()
      ? { isCell: true }
      : { program: { file: fileURLToPath(import.meta.url), env: readEnvironment() } }),
  });
  const metrics = await openMetricsOf(services, config);
  return {
    log: services.log,
    settings: config,
    isHost: true,
    endsWithParent: isCell(),
    async close() {
      await worker.close();
      await metrics?.close();
      await closeServices(services);
    },
  };
});
