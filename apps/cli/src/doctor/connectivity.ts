import type { MillraceClient } from "@millrace/client";
import type { ReadinessView } from "@millrace/contract";
import { pendingMigrations } from "@millrace/devstack";
import { messageOf } from "../errors.ts";
import { withoutPassword } from "../secrets.ts";
import type { Check } from "./check.ts";
import { checkStorage } from "./storage.ts";

/** Whether the database answers from here, has the schema of this release, and nothing that belongs to nobody. */
export async function checkDatabase(
  url: string | undefined,
  repair: boolean,
): Promise<readonly Check[]> {
  if (url === undefined) {
    const detail = "DATABASE_URL is not set: only what the API says of the database is known";
    return [{ name: "database", status: "SKIPPED", detail }];
  }
  const shown = withoutPassword(url);
  try {
    const pending = await pendingMigrations(url);
    const answers: Check = { name: "database", status: "OK", detail: `${shown} answers` };
    if (pending.length > 0) return [answers, migrations(pending)];
    return [answers, migrations(pending), ...(await checkStorage(url, repair))];
  } catch (error) {
    const detail = `${shown}: ${messageOf(error)}`;
    return [{ name: "database", status: "FAILED", detail, advice: "Check DATABASE_URL." }];
  }
}

function migrations(pending: readonly string[]): Check {
  const name = "migrations";
  if (pending.length === 0) return { name, status: "OK", detail: "the schema is the newest" };
  const detail = `${pending.join(", ")} are still to be applied`;
  return { name, status: "FAILED", detail, advice: "Run millrace migrate." };
}

/** Whether the API answers, and what it says of what it depends on. */
export async function checkApi(client: MillraceClient, url: string): Promise<readonly Check[]> {
  const { checks } = await client.readiness();
  const api: Check = { name: "api", status: "OK", detail: `${url} answers` };
  return [api, ...Object.entries(checks).map(([name, check]) => dependency(name, check))];
}

function dependency(
  name: string,
  { status, required, detail = "" }: ReadinessView["checks"][string],
): Check {
  const told = detail === "" ? "" : `: ${detail}`;
  if (status === "ok") return { name: `api: ${name}`, status: "OK", detail: `it answers${told}` };
  return {
    name: `api: ${name}`,
    status: required === false ? "WARNING" : "FAILED",
    detail: `it does not answer${told}`,
    advice:
      required === false
        ? "Nothing is lost while it is away; steps wait."
        : "The API answers 503 until it is back.",
  };
}
