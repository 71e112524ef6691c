import { expect, test } from "vitest";
import { ORDER_PATHS, orderPaths, planOrders } from "../src/demo/orders.ts";

test("fifty orders are shared out as the paths say", () => {
  const orders = planOrders(50);

  for (const path of orderPaths) {
    expect(orders.filter((order) => order.path === path)).toHaveLength(ORDER_PATHS[path].share);
  }
});

test("a few orders go different ways before any goes the same", () => {
  const paths = planOrders(orderPaths.length).map(({ path }) => path);

  expect(new Set(paths).size).toBe(orderPaths.length);
});

test("order ids are unique, and of one run only", () => {
  const ids = [...planOrders(200, { run: "a" }), ...planOrders(200, { run: "b" })].map(
    ({ orderId }) => orderId,
  );

  expect(new Set(ids).size).toBe(400);
});

test("an order that is to be checked for fraud is large, and others are not", () => {
  for (const { path, amount } of planOrders(1_000)) {
    const isLarge = path === "paid_large" || path === "cancelled_in_fraud_check";
    expect(amount >= 1_000).toBe(isLarge);
  }
});
