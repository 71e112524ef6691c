/** What a reconciler should long have seen to: it looks each second, and has a backlog at times. */
export const lateMs = 60_000;

/** Clocks of different hosts, and of the database before and after a failover, are so far apart, at most. */
export const skewMs = 5_000;
