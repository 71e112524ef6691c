import { lookup } from "node:dns";
import type { LookupAddress, LookupAllOptions } from "node:dns";
import { isIP } from "node:net";
import type { LookupFunction } from "node:net";
import { Agent, buildConnector } from "undici";
import type { AddressGuard } from "./address-guard.ts";

/** The host has no address that may be connected to. */
export class AddressRefusedError extends Error {
  readonly host: string;
  readonly addresses: readonly RefusedAddress[];
  constructor(host: string, addresses: readonly RefusedAddress[]) {
    const shown = addresses.map(({ address, range }) => `${address} (${range})`).join(", ");
    super(
      `${host} is at ${shown}, which http.request does not connect to unless the worker's MILLRACE_HTTP_ALLOW names that host or range`,
    );
    this.host = host;
    this.addresses = addresses;
  }
}

interface RefusedAddress {
  readonly address: string;
  readonly range: string;
}

/** As `lookup` of `node:dns`. */
export type Resolve = (
  host: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, found: LookupAddress[]) => void,
) => void;

/**
 * Opens connections to what the guard lets through. It looks when a socket connects, at the addresses that it
 * connects to: a name whose addresses change between a check and the connection finds nothing between them.
 */
export function openGuardedAgent(guard: AddressGuard, resolve: Resolve = lookup): Agent {
  const lookUp: LookupFunction = (host, options, callback) => {
    resolve(known(host), { ...options, all: true }, (error, found) => {
      if (error !== null) return callback(error, []);
      const allowed = found.filter(({ address }) => isAllowed(guard, host, address));
      const [first] = allowed;
      if (first === undefined) return callback(refused(guard, host, found), []);
      if (options.all === true) return callback(null, allowed);
      return callback(null, first.address, first.family);
    });
  };
  const connect = buildConnector({ lookup: lookUp, autoSelectFamily: true });
  return new Agent({
    connect(options, callback) {
      const { hostname } = options;
      // Of an address nothing is looked up.
      if (isIP(hostname) !== 0 && !isAllowed(guard, hostname, hostname)) {
        const found = [{ address: hostname, family: isIP(hostname) }];
        return callback(refused(guard, hostname, found), null);
      }
      return connect(options, callback);
    },
    // The whole request has its own clock.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}

/** This machine by all of its names, of which the system may know but one (RFC 6761). */
function known(host: string): string {
  return /^(?:.+\.)?localhost\.?$/i.test(host) ? "localhost" : host;
}

function isAllowed(guard: AddressGuard, host: string, address: string): boolean {
  return guard.isTrusted(host) || guard.refusal(address) === undefined;
}

function refused(guard: AddressGuard, host: string, found: readonly LookupAddress[]) {
  const addresses = found.map(({ address }) => ({
    address,
    range: guard.refusal(address) ?? "unknown",
  }));
  return new AddressRefusedError(host, addresses);
}
