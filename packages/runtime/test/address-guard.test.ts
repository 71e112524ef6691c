import fc from "fast-check";
import { expect, test } from "vitest";
import { openAddressGuard } from "../src/worker/tasks/http/address-guard.ts";

const guard = openAddressGuard([]);

/** As a request comes to it. */
const hostOf = (text: string) => new URL(`http://${text}`).hostname.replaceAll(/[[\]]/g, "");

const bytesOf = (address: number) => [24, 16, 8, 0].map((shift) => (address >>> shift) & 255);
const dotted = (address: number) => bytesOf(address).join(".");

/** Ways to write one IPv4 address into a URL. */
function spellings(address: number): readonly string[] {
  const [a = 0, b = 0, c = 0, d = 0] = bytesOf(address);
  const groups = [(a << 8) | b, (c << 8) | d].map((group) => group.toString(16));
  const plain = dotted(address);
  return [
    plain,
    `${plain}.`,
    `${a}.${b}.${(c << 8) | d}`,
    `${a}.${(b << 16) | (c << 8) | d}`,
    String(address),
    `0x${address.toString(16)}`,
    `0${address.toString(8)}`,
    `0x${a.toString(16)}.0${b.toString(8)}.${c}.0x${d.toString(16)}`,
    plain.replaceAll(/./g, (sign) => `%${sign.charCodeAt(0).toString(16)}`),
    plain.replaceAll(/\d/g, (digit) => String.fromCharCode(0xff10 + Number(digit))),
    plain.replaceAll(".", "。"),
    `[::ffff:${plain}]`,
    `[::ffff:${groups.join(":")}]`,
    `[0:0:0:0:0:FFFF:${groups.join(":")}]`,
  ];
}

/** Written down anew, from the registries of IANA. */
const inner: readonly (readonly [string, number])[] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["168.63.129.16", 32],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
];

const numberOf = (text: string) =>
  text.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);

const anyAddress = fc.nat({ max: 2 ** 32 - 1 });
const innerAddress = fc
  .tuple(fc.constantFrom(...inner), anyAddress)
  .map(([[start, bits], any]) => numberOf(start) + (bits === 32 ? 0 : any % 2 ** (32 - bits)));

test("C85: an address is judged alike however it is written", () => {
  fc.assert(
    fc.property(fc.oneof(anyAddress, innerAddress), (address) => {
      const verdict = guard.refusal(dotted(address));
      const written = spellings(address).map((text) => [text, guard.refusal(hostOf(text))]);

      expect(written).toEqual(spellings(address).map((text) => [text, verdict]));
    }),
  );
});

test("C85: an address that is not of the public internet is refused, also within one of IPv6", () => {
  fc.assert(
    fc.property(innerAddress, (address) => {
      const prefixes = ["", "::", "64:ff9b::", "64:ff9b:1::", "::ffff:0:", "2002::"];
      const written = prefixes.map((prefix) => `${prefix}${dotted(address)}`);

      expect(written.filter((text) => guard.refusal(text) === undefined)).toEqual([]);
    }),
  );
});

test.each(
  "::1 :: ::ffff:127.0.0.1 ::127.0.0.1 ::8.8.8.8 fe80::1 fe80::1%eth0 fc00::1 fd00:ec2::254 fec0::1 ff02::1 2001:db8::1 100::1 4000::1 2001::1 5f00::1 x".split(
    " ",
  ),
)("C85: %s is refused", (address) => {
  expect(guard.refusal(address)).toBeDefined();
});

test.each(["8.8.8.8", "1.1.1.1", "2606:4700::1111", "2a00:1450:4001::1"])(
  "%s is an address of the public internet",
  (address) => expect(guard.refusal(address)).toBeUndefined(),
);

test("C85: what is allowed by name, by address or by range is let through, and nothing beside it", () => {
  const { isTrusted, refusal } = openAddressGuard([
    "Billing.internal",
    "*.svc.local",
    "10.1.0.0/16",
    "127.0.0.2",
    "fd00::/8",
  ]);

  const trusted = ["billing.internal", "BILLING.internal.", "a.svc.local", "b.a.svc.local."];
  const others = ["x.billing.internal", "svc.local", "xsvc.local", "10.1.0.1"];
  expect([...trusted, ...others].filter(isTrusted)).toEqual(trusted);
  const within = ["10.1.2.3", "::ffff:10.1.2.3", "127.0.0.2", "fd12::1", "8.8.8.8"];
  const beside = ["10.2.0.1", "127.0.0.1", "127.0.0.3", "fe80::1", "64:ff9b::a01:203"];
  expect([...within, ...beside].filter((each) => refusal(each) === undefined)).toEqual(within);
});
