import type { Wake } from "@millrace/queue";

/** Tells other processes which instances have changed, as long as somebody follows any. */
export interface Announcements {
  changed(instanceId: string): void;
  close(): void;
}

/** What changes within so long is told together: a command costs some 30 µs. */
const togetherMs = 10;
/** Where nobody listens: how long until it is asked again. They who come meanwhile look by themselves. */
const unheardMs = 1_000;
/** Of more it is only told that something has changed. */
const mostTogether = 2_000;

export function openAnnouncements(wake: Wake): Announcements {
  const changed = new Set<string>();
  /** Nobody listens: asked less than `unheardMs` ago. */
  let isQuiet = false;
  let timer: NodeJS.Timeout | undefined;

  async function tell(): Promise<void> {
    const isHeard = await wake.isHeard("stream");
    if (isHeard)
      wake.publish("stream", changed.size < mostTogether ? { instanceIds: [...changed] } : {});
    changed.clear();
    isQuiet = !isHeard;
    timer = isQuiet ? setTimeout(listenAgain, unheardMs).unref() : undefined;
  }

  function listenAgain(): void {
    isQuiet = false;
    timer = undefined;
  }

  return {
    changed(instanceId) {
      if (isQuiet) return;
      if (changed.size < mostTogether) changed.add(instanceId);
      timer ??= setTimeout(() => void tell(), togetherMs).unref();
    },
    close: () => clearTimeout(timer),
  };
}
