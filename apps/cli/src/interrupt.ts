/**
 * Between Ctrl-C and its echo. In a terminal the signal reaches every process of the foreground
 * group, and `npm run` and the entry script pass it on once more.
 */
const ECHO_MS = 500;

const SIGNAL_NUMBERS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;
type StopSignal = keyof typeof SIGNAL_NUMBERS;

/** Somebody's wish that this process ends. */
export interface Interrupt {
  /** Aborted at the first signal. */
  readonly signal: AbortSignal;
  /** Settles at the first signal; never before. */
  readonly happened: Promise<StopSignal>;
  /** What a shell expects of a process that ended for it: 130 for Ctrl-C. */
  exitCode(): number | undefined;
  /** Lets signals end the process again, as they do by themselves. */
  dispose(): void;
}

/**
 * From now on a signal does not end the process but asks it to. A second one, when the first is no
 * echo of itself, ends it at once.
 */
export function listenForInterrupt(onSecond: () => void = () => {}): Interrupt {
  const controller = new AbortController();
  let first: { readonly signal: StopSignal; readonly at: number } | undefined;
  let settle: (signal: StopSignal) => void = () => {};
  const happened = new Promise<StopSignal>((resolve) => {
    settle = resolve;
  });
  const onSignal = (signal: StopSignal) => {
    if (first === undefined) {
      first = { signal, at: performance.now() };
      controller.abort(new Error(signal));
      settle(signal);
    } else if (performance.now() - first.at > ECHO_MS) {
      onSecond();
      process.exit(128 + SIGNAL_NUMBERS[signal]);
    }
  };
  const signals = Object.keys(SIGNAL_NUMBERS) as StopSignal[];
  for (const signal of signals) process.on(signal, onSignal);
  return {
    signal: controller.signal,
    happened,
    exitCode: () => first && 128 + SIGNAL_NUMBERS[first.signal],
    dispose: () => {
      for (const signal of signals) process.off(signal, onSignal);
    },
  };
}
