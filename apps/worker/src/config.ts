import { parseSettings, type Settings } from "@millrace/runtime";

/** @throws SettingsError with every problem at once. */
export function readConfig(): Settings {
  return parseSettings(process.env, "worker");
}
