/**
 * The configuration of an ensemble as text: in `/zookeeper/config`, in notifications, in NEWLEADER,
 * in dynamic configuration files, and in zoo.cfg, which uses the same keys in its own syntax.
 *
 *     server.1=host:quorumPort:electionPort[:role][;[clientHost:]clientPort]
 *     group.1=1:2:3
 *     weight.1=1
 *     version=100000003
 *
 * A server may have several addresses, separated by "|". With groups or weights a quorum is a
 * majority of the weight in a majority of the groups, without them a majority of the participants.
 *
 * Accepts what ZooKeeper's QuorumServer, QuorumMaj and QuorumHierarchical accept, except numbers
 * that ZooKeeper accepts and fails on later: a negative one, or a missing weight.
 */
import { formatHost, formatHostPort, type HostPort, parsePort, splitHost, splitList } from './host-port.ts';
import type { Sid } from './notification.ts';

export type PeerRole = 'participant' | 'observer';

export interface QuorumAddress {
  /** A name or an address; without brackets. */
  readonly host: string;
  /** The port of a leader for its learners. */
  readonly quorumPort: number;
  readonly electionPort: number;
}

export interface QuorumServer {
  readonly sid: Sid;
  /** At least one. */
  readonly addresses: readonly QuorumAddress[];
  readonly role: PeerRole;
  /** The address for its clients, if the text has one; `0.0.0.0` if it has only a port. */
  readonly clientAddress?: HostPort;
}

export interface QuorumConfig {
  /**
   * The zxid of the reconfig that created it; 0 for that of zoo.cfg, until a leader assigns
   * another.
   */
  readonly version: number;
  readonly servers: ReadonlyMap<Sid, QuorumServer>;
  /** Members of each group, by its number; empty unless quorums are hierarchical. */
  readonly groups: ReadonlyMap<number, readonly Sid[]>;
  /**
   * Weights of servers. With groups or weights every participant has one, 1 by default; otherwise
   * empty.
   */
  readonly weights: ReadonlyMap<Sid, number>;
}

/** One line: `server.1` and the text after the `=`. */
export interface QuorumConfigLine {
  readonly name: string;
  readonly value: string;
}

/**
 * An invalid configuration. The message is one sentence without the position of the line, which
 * only the caller knows.
 */
export class QuorumConfigError extends Error {
  override readonly name = 'QuorumConfigError';
  /** The line: `server.1`. */
  readonly line: string;

  constructor(line: string, sentence: string) {
    super(sentence);
    this.line = line;
  }
}

/** Whether a key belongs to this configuration. */
export function isQuorumConfigKey(name: string): boolean {
  return /^(?:server|group|weight)\./.test(name) || name === 'version';
}

/** Whether a server votes. One of weight 0 is a participant, but its vote counts nothing. */
export function isParticipant(server: QuorumServer): boolean {
  return server.role === 'participant';
}

export function isHierarchical(config: QuorumConfig): boolean {
  return config.groups.size > 0 || config.weights.size > 0;
}

/**
 * Parses the text that servers exchange: one line for each key, except empty lines and those that
 * begin with # or !. Of two lines for one key the later counts. Unknown keys are ignored, as in
 * ZooKeeper. Throws `QuorumConfigError`.
 */
