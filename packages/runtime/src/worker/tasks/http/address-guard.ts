import { isIPv6 } from "node:net";
import ipaddr from "ipaddr.js";

/**
 * Which addresses `http.request` connects to: those of the public internet, and whatever else is let through by
 * name. An address is judged by its number, so that no spelling of it is another one.
 */
export interface AddressGuard {
  /** Whether this host may have any address. */
  isTrusted(host: string): boolean;
  /** What kind of address it is that is not to be connected to; undefined where it may. */
  refusal(address: string): string | undefined;
}

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** @param allow Host names, `*.` before a name for all below it, addresses and CIDR ranges. */
export function openAddressGuard(allow: readonly string[]): AddressGuard {
  const names = new Set<string>();
  const suffixes: string[] = [];
  const ranges: [Address, number][] = [];
  for (const entry of allow) {
    const [text = "", bits] = entry.split("/");
    const address = parse(text);
    if (address !== undefined) ranges.push([address, bits === undefined ? 128 : Number(bits)]);
    else if (entry.startsWith("*.")) suffixes.push(plainName(entry.slice(1)));
    else names.add(plainName(entry));
  }
  return {
    isTrusted(host) {
      const name = plainName(host);
      return names.has(name) || suffixes.some((suffix) => name.endsWith(suffix));
    },
    refusal(text) {
      const address = parse(text);
      if (address === undefined) return "no address";
      if (ranges.some(([start, bits]) => isWithin(address, start, bits))) return undefined;
      return kindOfInner(address);
    },
  };
}

/** `undefined` for a name. An IPv4 address that is written as an IPv6 one is that IPv4 address. */
function parse(text: string): Address | undefined {
  // What the system writes of `::7f00:1`, `::127.0.0.1`, the library takes for the IPv4 address.
  const plain = text.replace(/%.*$/, "");
  const unified = isIPv6(plain) ? new URL(`http://[${plain}]`).hostname.slice(1, -1) : plain;
  if (!ipaddr.IPv4.isValidFourPartDecimal(unified) && !isIPv6(unified)) return undefined;
  return ipaddr.process(unified);
}

function isWithin(address: Address, start: Address, bits: number): boolean {
  if (address.kind() !== start.kind()) return false;
  return address.match(start, Math.min(bits, address.kind() === "ipv4" ? 32 : 128));
}

/** Where machines at Azure find what is theirs alone: the one such place with an address like everybody's. */
const metadata = ipaddr.parse("168.63.129.16");
/** All that is given out of IPv6. */
const globalUnicast = ipaddr.parse("2000::");

/** Undefined for an address of the public internet: whatever is not known to be one is none. */
function kindOfInner(address: Address): string | undefined {
  const range = address.range();
  if (range !== "unicast") return range;
  if (isWithin(address, metadata, 32)) return "metadata";
  return address.kind() === "ipv4" || isWithin(address, globalUnicast, 3) ? undefined : "reserved";
}

function plainName(host: string): string {
  return host.toLowerCase().replace(/\.$/, "");
}
