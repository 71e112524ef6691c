import { type Environment, parseSettings, type Settings } from "@millrace/runtime";

/** @throws SettingsError with every problem at once. */
export function readConfig(): Settings {
  return parseSettings(process.env, "worker");
}

/** With which the processes are started that this one starts. */
export function readEnvironment(): Environment {
  return process.env;
}
