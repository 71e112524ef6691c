/**
 * Runs `close` once when the process is asked to end (Ctrl-C, kill, a closed terminal), then exits
 * as the signal would have made it: 130 for SIGINT. A later second signal ends it at once; the
 * guards of the children then do the rest. One Ctrl-C can arrive twice, from the terminal and from
 * npm, so what comes within a second is the same signal.
 *
 * @returns A function that takes the handlers away again.
 */
export function closeOnSignal(close: () => Promise<void>): () => void {
  let firstAt: number | undefined;
  const onSignal = (signal: NodeJS.Signals) => {
    const exitCode = 128 + (signalNumbers[signal] ?? 15);
    if (firstAt !== undefined) {
      if (performance.now() - firstAt < 1_000) return;
      process.exit(exitCode);
    }
    firstAt = performance.now();
    close().then(
      () => process.exit(exitCode),
      (error: unknown) => {
        process.stderr.write(`stopping failed: ${String(error)}\n`);
        process.exit(exitCode);
      },
    );
  };
  const signals = Object.keys(signalNumbers) as NodeJS.Signals[];
  for (const signal of signals) process.on(signal, onSignal);
  return () => {
    for (const signal of signals) process.off(signal, onSignal);
  };
}

const signalNumbers: Partial<Record<NodeJS.Signals, number>> = {
  SIGHUP: 1,
  SIGINT: 2,
  SIGTERM: 15,
};
