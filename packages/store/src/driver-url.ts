/**
 * The URL as the driver is given it. It takes `prefer`, `require` and `verify-ca` for `verify-full`, says at each start
 * that it will not do so for ever, and does what libpq does only where it is asked to: spelled out, what is checked of a
 * server stays the same, whichever release of the driver comes.
 */
export function driverUrl(url: string): string {
  return isByLibpq(url) ? url : url.replace(loose, "$1verify-full");
}

/** The mode that stands in the URL and that the driver takes for a stricter one, if one does. */
export function stricterMode(url: string): string | undefined {
  return isByLibpq(url) ? undefined : [...url.matchAll(loose)].at(-1)?.[2];
}

const loose = /([?&]sslmode=)(prefer|require|verify-ca)(?=&|#|$)/g;

function isByLibpq(url: string): boolean {
  return /[?&]uselibpqcompat=true(?=&|#|$)/.test(url);
}
