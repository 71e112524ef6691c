import { MillraceClient } from "@millrace/client";

const atOnce = 8;

/**
 * Has an API check its instances, and throws what it finds: a run leaves nothing to be found, whatever
 * has died in it.
 *
 * @param most Instances that are checked, the latest first.
 */
export async function expectConsistent(apiUrl: string, most = 500): Promise<void> {
  const { instances } = new MillraceClient({ baseUrl: apiUrl });
  const ids: string[] = [];
  for await (const { id } of instances.each()) {
    ids.push(id);
    if (ids.length >= most) break;
  }
  const found: string[] = [];
  const lane = async () => {
    for (let id = ids.pop(); id !== undefined; id = ids.pop()) {
      const { findings } = await instances.consistency(id);
      found.push(...findings.map(({ code, message }) => `${id} ${code}: ${message}`));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  if (found.length > 0) throw new Error(`not consistent:\n  ${found.slice(0, 20).join("\n  ")}`);
}
