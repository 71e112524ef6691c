/** What a reconciler should long have seen to: it looks each second, and has a backlog at times. */
export const lateMs = 60_000;
