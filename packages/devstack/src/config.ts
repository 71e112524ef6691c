/**
 * What a child process inherits from this one. The only place of the package that sees the
 * environment: what a child is told beyond it is passed explicitly.
 */
export function inheritedEnvironment(): NodeJS.ProcessEnv {
  return { ...process.env };
}

/** The folders in which programs are looked for. */
export function programFolders(): readonly string[] {
  const separator = process.platform === "win32" ? ";" : ":";
  return (process.env["PATH"] ?? "").split(separator).filter((folder) => folder !== "");
}