export function parseQuorumConfig(text: string): QuorumConfig {
  const lines: QuorumConfigLine[] = [];
  for (const raw of text.split(/\r\n|\n|\r/)) {
    const line = raw.trim();
    const match = /^([^\s=:]+)\s*[\s=:]\s*(.*)$/.exec(line);
    if (match !== null && !/^[#!]/.test(line)) lines.push({ name: match[1]!, value: match[2]! });
  }
  return quorumConfigOf(lines);
}

/** The same, from lines that are already split. */
export function quorumConfigOf(lines: Iterable<QuorumConfigLine>): QuorumConfig {
  const last = new Map<string, string>();
  for (const { name, value } of lines) {
    if (isQuorumConfigKey(name)) last.set(name, value);
  }
  let version = 0;
  const servers = new Map<Sid, QuorumServer>();
  const groups = new Map<number, Sid[]>();
  const weights = new Map<Sid, number>();
  for (const [name, value] of last) {
    if (name === 'version') {
      version = parseVersion(name, value);
      continue;
    }
    const dot = name.indexOf('.');
    const number = wholeNumber(name, name.slice(dot + 1), 'the number after the dot');
    // `server.01` is `server.1` again.
    if (name.startsWith('server')) servers.set(number, parseQuorumServer(number, value, name));
    else if (name.startsWith('group')) groups.set(number, parseGroup(name, value));
    else weights.set(number, wholeNumber(name, value, 'a weight'));
  }
  if (groups.size > 0 || weights.size > 0) checkGroups(servers, groups, weights);
  return { version, servers: bySid(servers), groups: bySid(groups), weights: bySid(weights) };
}

/**
 * ZooKeeper's text of a configuration: servers, groups and weights in the order of their numbers,
 * and the version, without a newline at the end. The role is always included, and several addresses
 * are sorted by host.
 */
export function formatQuorumConfig(config: QuorumConfig): string {
  const lines: string[] = [];
  for (const server of bySid(config.servers).values()) lines.push(`server.${server.sid}=${formatQuorumServer(server)}`);
  for (const [group, members] of bySid(config.groups)) {
    lines.push(`group.${group}=${[...members].sort((a, b) => a - b).join(':')}`);
  }
  for (const [sid, weight] of bySid(config.weights)) lines.push(`weight.${sid}=${weight}`);
  lines.push(`version=${config.version.toString(16)}`);
  return lines.join('\n');
}

/** `host:2888:3888:participant;clientHost:2181`: the text after `server.N=`. */
export function formatQuorumServer({ addresses, role, clientAddress }: QuorumServer): string {
  const sorted = [...addresses].sort((a, b) => (a.host < b.host ? -1 : a.host > b.host ? 1 : 0));
  const where = sorted.map(({ host, quorumPort, electionPort }) => `${formatHost(host)}:${quorumPort}:${electionPort}`).join('|');
  return `${where}:${role}${clientAddress === undefined ? '' : `;${formatHostPort(clientAddress)}`}`;
}

/** Parses the text after `server.N=`. Errors refer to `line`. Throws `QuorumConfigError`. */
export function parseQuorumServer(sid: Sid, value: string, line = `server.${sid}`): QuorumServer {
  const refuse = (): never => {
    throw new QuorumConfigError(
      line,
      `${line} must be host:quorumPort:electionPort[:participant|observer][;[clientHost:]clientPort], not "${value}".`,
    );
  };
  const [serverPart, clientPart, ...more] = splitList(value, ';').map((part) => part.trim());
  if (serverPart === undefined || more.length > 0) return refuse();
  const addresses: QuorumAddress[] = [];
  let role: PeerRole | undefined;
  for (const part of splitList(serverPart, '|')) {
    const [host, quorumText, electionText, roleText, ...tooMany] = splitHost(part.trim()) ?? [];
    const quorumPort = parsePort(quorumText);
    const electionPort = parsePort(electionText);
    if (host === undefined || host === '' || quorumPort === undefined || electionPort === undefined || tooMany.length > 0) return refuse();
    if (quorumPort === electionPort) {
      throw new QuorumConfigError(line, `${line} has ${quorumPort} as its quorum port and its election port: choose two different ports.`);
    }
    addresses.push({ host, quorumPort, electionPort });
    if (roleText === undefined) continue;
    const said = parseRole(line, roleText);
    if (role !== undefined && role !== said) {
      throw new QuorumConfigError(line, `${line} has an address as ${role} and another as ${said}: give the server one role.`);
    }
    role = said;
  }
  if (addresses.length === 0) return refuse();
  const server = { sid, addresses, role: role ?? 'participant' };
  return clientPart === undefined ? server : { ...server, clientAddress: parseClientAddress(clientPart) ?? refuse() };
}

function parseClientAddress(text: string): HostPort | undefined {
  const [first, second, ...more] = splitHost(text) ?? [];
  if (first === undefined || more.length > 0) return undefined;
  const [host, port] = second === undefined ? ['0.0.0.0', parsePort(first)] : [first, parsePort(second)];
  return host === '' || port === undefined ? undefined : { host, port };
}

function parseRole(line: string, text: string): PeerRole {
  const role = text.trim().toLowerCase();
  if (role !== 'participant' && role !== 'observer') {
    throw new QuorumConfigError(line, `${line} has the role "${text}": it must be participant or observer.`);
  }
  return role;
}

function parseGroup(line: string, value: string): Sid[] {
  return splitList(value, ':').map((text) => wholeNumber(line, text.trim(), 'a list of server numbers separated by colons'));
}

function parseVersion(line: string, value: string): number {
  const version = /^[0-9a-f]{1,16}$/i.test(value) ? Number.parseInt(value, 16) : Number.NaN;
  if (!Number.isSafeInteger(version)) throw new QuorumConfigError(line, `${line} must be a hexadecimal number below 2^53, not "${value}".`);
  return version;
}

function wholeNumber(line: string, text: string, what: string): number {
  const number = /^\+?\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(number)) {
    throw new QuorumConfigError(line, `${line}: ${what} must be in decimal digits, not "${text}".`);
  }
  return number;
}

/**
 * Checks that every participant is in exactly one group and has a weight; sets missing weights to
 * 1.
 */
function checkGroups(servers: Map<Sid, QuorumServer>, groups: Map<number, Sid[]>, weights: Map<Sid, number>): void {
  const groupOf = new Map<Sid, number>();
  for (const [group, members] of groups) {
    for (const sid of members) {
      const other = groupOf.get(sid);
      if (other !== undefined) {
        const where = other === group ? `group.${group} twice` : `group.${other} and in group.${group}`;
        throw new QuorumConfigError(`group.${group}`, `server ${sid} is in ${where}: list it in exactly one group.`);
      }
      groupOf.set(sid, group);
    }
  }
  for (const server of servers.values()) {
    if (!isParticipant(server)) continue;
    if (!groupOf.has(server.sid)) {
      throw new QuorumConfigError(
        `server.${server.sid}`,
        `server ${server.sid} is in no group: with groups or weights, list every participant in one.`,
      );
    }
    if (!weights.has(server.sid)) weights.set(server.sid, 1);
  }
  for (const [sid, group] of groupOf) {
    if (!weights.has(sid)) {
      throw new QuorumConfigError(`group.${group}`, `group.${group} names server ${sid}, which is not a participant and has no weight.`);
    }
  }
}

function bySid<T>(map: ReadonlyMap<number, T>): Map<number, T> {
  return new Map([...map].sort(([a], [b]) => a - b));
}
