/**
 * Compares what two servers have sent to the same clients, message by message and field by field.
 *
 * Values that must differ are normalized first: session ids become names, passwords become whether
 * they follow ZooKeeper's rule, times become whether they are set and in order. What the protocol
 * leaves open is sorted: names of children, ephemeral znodes, identities, and the events of one
 * closeSession. zxids are compared by value; after a recorded difference between the servers, by
 * their increments.
 */
import { OpCode, type SessionId } from '@tskeeper/protocol';

import { type Message, type MultiResult, opName, readEvent, readReply, type ReplyValue, sessionPasswd, type Stat } from '@tskeeper/harness';
import type { Entry } from './side.ts';
import type { Op, Quirk } from './step.ts';

/** One field in which the servers differ. */
export interface Difference {
  readonly round: number;
  readonly client: number;
  /** The operation's name, or the kind of message. */
  readonly op: string;
  readonly text: string;
  readonly quirk: Quirk | undefined;
  readonly field: string;
  readonly a: string;
  readonly b: string;
}

type Plain = string | number | boolean | null | undefined | Plain[] | { [field: string]: Plain };

/** The distance of the second server's zxids from the first's, from some zxid of the second on. */
interface ZxidOffset {
  readonly from: number;
  readonly by: number;
}

export class Comparison {
  readonly #namesA: ReadonlyMap<SessionId, string>;
  readonly #namesB: ReadonlyMap<SessionId, string>;
  readonly #zxidOffsets: ZxidOffset[] = [{ from: -Infinity, by: 0 }];
  /**
   * Exceptions to the shifts for the zxid in reply headers, while the second server has used no
   * further zxid.
   */
  readonly #headerZxids = new Map<number, number>();
  /** zxids of the first server whose events have no particular order. */
  readonly #unordered = new Set<number>();
  readonly differences: Difference[] = [];
  messagesCompared = 0;
  eventsCompared = 0;
  #round = 0;

  constructor(namesA: ReadonlyMap<SessionId, string>, namesB: ReadonlyMap<SessionId, string>) {
    this.#namesA = namesA;
    this.#namesB = namesB;
  }

  /** The second server's zxid for one of the first's. */
  toSecondZxid(zxid: number): number {
    for (let i = this.#zxidOffsets.length - 1; i > 0; i--) {
      const { from, by } = this.#zxidOffsets[i]!;
      if (zxid - by >= from) return zxid - by;
    }
    return zxid;
  }

