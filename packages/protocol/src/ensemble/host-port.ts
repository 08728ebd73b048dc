/**
 * The syntax of addresses between servers: `host:port`, an IPv6 host in brackets, parts separated
 * by colons. As in ZooKeeper, empty parts at the end of a list are dropped.
 */

export interface HostPort {
  /** A name or an address; without brackets. */
  readonly host: string;
  readonly port: number;
}

/**
 * The host and the parts after it; undefined if a bracket is not closed or is followed by anything
 * but a colon.
 */
export function splitHost(text: string): string[] | undefined {
  if (!text.startsWith('[')) return splitList(text, ':');
  const close = text.indexOf(']');
  if (close === -1) return undefined;
  const rest = text.slice(close + 1);
  if (rest !== '' && !rest.startsWith(':')) return undefined;
  return [text.slice(1, close), ...splitList(rest.slice(1), ':')];
}

/** The parts of a list, without empty ones at its end. */
export function splitList(text: string, separator: string): string[] {
  const parts = text.split(separator);
  while (parts.at(-1) === '') parts.pop();
  return parts;
}

/** 0 to 65535 in decimal digits, otherwise undefined. */
export function parsePort(text: string | undefined): number | undefined {
  if (text === undefined || !/^\+?\d{1,9}$/.test(text)) return undefined;
  const port = Number(text);
  return port <= 65_535 ? port : undefined;
}

/** `host:port`; undefined for anything else. */
export function parseHostPort(text: string): HostPort | undefined {
  const [host, portText, ...more] = splitHost(text) ?? [];
  const port = parsePort(portText);
  return host === undefined || host === '' || port === undefined || more.length > 0 ? undefined : { host, port };
}

/** In brackets if it is an IPv6 address. */
export function formatHost(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

export function formatHostPort({ host, port }: HostPort): string {
  return `${formatHost(host)}:${port}`;
}

/**
 * Whether a host is the address for all addresses of a machine: `0.0.0.0`, `::` and their longer
 * forms.
 */
export function isWildcardHost(host: string): boolean {
  return /^(?:0+(?:\.0+){0,3}|[0:]*:[0:]*(?::0+(?:\.0+){3})?)$/.test(host);
}
