/**
 * `host:port,host:port/chroot`: who to connect to, and which znode to call root.
 *
 * As in ZooKeeper, the chroot stands once, behind the last host, and applies to the whole list; the port may be left out; IPv6 addresses
 * go into brackets.
 */
import { pathFault } from '@tskeeper/protocol';
import type { ServerAddress } from './transport.ts';

export const defaultPort = 2181;

export interface ConnectString {
  /** In the order given; at least one. */
  readonly servers: readonly ServerAddress[];
  /** A path without an end slash; empty for none, and for `/`. */
  readonly chroot: string;
}

/** A connect string that cannot be meant. The message is one sentence that names the place and the remedy. */
export class ConnectStringError extends Error {
  override readonly name = 'ConnectStringError';
}

function fail(text: string, complaint: string): never {
  throw new ConnectStringError(`connect string "${text}": ${complaint} Write it as host:port,host:port/chroot.`);
}

export function parseConnectString(text: string): ConnectString {
  const slash = text.indexOf('/');
  const hosts = slash === -1 ? text : text.slice(0, slash);
  const chroot = slash === -1 ? '/' : text.slice(slash);
  const fault = pathFault(chroot);
  if (fault !== undefined) fail(text, `the chroot ${chroot} ${fault}.`);
  const servers: ServerAddress[] = [];
  for (const part of hosts.split(',')) {
    const host = part.trim();
    // "a:1,,b:2" and an end comma are forgiven, as they are by ZooKeeper.
    if (host !== '') servers.push(parseServer(text, host));
  }
  if (servers.length === 0) fail(text, 'it names no host.');
  return { servers, chroot: chroot === '/' ? '' : chroot };
}

function parseServer(text: string, part: string): ServerAddress {
  if (part.startsWith('[')) {
    const end = part.indexOf(']');
    if (end === -1) fail(text, `"${part}" opens a bracket and does not close it.`);
    const host = part.slice(1, end);
    if (host === '') fail(text, `"${part}" has nothing between its brackets.`);
    const rest = part.slice(end + 1);
    if (rest === '') return { host, port: defaultPort };
    if (!rest.startsWith(':')) fail(text, `"${part}" has something other than a port behind its bracket.`);
    return { host, port: parsePort(text, part, rest.slice(1)) };
  }
  const colon = part.indexOf(':');
  if (colon === -1) return { host: part, port: defaultPort };
  if (part.indexOf(':', colon + 1) !== -1) fail(text, `"${part}" has several colons; an IPv6 address goes into brackets, as [::1]:2181.`);
  const host = part.slice(0, colon);
  if (host === '') fail(text, `"${part}" has no host in front of its port.`);
  return { host, port: parsePort(text, part, part.slice(colon + 1)) };
}

function parsePort(text: string, part: string, digits: string): number {
  const port = /^\d{1,5}$/.test(digits) ? Number(digits) : 0;
  if (port < 1 || port > 65_535) fail(text, `the port of "${part}" is not a number from 1 to 65535.`);
  return port;
}

/** `10.0.0.1:2181`, `[::1]:2181`: as it stands in a connect string. */
export function formatServer({ host, port }: ServerAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