  #toFirstZxid(zxid: number): number {
    // -1 and 0 are not zxids but special values.
    if (zxid <= 0) return zxid;
    for (let i = this.#zxidOffsets.length - 1; i >= 0; i--) {
      const { from, by } = this.#zxidOffsets[i]!;
      if (zxid >= from) return zxid + by;
    }
    return zxid;
  }

  /**
   * Compares the logs of one round; those of `first`, who acted last, before the others, since
   * zxids may diverge at the round's end.
   */
  compareRound(round: number, logsA: readonly Entry[][], logsB: readonly Entry[][], first: number): void {
    this.#round = round;
    this.#unordered.clear();
    for (const log of logsA) {
      for (const { message, op } of log) {
        if (message.kind === 'reply' && op?.type === OpCode.closeSession) this.#unordered.add(message.zxid);
      }
    }
    const order = logsA.map((_, client) => client).toSorted((x, y) => Number(y === first) - Number(x === first));
    for (const client of order) this.#compareLogs(client, logsA[client]!, logsB[client]!);
  }

  #compareLogs(client: number, a: readonly Entry[], b: readonly Entry[]): void {
    let atA = 0;
    let atB = 0;
    // What follows an odd request, a close or the reply to a ping, counts as its consequence.
    let quirk: Quirk | undefined;
    for (;;) {
      const eventsA = this.#eventsFrom(a, atA, (zxid) => zxid);
      const eventsB = this.#eventsFrom(b, atB, (zxid) => this.#toFirstZxid(zxid));
      atA += eventsA.length;
      atB += eventsB.length;
      this.#compareEvents(client, eventsA, eventsB, a[atA]?.op ?? b[atB]?.op);
      const entryA = a[atA++];
      const entryB = b[atB++];
      if (entryA === undefined && entryB === undefined) return;
      const op = entryA?.op ?? entryB?.op;
      if (op !== undefined && op.type !== OpCode.ping) ({ quirk } = op);
      this.#compareEntries(client, entryA, entryB, quirk);
    }
  }

  #eventsFrom(log: readonly Entry[], start: number, zxidOf: (zxid: number) => number): Plain[] {
    const events: { zxid: number; plain: Plain }[] = [];
    for (let at = start; log[at]?.message.kind === 'event'; at++) {
      const message = log[at]!.message as Message & { kind: 'event' };
      const zxid = zxidOf(message.zxid);
      events.push({ zxid, plain: { zxid, err: message.err, ...readEvent(message.body) } });
    }
    // Sort only the events of a closeSession.
    for (let start0 = 0; start0 < events.length;) {
      const { zxid } = events[start0]!;
      let end = start0 + 1;
      while (end < events.length && events[end]!.zxid === zxid) end++;
      if (this.#unordered.has(zxid)) {
        const inOrder = events.slice(start0, end).toSorted((x, y) => compareText(JSON.stringify(x.plain), JSON.stringify(y.plain)));
        events.splice(start0, end - start0, ...inOrder);
      }
      start0 = end;
    }
    return events.map((event) => event.plain);
  }

  #compareEvents(client: number, a: readonly Plain[], b: readonly Plain[], before: Op | undefined): void {
    this.eventsCompared += Math.max(a.length, b.length);
    const textsA = a.map((event) => JSON.stringify(event));
    const textsB = b.map((event) => JSON.stringify(event));
    if (textsA.length === textsB.length) {
      for (let i = 0; i < a.length; i++) {
        if (textsA[i] !== textsB[i]) this.#compareFields(client, 'event', `${textsA[i]} before ${before?.text}`, undefined, '', a[i], b[i]);
      }
      return;
    }
    // One server has sent more: name what the other lacks.
    const onlyA = without(textsA, textsB);
    const onlyB = without(textsB, textsA);
    for (const text of onlyA) this.#add(client, 'event', `before ${before?.text}`, undefined, 'missing', text, '(none)');
    for (const text of onlyB) this.#add(client, 'event', `before ${before?.text}`, undefined, 'unexpected', '(none)', text);
  }

  #compareEntries(client: number, a: Entry | undefined, b: Entry | undefined, quirk: Quirk | undefined): void {
    this.messagesCompared += 1;
    const op = a?.op ?? b?.op;
    const name = op === undefined ? (a?.message.kind ?? b?.message.kind ?? '') : opName(op.type);
    const text = op?.text ?? '';
    const kindA = a?.message.kind ?? '(none)';
    const kindB = b?.message.kind ?? '(none)';
    if (a === undefined || b === undefined || kindA !== kindB) {
      this.#add(client, name, text, quirk, 'message', describe(kindA, a), describe(kindB, b));
      return;
    }
    if (a.message.kind === 'reply' && b.message.kind === 'reply')
      this.#compareHeaderZxids(client, name, text, quirk, a.message.zxid, b.message.zxid);
    const plainA = this.#plain(a, (zxid) => zxid, this.#namesA);
    const plainB = this.#plain(b, (zxid) => this.#toFirstZxid(zxid), this.#namesB);
    if (JSON.stringify(plainA) !== JSON.stringify(plainB)) this.#compareFields(client, name, text, quirk, '', plainA, plainB);
  }

  #compareHeaderZxids(client: number, name: string, text: string, quirk: Quirk | undefined, a: number, b: number): void {
    const seen = this.#toFirstZxid(b);
    // Of the replies with the zxid at which the servers diverged, those before that point match one
    // way, those after it the other.
    if (seen === a || this.#headerZxids.get(b) === a) return;
    this.#add(client, name, text, quirk, 'zxid', String(a), String(seen));
    if (a <= 0) return;
    if (b > 0) this.#recordDivergence(a, b);
    // The second server has used no zxid and closed the connection: it is still where the first was
    // before.
    else if (quirk === 'delete-container') this.#recordDivergence(a, this.toSecondZxid(a - 1));
  }

  /** From here on compare how far each server's zxids advance. */
  #recordDivergence(a: number, b: number): void {
    this.#headerZxids.set(b, a);
    this.#zxidOffsets.push({ from: b + 1, by: a - b });
  }

  #plain({ message, op }: Entry, zxidOf: (zxid: number) => number, names: ReadonlyMap<SessionId, string>): Plain {
    switch (message.kind) {
      case 'reply':
        return { xid: message.xid, err: message.err, ...plainValue(readReply(op?.type ?? 0, message.err, message.body), zxidOf, names) };
      case 'handshake': {
        const { protocolVersion, timeOut, sessionId, passwd, readOnly, rest } = message;
        const session = sessionId === 0n ? 'none' : (names.get(sessionId) ?? 'granted');
        const passwdForm = passwd.equals(sessionPasswd(sessionId)) ? 'by the rule' : passwd.toString('hex');
        return { protocolVersion, timeOut, session, passwd: passwdForm, readOnly, rest: rest.toString('hex') };
      }
      case 'unreadable':
        return { bytes: message.bytes.toString('hex') };
      default:
        return {};
    }
  }

  #compareFields(client: number, op: string, text: string, quirk: Quirk | undefined, field: string, a: Plain, b: Plain): void {
    if (JSON.stringify(a) === JSON.stringify(b)) return;
    if (isRecord(a) && isRecord(b)) {
      for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
        this.#compareFields(client, op, text, quirk, field === '' ? key : `${field}.${key}`, a[key], b[key]);
      }
    } else if (Array.isArray(a) && Array.isArray(b) && a.length === b.length) {
      for (let i = 0; i < a.length; i++) this.#compareFields(client, op, text, quirk, `${field}[]`, a[i], b[i]);
    } else {
      this.#add(client, op, text, quirk, field, shorten(JSON.stringify(a) ?? 'absent'), shorten(JSON.stringify(b) ?? 'absent'));
    }
  }

  #add(client: number, op: string, text: string, quirk: Quirk | undefined, field: string, a: string, b: string): void {
    this.differences.push({ round: this.#round, client, op, text: shorten(text), quirk, field, a, b });
  }
}

