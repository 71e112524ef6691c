/**
 * A connection URL as it may be shown.
 *
 * @param mask What stands for the password; with an empty one nothing does.
 */
export function withoutPassword(url: string, mask = "***"): string {
  if (!URL.canParse(url)) return "the database";
  const parsed = new URL(url);
  if (parsed.password) parsed.password = mask;
  return parsed.href;
}
