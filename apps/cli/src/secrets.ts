/** A connection URL as it may be shown. */
export function withoutPassword(url: string): string {
  if (!URL.canParse(url)) return "the database";
  const parsed = new URL(url);
  if (parsed.password) parsed.password = "***";
  return parsed.href;
}
