import type { Command } from "../command.ts";

/**
 * In the order in which help lists them. Only the command that is run is loaded: `dev` and `demo`
 * bring half the repository with them, which would make every other command slow.
 */
const LOADERS: Readonly<Record<string, () => Promise<Command>>> = {
  demo: async () => (await import("./demo.ts")).demo,
  dev: async () => (await import("./dev.ts")).dev,
  apply: async () => (await import("./apply.ts")).apply,
  simulate: async () => (await import("./simulate.ts")).simulate,
  start: async () => (await import("./start.ts")).start,
  event: async () => (await import("./event.ts")).event,
  ls: async () => (await import("./ls.ts")).ls,
  show: async () => (await import("./show.ts")).show,
  history: async () => (await import("./history.ts")).history,
  why: async () => (await import("./why.ts")).why,
  plan: async () => (await import("./plan.ts")).plan,
  pause: async () => (await import("./pause.ts")).pause,
  promote: async () => (await import("./promote.ts")).promote,
  resume: async () => (await import("./resume.ts")).resume,
  retry: async () => (await import("./retry.ts")).retry,
  cancel: async () => (await import("./cancel.ts")).cancel,
  schedules: async () => (await import("./schedules.ts")).schedules,
  limits: async () => (await import("./limits.ts")).limits,
  "dead-letters": async () => (await import("./dead-letters.ts")).deadLetters,
  doctor: async () => (await import("./doctor.ts")).doctor,
  api: async () => (await import("./serve.ts")).api,
  worker: async () => (await import("./serve.ts")).worker,
  scheduler: async () => (await import("./serve.ts")).scheduler,
  migrate: async () => (await import("./migrate.ts")).migrate,
};

export const commandNames: readonly string[] = Object.keys(LOADERS);

export async function loadCommand(name: string): Promise<Command | undefined> {
  return Object.hasOwn(LOADERS, name) ? LOADERS[name]?.() : undefined;
}

export async function loadCommands(): Promise<readonly Command[]> {
  return Promise.all(Object.values(LOADERS).map((load) => load()));
}
