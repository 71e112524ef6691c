import type { SETTINGS } from "@millrace/runtime";

/** Path of each document → its content. */
export function settingsDocuments(settings: typeof SETTINGS): Readonly<Record<string, string>>;
