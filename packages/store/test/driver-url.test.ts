import pg from "pg";
import { expect, test, vi } from "vitest";
import { driverUrl, stricterMode } from "../src/driver-url.ts";

const modes = ["prefer", "require", "verify-ca", "verify-full", "no-verify", "disable"];

test("a client is told of TLS what it was told, and the driver has nothing to say of it", () => {
  const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  const sslOf = (connectionString: string) =>
    Reflect.get(new pg.Client({ connectionString }), "ssl");

  const urls = modes.map((mode) => `postgres://u@host/db?application_name=a&sslmode=${mode}`);
  const told = urls.map((url) => sslOf(driverUrl(url)));

  expect(warned).not.toHaveBeenCalled();
  expect(told).toEqual(urls.map(sslOf));
  expect(warned).toHaveBeenCalled();
  expect(urls.map(stricterMode)).toEqual(["prefer", "require", "verify-ca", ...Array(3)]);
  warned.mockRestore();
});

test("where libpq's meaning is asked for, the mode stays", () => {
  const url = "postgres://u@host/db?uselibpqcompat=true&sslmode=require";

  expect([driverUrl(url), stricterMode(url)]).toEqual([url, undefined]);
});