function isRecord(value: Plain): value is { [field: string]: Plain } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function plainStat(stat: Stat, zxidOf: (zxid: number) => number, names: ReadonlyMap<SessionId, string>): Plain {
  const { ctime, mtime, ephemeralOwner } = stat;
  return {
    czxid: zxidOf(stat.czxid),
    mzxid: zxidOf(stat.mzxid),
    pzxid: zxidOf(stat.pzxid),
    // Each server has its own clock, so only the order of the two times is meaningful.
    times: ctime === 0 ? `unset, ${mtime === 0 ? 'unset' : 'set'}` : mtime >= ctime ? 'in order' : 'out of order',
    version: stat.version,
    cversion: stat.cversion,
    aversion: stat.aversion,
    ephemeralOwner: ephemeralOwner === 0n ? 'none' : (names.get(ephemeralOwner) ?? ephemeralOwner.toString(16)),
    dataLength: stat.dataLength,
    numChildren: stat.numChildren,
  };
}

function plainValue(
  value: ReplyValue,
  zxidOf: (zxid: number) => number,
  names: ReadonlyMap<SessionId, string>,
): { [field: string]: Plain } {
  const plain: { [field: string]: Plain } = {};
  if (value.path !== undefined) plain.path = value.path;
  if (value.stat !== undefined) plain.stat = plainStat(value.stat, zxidOf, names);
  if (value.data !== undefined) plain.data = value.data === null ? null : value.data.toString('latin1');
  if (value.acl !== undefined) plain.acl = value.acl?.map(({ scheme, id, perms }) => `${scheme}:${id}:${perms}`) ?? null;
  if (value.children !== undefined) plain.children = sorted(value.children);
  if (value.ephemerals !== undefined) plain.ephemerals = sorted(value.ephemerals);
  if (value.clientInfo !== undefined)
    plain.clientInfo = sorted(value.clientInfo?.map(({ authScheme, user }) => `${authScheme}:${user}`) ?? null);
  if (value.totalNumber !== undefined) plain.totalNumber = value.totalNumber;
  if (value.err !== undefined) plain.recordErr = value.err;
  if (value.token !== undefined) plain.token = value.token === null ? null : value.token.toString('hex');
  if (value.results !== undefined) {
    plain.results = value.results.map((result: MultiResult) => ({
      type: result.type,
      err: result.err,
      ...(result.value === undefined ? {} : plainValue(result.value, zxidOf, names)),
    }));
  }
  if (value.rest !== undefined) plain.rest = value.rest;
  if (value.unreadable !== undefined) plain.unreadable = value.unreadable;
  return plain;
}

function sorted(list: readonly (string | null)[] | null): Plain {
  return list === null ? null : list.toSorted((x, y) => compareText(String(x), String(y)));
}

function compareText(x: string, y: string): number {
  return x < y ? -1 : x > y ? 1 : 0;
}

/** The elements of `list` that are not in `other`, counted with repetitions. */
function without(list: readonly string[], other: readonly string[]): string[] {
  const left = [...other];
  return list.filter((text) => {
    const at = left.indexOf(text);
    if (at !== -1) left.splice(at, 1);
    return at === -1;
  });
}

function describe(kind: string, entry: Entry | undefined): string {
  if (entry?.message.kind !== 'reply') return kind;
  return `${kind} to ${entry.op?.text ?? `xid ${entry.message.xid}`}, err ${entry.message.err}`;
}

function shorten(text: string): string {
  return text.length <= 300 ? text : `${text.slice(0, 280)}… (${text.length} characters)`;
}
