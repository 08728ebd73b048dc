/**
 * `host:port,host:port/chroot`: the servers to connect to, and the znode that is the root of the
 * client.
 *
 * As in ZooKeeper, the chroot follows the last host and applies to the whole list; the port is
 * optional; IPv6 addresses are in brackets.
 *
 * `srv:_zookeeper._tcp.example.com/chroot` names a service instead of servers, and DNS lists its
 * servers. It cannot be confused with a host, as the port of a host is a number.
 */
import { pathError } from '@tskeeper/protocol';
import { checkValue, type ValueType, valueTypes } from './arguments.ts';
import type { ServerAddress } from './transport.ts';

/** ZooKeeper's default clientPort. */
export const defaultPort = 2181;

const connectStringType: ValueType = { ...valueTypes.string, expected: 'a string such as "zk1:2181,zk2:2181/app"' };
const serverListType: ValueType = {
  expected: 'a string such as "zk1:2181,zk2:2181" or an array such as ["zk1:2181", { host: "zk2", port: 2181 }]',
  accepts: Array.isArray,
};
const serverType: ValueType = {
  expected: 'a string such as "zk1:2181" or an object such as { host: "zk1", port: 2181 }',
  accepts: (given) => valueTypes.object.accepts(given) && typeof (given as { readonly host?: unknown }).host === 'string',
};

const addressType: ValueType = {
  expected: 'an object such as { host: "zk1", port: 2181 }',
  accepts: (given) => serverType.accepts(given) && typeof (given as { readonly port?: unknown }).port === 'number',
};

/** The parts of a connect string. */
export interface ConnectString {
  /** In the given order; at least one, unless a service is given. */
  readonly servers: readonly ServerAddress[];
  /** The SRV name of the servers; undefined if they are listed one by one. */
  readonly srvName: string | undefined;
  /** A path without a slash at the end; empty for none and for `/`. */
  readonly chroot: string;
}

/**
 * A connect string or a list of servers that is not valid. The message names the invalid part and
 * the remedy.
 */
export class ConnectStringError extends Error {
  override readonly name = 'ConnectStringError';
}

function fail(text: string, problem: string, form = 'host:port,host:port/chroot'): never {
  throw new ConnectStringError(`connect string "${text}": ${problem} Write it as ${form}.`);
}

/** A connect string, or an array of `host:port` and `{ host, port }`. */
export type ServerList = string | readonly (string | ServerAddress)[];

/** Parses the `servers` of `connect`. Throws a ConnectStringError or a TypeError. */
export function parseServers(servers: ServerList): ConnectString {
  if (typeof servers === 'string') return parseConnectString(servers);
  return { servers: parseServerList(servers), srvName: undefined, chroot: '' };
}

/**
 * Parses ZooKeeper's `host:port,host:port/chroot`, or `srv:name/chroot`. Throws a
 * ConnectStringError, and a TypeError if `text` is not a string.
 */
export function parseConnectString(text: string): ConnectString {
  checkValue(text, connectStringType, 'the connect string');
  const slash = text.indexOf('/');
  const hosts = slash === -1 ? text : text.slice(0, slash);
  const chroot = slash === -1 ? '/' : text.slice(slash);
  const fault = pathError(chroot);
  if (fault !== undefined) fail(text, `the chroot ${chroot} ${fault}.`);
  // Like ZooKeeper, accept "a:1,,b:2" and a comma at the end.
  const parts = hosts
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
  if (parts.length === 0) fail(text, 'it has no host.');
  const srvName = parts.map((part) => parseSrvName(text, part)).find((name) => name !== undefined);
  if (srvName !== undefined && parts.length > 1) fail(text, `"srv:${srvName}" names all servers, so it cannot be combined with others.`);
  const servers: ServerAddress[] = [];
  for (const part of srvName === undefined ? parts : []) servers.push(parseServer(text, part));
  return { servers, srvName, chroot: chroot === '/' ? '' : chroot };
}

