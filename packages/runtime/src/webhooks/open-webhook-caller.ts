import { request } from "undici";
import { openAddressGuard } from "../worker/tasks/http/address-guard.ts";
import { AddressRefusedError, openGuardedAgent } from "../worker/tasks/http/guarded-agent.ts";

/** Sends one event to one place. */
export interface WebhookCaller {
  /** @returns What came of it. Never rejects. */
  post(url: string, headers: Readonly<Record<string, string>>, body: string): Promise<Posted>;
  close(): Promise<void>;
}

export type Posted =
  | { readonly kind: "taken" }
  /** `isGone`: it will never be taken there (410). */
  | { readonly kind: "refused"; readonly failure: string; readonly isGone: boolean }
  /** This process ends: nobody knows what came of it. */
  | { readonly kind: "aborted" };

const timeoutMs = 15_000;
/** Of the answer, which is of no interest: a connection on which it is longer is given up. */
const maxAnswerBytes = 65_536;

/**
 * One for a process. What an endpoint answers is told by its status alone, and why it could not be reached by
 * a code: who sets a webhook up must not read by it what is in a network that only the scheduler reaches.
 *
 * @param allow Whom it may reach although the address is not a public one.
 */
export function openWebhookCaller(allow: readonly string[], ending: AbortSignal): WebhookCaller {
  const agent = openGuardedAgent(openAddressGuard(allow));
  return {
    async post(url, headers, body) {
      const clock = openClock(ending);
      try {
        const { signal } = clock;
        // Redirects are not followed: they are what was signed, handed to somebody else.
        const sent = { dispatcher: agent, method: "POST", headers, body, signal } as const;
        const answer = await request(url, sent);
        await answer.body.dump({ limit: maxAnswerBytes, signal }).catch(() => {});
        const status = answer.statusCode;
        if (status >= 200 && status < 300) return { kind: "taken" };
        return { kind: "refused", failure: `it answered ${status}`, isGone: status === 410 };
      } catch (error) {
        if (ending.aborted) return { kind: "aborted" };
        const failure = clock.signal.aborted
          ? `it did not answer within ${timeoutMs / 1_000} s`
          : failureOf(error);
        return { kind: "refused", failure, isGone: false };
      } finally {
        clock.clear();
      }
    },
    close: () => agent.destroy(),
  };
}

/** Of one call: it leaves nothing with the signal of the process. */
function openClock(ending: AbortSignal) {
  const controller = new AbortController();
  const end = () => controller.abort();
  const timer = setTimeout(end, timeoutMs);
  if (ending.aborted) end();
  ending.addEventListener("abort", end);
  return {
    signal: controller.signal,
    clear() {
      clearTimeout(timer);
      ending.removeEventListener("abort", end);
    },
  };
}

function failureOf(error: unknown): string {
  for (let at = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    if (at instanceof AddressRefusedError) {
      return "its address is not one of the public internet, and the schedulers' MILLRACE_HTTP_ALLOW does not name it";
    }
    if ("code" in at && typeof at.code === "string") return `it could not be reached (${at.code})`;
  }
  return "it could not be reached";
}
