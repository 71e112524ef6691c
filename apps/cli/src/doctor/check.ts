/** One thing that was looked at. */
export interface Check {
  readonly name: string;
  /** WARNING: it works, and somebody should look. SKIPPED: it could not be looked at from here. */
  readonly status: "OK" | "WARNING" | "FAILED" | "SKIPPED";
  readonly detail: string;
  readonly advice?: string;
}
