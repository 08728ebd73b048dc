/** The texts of zkCli, which people and scripts know. */
import { KeeperError, type Stat, type WatchedEvent } from '@tskeeper/client';
import { type Acl, errorText, formatSessionId, type Id, permsText } from '@tskeeper/protocol';
import { timeText } from '../files/views.ts';

/** The format of zkCli's StatPrinter. */
export function statLines(stat: Stat): string {
  return [
    `cZxid = ${formatHex(stat.czxid)}`,
    `ctime = ${javaDate(stat.ctime)}`,
    `mZxid = ${formatHex(stat.mzxid)}`,
    `mtime = ${javaDate(stat.mtime)}`,
    `pZxid = ${formatHex(stat.pzxid)}`,
    `cversion = ${stat.cversion}`,
    `dataVersion = ${stat.version}`,
    `aclVersion = ${stat.aversion}`,
    `ephemeralOwner = ${formatSessionId(stat.ephemeralOwner)}`,
    `dataLength = ${stat.dataLength}`,
    `numChildren = ${stat.numChildren}`,
  ].join('\n');
}

export function statView(stat: Stat): Record<string, unknown> {
  return {
    czxid: formatHex(stat.czxid),
    ctime: timeText(stat.ctime),
    mzxid: formatHex(stat.mzxid),
    mtime: timeText(stat.mtime),
    pzxid: formatHex(stat.pzxid),
    cversion: stat.cversion,
    version: stat.version,
    aversion: stat.aversion,
    ephemeralOwner: formatSessionId(stat.ephemeralOwner),
    dataLength: stat.dataLength,
    numChildren: stat.numChildren,
  };
}

export function formatHex(zxid: bigint): string {
  return `0x${BigInt.asUintN(64, zxid).toString(16)}`;
}

/** `Fri Nov 20 09:17:27 UTC 2026`: the format of Java's Date, in the time zone of this machine. */
export function javaDate(ms: number, timeZone?: string): string {
  if (Math.abs(ms) > 8.64e15) return `${ms}`;
  const parts = new Map(
    new Intl.DateTimeFormat('en-US', {
      weekday: 'short',
      month: 'short',
      day: '2-digit',
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
      hourCycle: 'h23',
      year: 'numeric',
      timeZone,
    })
      .formatToParts(ms)
      .map(({ type, value }) => [type, value]),
  );
  const part = (type: Intl.DateTimeFormatPartTypes) => parts.get(type) ?? '';
  return `${part('weekday')} ${part('month')} ${part('day')} ${part('hour')}:${part('minute')}:${part('second')} ${zoneName(ms, timeZone)} ${part('year')}`;
}

/**
 * A locale has short names for the zones of its own region and offsets for others, so several
 * locales are tried.
 */
function zoneName(ms: number, timeZone: string | undefined): string {
  const names = ['en-US', 'en-GB', 'en-AU', 'en-IN', 'en-ZA', 'en-NZ'].map((locale) => {
    const parts = new Intl.DateTimeFormat(locale, { timeZoneName: 'short', timeZone }).formatToParts(ms);
    return parts.find(({ type }) => type === 'timeZoneName')?.value ?? '';
  });
  return names.find((name) => /^[A-Z]+$/.test(name)) ?? names[0]!;
}

/** zkCli prints an id in the format of its record, `'world,'anyone`, and a line break. */
export function aclLines(acl: readonly Acl[]): string {
  return acl.map(({ perms, id }) => `${recordText(id)}\n: ${permsText(perms)}`).join('\n');
}

function recordText({ scheme, id }: Id): string {
  return `${fieldText(scheme)},${fieldText(id)}`;
}

const escapes: Readonly<Record<string, string>> = { '\0': '%00', '\n': '%0A', '\r': '%0D', ',': '%2C', '}': '%7D', '%': '%25' };

function fieldText(text: string | null): string {
  if (text === null) return '';
  return `'${Array.from(text, (character) => escapes[character] ?? character).join('')}`;
}

/** The format of a Java list. */
export function listText(list: readonly string[]): string {
  return `[${list.join(', ')}]`;
}

/** The format of zkCli, followed by the reason for the state of the session. */
export function eventLines(event: WatchedEvent): string {
  const reason = event.type === 'None' && event.reason !== undefined ? `\n${event.reason}` : '';
  return `WATCHER::\n\nWatchedEvent state:${event.state} type:${event.type} path:${event.path} zxid: ${event.zxid ?? -1n}${reason}`;
}