/** `srv:2181` is a port of the host "srv". */
function parseSrvName(text: string, part: string): string | undefined {
  if (!part.startsWith('srv:') || /^srv:\d+$/.test(part)) return undefined;
  const name = part.slice('srv:'.length);
  if (name === '') fail(text, '"srv:" must be followed by a name, as in srv:_zookeeper._tcp.example.com.');
  if (!/^[\w-]+(?:\.[\w-]+)*\.?$/.test(name))
    fail(text, `"${name}" is not an SRV name such as _zookeeper._tcp.example.com; the records contain the ports.`);
  return name;
}

/**
 * Parses a list of servers for a connected client: `host:port,host:port`, or an array. Throws a
 * ConnectStringError.
 */
export function parseServerList(list: ServerList): readonly ServerAddress[] {
  if (typeof list === 'string') return parseHostsOnly(list);
  checkValue(list, serverListType, 'the list of servers');
  const servers = list.flatMap((each) => (typeof each === 'string' ? parseHostsOnly(each) : [checkServer(each)]));
  if (servers.length === 0) throw new ConnectStringError('The list of servers is empty. Give at least one server.');
  return servers;
}

function parseHostsOnly(text: string): readonly ServerAddress[] {
  if (text.includes('/'))
    fail(
      text,
      'a list of servers cannot have a chroot; write it at the end of a connect string, or call client.chroot(path).',
      'host:port,host:port',
    );
  const { servers, srvName } = parseConnectString(text);
  if (srvName !== undefined)
    fail(text, 'a list contains servers; use an SRV name only as a connect string of its own.', 'host:port,host:port');
  return servers;
}

/** Whether the text can be a host: a name, or an address without brackets. */
export function isHost(host: string): boolean {
  return host !== '' && !/[\s,/[\]]/.test(host);
}

function checkServer(server: ServerAddress): ServerAddress {
  checkValue(server, serverType, 'each element of the list of servers');
  const { host, port } = server;
  if (!isHost(host)) {
    throw new ConnectStringError(`"${host}" in the list of servers is not a host. Give a name or an address; IPv6 without brackets.`);
  }
  if (!Number.isInteger(port) || port < 1 || port > 65_535) {
    throw new ConnectStringError(`The port of "${host}" in the list of servers is ${port}. Give a number from 1 to 65535.`);
  }
  return { host, port };
}

function parseServer(text: string, part: string): ServerAddress {
  if (part.startsWith('[')) {
    const end = part.indexOf(']');
    if (end === -1) fail(text, `"${part}" has an opening bracket without a closing one.`);
    const host = part.slice(1, end);
    if (host === '') fail(text, `"${part}" has empty brackets.`);
    const rest = part.slice(end + 1);
    if (rest === '') return { host, port: defaultPort };
    if (!rest.startsWith(':')) fail(text, `"${part}" has something other than a port after its bracket.`);
    return { host, port: parsePort(text, part, rest.slice(1)) };
  }
  const colon = part.indexOf(':');
  if (colon === -1) return { host: part, port: defaultPort };
  if (part.indexOf(':', colon + 1) !== -1) fail(text, `"${part}" has several colons; write an IPv6 address in brackets, as in [::1]:2181.`);
  const host = part.slice(0, colon);
  if (host === '') fail(text, `"${part}" has no host before its port.`);
  return { host, port: parsePort(text, part, part.slice(colon + 1)) };
}

function parsePort(text: string, part: string, digits: string): number {
  const port = /^\d{1,5}$/.test(digits) ? Number(digits) : 0;
  if (port < 1 || port > 65_535) fail(text, `the port of "${part}" is not a number from 1 to 65535.`);
  return port;
}

/**
 * Formats a server as in a connect string: `10.0.0.1:2181`, `[::1]:2181`. Throws a TypeError if
 * `server` is not a server.
 */
export function formatServer(server: ServerAddress): string {
  checkValue(server, addressType, 'formatServer: the server');
  const { host, port } = server;
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
