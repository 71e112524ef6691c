import {
  closeServices,
  openServices,
  runProcess,
  sampleInstallation,
  samplePool,
  sampleWaitingCalls,
} from "@millrace/runtime";
import { createApp } from "./app.ts";
import { bindRuntime } from "./bind.ts";
import { readConfig } from "./config.ts";
import { answerMeanwhile } from "./waiting-room.ts";

export const started = runProcess(async () => {
  const config = readConfig();
  const { host, port, queues } = config;
  const services = await answerMeanwhile({ host, port }, () =>
    openServices({ name: "api", ...config }),
  );
  const { log, metrics } = services;
  samplePool(services);
  sampleWaitingCalls(services);
  sampleInstallation(services, queues);
  const app = await createApp({
    runtime: bindRuntime(services),
    log,
    onAnswered: ({ method, route, status, seconds }) =>
      metrics.httpRequests.observe({ method, route, status }, seconds),
  });
  const url = await app.http.listen({ host, port });
  log.info({ url }, "the API listens");
  return {
    log,
    settings: config,
    async close() {
      await app.close();
      await closeServices(services);
    },
    resign: () => services.database.resign(),
  };
});