export function eventView(event: WatchedEvent): Record<string, unknown> {
  return { event: event.type, state: event.state, path: event.path, zxid: event.zxid === undefined ? null : formatHex(event.zxid) };
}

/** What zkCli prints when a server refuses an operation. */
export function errorTextOf(error: KeeperError): string {
  // The user did not give the path of the configuration's znode.
  const path = error.op === 'reconfig' ? null : (error.path ?? null);
  switch (error.code) {
    case 'NoNode':
      return `Node does not exist: ${path}`;
    case 'NoChildrenForEphemerals':
      return `Ephemerals cannot have children: ${path}`;
    case 'NodeExists':
      return `Node already exists: ${path}`;
    case 'NotEmpty':
      return `Node not empty: ${path}`;
    case 'NotReadOnly':
      return `Not a read-only call: ${path}`;
    case 'InvalidACL':
      return `Acl is not valid : ${path}`;
    case 'NoAuth':
      return `Insufficient permission : ${path}`;
    case 'BadArguments':
      return `Arguments are not valid : ${path}`;
    case 'BadVersion':
      return `version No is not valid : ${path}`;
    case 'QuotaExceeded':
      return `Quota has exceeded : ${path}`;
    case 'ReconfigInProgress':
      return 'Another reconfiguration is in progress -- concurrent reconfigs not supported (yet)';
    case 'NewConfigNoQuorum':
      return 'No quorum of new config is connected and up-to-date with the leader of last commmitted config - try invoking reconfiguration after new servers are connected and synced';
    case 'ConnectionLoss':
    case 'SessionExpired':
      // The client's message says why, which helps more than the code.
      return error.message;
    default:
      return `KeeperErrorCode = ${errorText(error.errno)}${path === null ? '' : ` for ${path}`}`;
  }
}

/** Why a path is invalid, in the words of ZooKeeper's PathUtils; undefined if it is valid. */
export function invalidPathReason(path: string): string | undefined {
  if (path.length === 0) return 'Path length must be > 0';
  if (!path.startsWith('/')) return 'Path must start with / character';
  if (path.length === 1) return undefined;
  if (path.endsWith('/')) return 'Path must not end with / character';
  for (let at = 1; at < path.length; at++) {
    const reason = invalidCharacterReason(path, at);
    if (reason !== undefined) return `Invalid path string "${path}" caused by ${reason} @${at}`;
  }
  return undefined;
}

function invalidCharacterReason(path: string, at: number): string | undefined {
  const code = path.charCodeAt(at);
  const endsName = at + 1 === path.length || path[at + 1] === '/';
  if (code === 0) return 'null character not allowed';
  if (path[at] === '/') return path[at - 1] === '/' ? 'empty node name specified' : undefined;
  if (path[at] === '.' && endsName && (path[at - 1] === '/' || (path[at - 1] === '.' && path[at - 2] === '/'))) {
    return 'relative paths not allowed';
  }
  const refused = code <= 0x1f || (code >= 0x7f && code <= 0x9f) || (code >= 0xd800 && code <= 0xf8ff) || code >= 0xfff0;
  return refused ? 'invalid character' : undefined;
}

/** The hex dump of netty, which zkCli prints for `get -x`. */
export function hexDump(data: Uint8Array): string {
  if (data.length === 0) return '';
  const ruler = `+--------+${'-'.repeat(49)}+${'-'.repeat(16)}+`;
  const lines = [
    `         +${'-'.repeat(49)}+`,
    `         |  ${Array.from({ length: 16 }, (_, at) => at.toString(16)).join('  ')} |`,
    ruler,
  ];
  for (let at = 0; at < data.length; at += 16) {
    const row = data.subarray(at, at + 16);
    const bytes = Array.from(row, (byte) => ` ${byte.toString(16).padStart(2, '0')}`).join('');
    const texts = Array.from(row, (byte) => (byte <= 0x1f || byte >= 0x7f ? '.' : String.fromCharCode(byte))).join('');
    lines.push(`|${at.toString(16).padStart(8, '0')}|${bytes.padEnd(48)} |${texts.padEnd(16)}|`);
  }
  return [...lines, ruler].join('\n');
}
