/**
 * `host:port,host:port/chroot`: who to connect to, and which znode to call root.
 *
 * As in ZooKeeper, the chroot stands once, behind the last host, and applies to the whole list; the port may be left out; IPv6 addresses
 * go into brackets.
 *
 * `srv:_zookeeper._tcp.example.com/chroot` names a service in place of servers: which they are, DNS says. No host can be meant by that, since
 * what stands behind the colon of a host is a number.
 */
import { pathFault } from '@tskeeper/protocol';
import { checkValue, type Kind, kinds } from './arguments.ts';
import type { ServerAddress } from './transport.ts';

/** Where servers listen unless a connect string says otherwise: ZooKeeper's clientPort. */
export const defaultPort = 2181;

const connectStringKind: Kind = { ...kinds.string, wanted: 'a string, as in "zk1:2181,zk2:2181/app"' };
const serversKind: Kind = {
  wanted: 'a string, as in "zk1:2181,zk2:2181", or an array, as in ["zk1:2181", { host: "zk2", port: 2181 }]',
  fits: Array.isArray,
};
const serverKind: Kind = {
  wanted: 'a string, as in "zk1:2181", or an object, as in { host: "zk1", port: 2181 }',
  fits: (given) => kinds.object.fits(given) && typeof (given as { readonly host?: unknown }).host === 'string',
};

const addressKind: Kind = {
  wanted: 'an object, as in { host: "zk1", port: 2181 }',
  fits: (given) => serverKind.fits(given) && typeof (given as { readonly port?: unknown }).port === 'number',
};

/** What a connect string says. */
export interface ConnectString {
  /** In the order given; at least one, but for a service. */
  readonly servers: readonly ServerAddress[];
  /** The SRV name whose servers are meant; undefined when they are named one by one. */
  readonly service: string | undefined;
  /** A path without an end slash; empty for none, and for `/`. */
  readonly chroot: string;
}

/** A connect string that cannot be meant. The message is one sentence that names the place and the remedy. */
export class ConnectStringError extends Error {
  override readonly name = 'ConnectStringError';
}

function fail(text: string, complaint: string, form = 'host:port,host:port/chroot'): never {
  throw new ConnectStringError(`connect string "${text}": ${complaint} Write it as ${form}.`);
}

/** Servers as a program names them: a connect string, or an array of `host:port` and `{ host, port }`. */
export type Servers = string | readonly (string | ServerAddress)[];

/** Reads what `connect` was given. Throws a ConnectStringError or a TypeError. */
export function parseServers(servers: Servers): ConnectString {
  if (typeof servers === 'string') return parseConnectString(servers);
  return { servers: parseServerList(servers), service: undefined, chroot: '' };
}

/** Reads ZooKeeper's `host:port,host:port/chroot`, or `srv:name/chroot`. Throws a ConnectStringError, and a TypeError for what is not a string. */
export function parseConnectString(text: string): ConnectString {
  checkValue(text, connectStringKind, 'the connect string');
  const slash = text.indexOf('/');
  const hosts = slash === -1 ? text : text.slice(0, slash);
  const chroot = slash === -1 ? '/' : text.slice(slash);
  const fault = pathFault(chroot);
  if (fault !== undefined) fail(text, `the chroot ${chroot} ${fault}.`);
  // "a:1,,b:2" and an end comma are forgiven, as they are by ZooKeeper.
  const parts = hosts
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
  if (parts.length === 0) fail(text, 'it names no host.');
  const service = parts.map((part) => parseService(text, part)).find((name) => name !== undefined);
  if (service !== undefined && parts.length > 1)
    fail(text, `"srv:${service}" names all the servers there are, so nothing stands beside it.`);
  const servers: ServerAddress[] = [];
  for (const part of service === undefined ? parts : []) servers.push(parseServer(text, part));
  return { servers, service, chroot: chroot === '/' ? '' : chroot };
}

/** `srv:2181` is a port of the host "srv". */
function parseService(text: string, part: string): string | undefined {
  if (!part.startsWith('srv:') || /^srv:\d+$/.test(part)) return undefined;
  const name = part.slice('srv:'.length);
  if (name === '') fail(text, '"srv:" has no name after it, as in srv:_zookeeper._tcp.example.com.');
  if (!/^[\w-]+(?:\.[\w-]+)*\.?$/.test(name))
    fail(text, `"${name}" is no SRV name, as _zookeeper._tcp.example.com is; ports come with the records.`);
  return name;
}

/** What a living client goes by from now on: `host:port,host:port`, or a list. Throws a ConnectStringError. */
export function parseServerList(list: Servers): readonly ServerAddress[] {
  if (typeof list === 'string') return parseHostsOnly(list);
  checkValue(list, serversKind, 'the list of servers');
  const servers = list.flatMap((each) => (typeof each === 'string' ? parseHostsOnly(each) : [checkServer(each)]));
  if (servers.length === 0) throw new ConnectStringError('The list of servers is empty. Give one server at least.');
  return servers;
}

function parseHostsOnly(text: string): readonly ServerAddress[] {
  if (text.includes('/'))
    fail(
      text,
      'a list of servers has no chroot; it stands at the end of a connect string, or client.chroot(path) gives it.',
      'host:port,host:port',
    );
  const { servers, service } = parseConnectString(text);
  if (service !== undefined)
    fail(text, 'a list names servers one by one; an SRV name is a connect string of its own.', 'host:port,host:port');
  return servers;
}

/** Whether it can be dialled or looked up: a name, or an address without brackets. */
export function isHost(host: string): boolean {
  return host !== '' && !/[\s,/[\]]/.test(host);
}

function checkServer(server: ServerAddress): ServerAddress {
  checkValue(server, serverKind, 'each element of the list of servers');
  const { host, port } = server;
  if (!isHost(host)) {
    throw new ConnectStringError(`"${host}" in the list of servers is no host. Give a name or an address; IPv6 without brackets.`);
  }
  if (!Number.isInteger(port) || port < 1 || port > 65_535) {
    throw new ConnectStringError(`The port of "${host}" in the list of servers is ${port}. Give a number from 1 to 65535.`);
  }
  return { host, port };
}

function parseServer(text: string, part: string): ServerAddress {
  if (part.startsWith('[')) {
    const end = part.indexOf(']');
    if (end === -1) fail(text, `"${part}" opens a bracket and does not close it.`);
    const host = part.slice(1, end);
    if (host === '') fail(text, `"${part}" has nothing between its brackets.`);
    const rest = part.slice(end + 1);
    if (rest === '') return { host, port: defaultPort };
    if (!rest.startsWith(':')) fail(text, `"${part}" has something other than a port after its bracket.`);
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

/** `10.0.0.1:2181`, `[::1]:2181`: as it stands in a connect string. Throws a TypeError for what is not a server. */
export function formatServer(server: ServerAddress): string {
  checkValue(server, addressKind, 'formatServer: the server');
  const { host, port } = server;
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
