/** The tasks of the workloads; a worker loads the built file. */

const kilobyte = "x".repeat(1_024);

export const kilobyteTask = { id: "bench.kilobyte", run: () => kilobyte };

/** When it ran, in ms since 1970. */
export const stampTask = { id: "bench.stamp", run: () => Date.now() };
