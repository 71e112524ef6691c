import { expect, test } from "vitest";
import { storeErrorOf } from "../src/errors.ts";

test.each([
  ["ENOENT", "open", "file"],
  ["EISDIR", "read", "file"],
  ["ERR_OSSL_PEM_NO_START_LINE", undefined, "file"],
  ["ERR_OSSL_X509_KEY_VALUES_MISMATCH", undefined, "file"],
  ["DEPTH_ZERO_SELF_SIGNED_CERT", undefined, "untrusted"],
  ["ERR_SSL_WRONG_VERSION_NUMBER", undefined, "untrusted"],
])("%s of a connection with TLS in %s is one of kind %s", (code, syscall, kind) => {
  const error = Object.assign(new Error("no"), { code, syscall });

  expect(storeErrorOf(error)).toMatchObject({ code: "DATABASE_FAULT", kind });
});

test("a socket that cannot be read is no fault of TLS", () => {
  const error = Object.assign(new Error("read ENETDOWN"), { code: "ENETDOWN", syscall: "read" });

  expect(storeErrorOf(error)).not.toHaveProperty("kind");
});

test.each(["ENOENT", "EACCES", "ECONNREFUSED", "EINVAL"])(
  "a socket that cannot be connected (%s) is a server that cannot be reached",
  (code) => {
    const error = Object.assign(new Error(`connect ${code} /tmp/.s.PGSQL.1`), {
      code,
      syscall: "connect",
    });

    expect(storeErrorOf(error)).toMatchObject({ code: "DATABASE_UNAVAILABLE", retryable: true });
  },
);
