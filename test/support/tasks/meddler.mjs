// A task that writes to all that it is shown.
export const meddler = {
  id: "meddler",
  /** @param {{ amount: number }} input */
  run(context, input) {
    input.amount = context.instance.input.amount = 999;
    return input;
  },
};
