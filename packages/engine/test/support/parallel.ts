export const parallel = (
  stepId: string,
  branches: Record<string, object[]>,
  more: object = {},
) => ({
  stepId,
  type: "PARALLEL",
  branches: Object.entries(branches).map(([name, steps]) => ({ name, steps })),
  ...more,
});
export const leadingTo = (next: string) => ({ transitions: { default: next } });
export const wait = (stepId: string, more: object = {}) => ({
  stepId,
  type: "EVENT_WAIT",
  eventPattern: `${stepId}.done`,
  ...more,
});
