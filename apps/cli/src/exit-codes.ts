/** What the exit codes of `millrace` mean; part of the contract. */
export const EXIT = {
  done: 0,
  /** The command was understood and carried out, and what was asked for did not come about. */
  failed: 1,
  /** The command line is wrong; nothing was tried. */
  usage: 2,
  /** No API answered. */
  unreachable: 3,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];
