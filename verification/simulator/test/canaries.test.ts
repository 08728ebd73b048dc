/**
 * A checker that cannot fail checks nothing: each checker gets a true recording with one change.
 */
import { deserialize, serialize } from 'node:v8';
import {
  counterOf,
  epochOf,
  ErrorCode,
  EventType,
  type GetChildren2Reply,
  type GetDataReply,
  makeZxid,
  type MultiReply,
  OpCode,
  sessionIdOf,
  type Stat,
  type StatReply,
  systemPath,
} from '@tskeeper/protocol';
import { describe, expect, test, vi } from 'vitest';
import { breadth, isFull, sample } from '../../../test/breadth.ts';
import {
  check,
  type CheckerName,
  checkers,
  type CnxnRecord,
  type Item,
  type PeerEvent,
  type Recording,
  replay,
  type Request,
  runSeed,
} from '../src/index.ts';
import { sessionPassword as modelPassword } from '../src/model/session-password.ts';
import { readOnlyStreams } from '../src/replay/read-only-streams.ts';
import type { ReplayedTxn } from '../src/replay/replay-result.ts';
import { writeKey } from '../src/record/write-key.ts';
import { Run } from '../src/run/run.ts';

/** Not every run contains what a change needs. One run in this many does. */
const seedMax = breadth(2, 120);
/**
 * The first seed to try for changes that suit only few runs. A seed is valid only for its commit,
 * so the others are tried as well.
 */
const firstSeeds: Readonly<Record<string, number>> = {
  'an event of a znode that the client may not read': 132,
  'a configuration that no server has had, in read-only mode': 306,
  'a read of a znode that was deleted long before': 36,
  'a server whose digest differs': 39,
  'a txn that one of two voters committed alone against the word of the oracle': 40,
  'a session that became global although none may': 3,
  'a session that became global before its client had sent an ephemeral': 3,
  'a local session that another server resumed': 14,
  'a local session that was resumed after its end': 14,
  'a local session that expired although its client had just sent something': 3,
  'a local session that lived on in silence': 3,
  'a write that a server in read-only mode acknowledged': 24,
  'a sync that a server in read-only mode answered': 24,
  'a client that had not asked for a read-only server': 24,
  'a session of the ensemble that a read-only server declared expired': 24,
  'read-only mode that began too early': 24,
  'another value at a server in read-only mode': 24,
  'a server that goes back to an earlier configuration': 19,
  'a configuration that no txn has made': 19,
  'a reconfiguration that a server activated before others had it on disk': 19,
  'a server that ends with another configuration': 19,
  'a voter that observes in the end': 19,
};

/** The run contains nothing that the change could be applied to. */
class NothingOfTheKind extends Error {}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

function found<T>(what: T | undefined): T {
  if (what === undefined) throw new NothingOfTheKind();
  return what;
}

function change<T extends object>(what: T | undefined, changes: Partial<T>): void {
  Object.assign(found(what), changes);
}

const requestsOf = ({ cnxns }: Recording): Request[] => cnxns.flatMap(({ requests }) => requests);
const answered = (recording: Recording, name: string, err: number = ErrorCode.Ok): Request =>
  found(requestsOf(recording).findLast((request) => request.name === name && request.reply?.err === err));
const isWriteRequest = ({ name }: Request): boolean =>
  name !== undefined && ['create', 'create2', 'delete', 'setData', 'multi', 'setACL'].includes(name);
const acknowledged = (recording: Recording): Request[] =>
  requestsOf(recording).filter((each) => isWriteRequest(each) && each.reply !== undefined);
const logOf = (recording: Recording, type: number) => found(recording.log.findLast(({ logged }) => logged.header.type === type));
const statOf = (request: Request): Mutable<Stat> => (request.reply!.body as { stat: Mutable<Stat> }).stat;
const isPlainWrite = (item: Item | undefined): boolean => item?.kind === 'reply' && isWriteRequest(item.request);

function turnRound(list: unknown[]): void {
  list.splice(0, list.length, ...list.toReversed());
}

/** A connection with an event directly before a reply. The event has an ordinary zxid. */
function eventBeforeReply({ cnxns }: Recording, wanted: (cnxn: CnxnRecord) => boolean = () => true): { cnxn: CnxnRecord; at: number } {
  for (const cnxn of cnxns.toReversed()) {
    const at = cnxn.items.findIndex(
      (item, index) => item.kind === 'event' && item.zxid > 0 && cnxn.items[index + 1]?.kind === 'reply' && cnxn.items[index + 1]!.zxid > 0,
    );
    if (at !== -1 && wanted(cnxn)) return { cnxn, at };
  }
  throw new NothingOfTheKind();
}

const hasPersistent = ({ requests }: CnxnRecord): boolean =>
  requests.some(({ name }) => name === 'addWatch' || name === 'setWatches2' || name === 'setWatches');

/** A session that ended without a request of its client. */
function expired({ log }: Recording) {
  return found(log.findLast(({ logged }) => logged.header.type === OpCode.closeSession && logged.header.cxid === 0));
}

function firstServing(peers: readonly PeerEvent[], role: string, epoch: number) {
  const event = peers.find((each) => each.kind === 'serves' && each.role === role && each.epoch === epoch);
  return found(event) as Mutable<Extract<PeerEvent, { kind: 'serves' }>>;
}

/** Whether `later` is the next txn that the same server applied in the same epoch. */
function isNext(event: PeerEvent, later: PeerEvent): boolean {
  return event.kind === 'applied' && later.kind === 'applied' && later.server === event.server && later.zxid === event.zxid + 1;
}

/** A request that a server in read-only mode refused. */
function refusedReadOnly({ readOnlyCnxns }: Recording, name: string): Request {
  const requests = readOnlyCnxns.flatMap((cnxn) => cnxn.requests);
  return found(requests.find((request) => request.name === name && request.reply?.err === ErrorCode.NotReadOnly));
}

const changes: [checker: CheckerName, what: string, change: (recording: Recording) => void][] = [
  ['totalOrder', 'a gap in the log', ({ log }) => void log.splice(5, 1)],
  [
    'totalOrder',
    'a write that no client requested',
    (recording) => change(logOf(recording, OpCode.setData).logged.header, { cxid: 99_999 }),
  ],
  [
    'totalOrder',
    'a second createSession of a session whose id a client received',
    ({ log, cnxns }) => {
      const isTold = ({ logged: { header, txn } }: Recording['log'][number]) =>
        txn.kind === 'createSession' && cnxns.some(({ session }) => session === sessionIdOf(header.clientHigh, header.clientLow));
      const { header } = found(log.find(isTold)).logged;
      const write = found(log.find(({ logged }) => logged.txn.kind === 'error' && logged.header.zxid > header.zxid)).logged;
      change(write.header, { clientHigh: header.clientHigh, clientLow: header.clientLow, cxid: 0 });
      change(write, { txn: { kind: 'error', err: ErrorCode.SessionMoved } });
    },
  ],
  [
    'linearizableWrites',
    'a write that was requested after a later write was acknowledged',
    (recording) => change(acknowledged(recording)[0], { sentMs: recording.endedMs }),
  ],
  ['writeReplies', 'another error', (recording) => change(answered(recording, 'setData').reply, { err: ErrorCode.NoNode })],
  [
    'throttledOps',
    'a write that a server with enough room refused',
    (recording) => change(acknowledged(recording).at(-1)!.reply, { err: ErrorCode.ThrottledOp }),
  ],
  [
    'totalOrder',
    'a write that was refused with ThrottledOp and was applied',
    (recording) => change(answered(recording, 'setData').reply, { err: ErrorCode.ThrottledOp }),
  ],
  [
    'durability',
    'the reply to a write of one process, sent for a write of another process with the same session and xid',
    (recording) => {
      const { txns } = replay(recording);
      const written = txns.filter(({ request, type, loggedErr }) => request !== undefined && type === OpCode.setData && loggedErr === 0);
      const isLater = (txn: ReplayedTxn, other: ReplayedTxn) => other.session === txn.session && other.zxid > txn.zxid;
      const first = found(written.find((txn) => written.some((other) => isLater(txn, other) && other.request!.reply !== undefined)));
      const second = written.find((other) => isLater(first, other) && other.request!.reply !== undefined)!;
      change(second.request! as Mutable<Request>, { xid: first.request!.xid });
      change(recording.log.find(({ logged }) => logged.header.zxid === second.zxid)!.logged.header, { cxid: first.request!.xid });
      change(second.request!.reply, { zxid: first.zxid });
    },
  ],
  ['writeReplies', 'another path', (recording) => change(answered(recording, 'create2').reply, { body: { path: '/another' } })],
  [
    'writeReplies',
    'a logged error for a write that should have succeeded',
    (recording) => {
      const { txns } = replay(recording);
      const unanswered = found(
        txns.find(
          ({ request, loggedErr, type }) =>
            request?.reply === undefined && request !== undefined && loggedErr === 0 && type === OpCode.setData,
        ),
      );
      const entry = found(recording.log.find(({ logged }) => logged.header.zxid === unanswered.zxid));
      change(entry.logged, { txn: { kind: 'error', err: ErrorCode.BadVersion } });
    },
  ],
  [
    'registerLinearizability',
    'a version that no write produced',
    (recording) => {
      const request = found(
        requestsOf(recording).findLast(
          ({ name, record, reply }) => name === 'exists' && reply?.err === ErrorCode.Ok && (record as { path: string }).path === '/b',
        ),
      );
      statOf(request).version += 1000;
    },
  ],
  ...(
    [
      ['the root', /^\/$/],
      ['a sequential znode', /\d{10}$/],
      ['a container or TTL znode', /^\/(k1|k2|t1|a\/t2)$/],
    ] as const
  ).map(([what, pattern]): (typeof changes)[number] => [
    'registerLinearizability',
    `data of ${what} that no client wrote`,
    (recording) => {
      const request = found(
        requestsOf(recording).findLast(
          ({ name, record, reply }) => name === 'getData' && reply?.err === ErrorCode.Ok && pattern.test((record as { path: string }).path),
        ),
      );
      change(request.reply!.body as GetDataReply, { data: Buffer.from('no client wrote this') });
    },
  ]),
  [
    'registerLinearizability',
    'a znode that a removeRecursive has left behind',
    ({ log, cnxns }) => {
      const isRemoval = ({ logged: { header, txn } }: Recording['log'][number]) =>
        txn.kind === 'multi' &&
        txn.txns.length > 1 &&
        cnxns.some(({ requests }) => requests.some(({ name, reply }) => name === 'removeRecursive' && reply?.zxid === header.zxid));
      const { txn } = found(log.findLast(isRemoval)).logged;
      if (txn.kind === 'multi') change(txn, { txns: txn.txns.slice(1) });
    },
  ],
  [
    'registerLinearizability',
    'a tryRemove that removed a znode of another version',
    (recording) => {
      const deleted = new Set(recording.log.flatMap(({ logged: { header, txn } }) => (txn.kind === 'delete' ? [header.zxid] : [])));
      const request = found(requestsOf(recording).findLast(({ name, reply }) => name === 'tryRemove' && deleted.has(reply?.zxid ?? 0)));
      change(request.record as { version: number }, { version: 1000 });
    },
  ],
  [
    'registerLinearizability',
    'a read of a znode that was deleted long before',
    (recording) => {
      // A server of an ensemble may lag.
      if (recording.ensemble.size > 0) throw new NothingOfTheKind();
      const isRead = ({ name, record, reply }: Request) =>
        name === 'exists' && reply?.err === ErrorCode.NoNode && ['/a', '/b', '/c'].includes((record as { path: string }).path);
      const early = found(requestsOf(recording).find(isRead));
      const { path } = early.record as { path: string };
      const isThere = ({ name, record, reply }: Request) =>
        name === 'getData' && reply?.err === ErrorCode.Ok && (record as { path: string }).path === path;
      const late = found(requestsOf(recording).findLast(isThere));
      change(early, { sentMs: recording.endedMs });
      change(early.reply, { atMs: recording.endedMs });
      change(late, { sentMs: recording.endedMs });
      change(late.reply, { atMs: recording.endedMs });
    },
  ],
  [
    'fifoOrder',
    'two replies in reversed order',
    ({ cnxns }) =>
      turnRound(found(cnxns.find(({ items }) => items.filter(({ kind, zxid }) => kind === 'reply' && zxid > 0).length > 5)).items),
  ],
  [
    'fifoOrder',
    'writes of one connection in reversed order',
    ({ cnxns }) => turnRound(found(cnxns.find(({ items }) => items.filter(isPlainWrite).length > 4)).requests),
  ],
  [
    'fifoOrder',
    'a write over a connection that its session had already left',
    (recording) => {
      const { txns } = replay(recording);
      const written = new Set(txns.flatMap(({ request, loggedErr }) => (request !== undefined && loggedErr === 0 ? [request] : [])));
      const writes = ({ requests }: CnxnRecord) => requests.filter((request) => written.has(request) && isWriteRequest(request));
      for (const [at, left] of recording.cnxns.entries()) {
        const session = writes(left)[0]?.session;
        const next = recording.cnxns.slice(at + 1).find((cnxn) => writes(cnxn).length > 1 && writes(cnxn)[0]!.session === session);
        if (next === undefined) continue;
        const late = writes(next).at(-1)!;
        next.requests.splice(next.requests.indexOf(late), 1);
        left.requests.push(late);
        return;
      }
      throw new NothingOfTheKind();
    },
  ],
  [
    'quotas',
    'a refusal because of a quota without a hard limit',
    (recording) => {
      found(replay(recording).quotaDecisions.find(({ isRefused }) => isRefused));
      for (const { name, record } of requestsOf(recording)) {
        if (name !== 'multi') continue;
        for (const op of (record as { ops: { path?: string; data?: Buffer }[] }).ops) {
          if (op.path?.endsWith('/zookeeper_limits') === true) op.data = Buffer.from('count=3,bytes=-1');
        }
      }
    },
  ],
  ['reads', 'a Stat whose version is one too high', (recording) => void statOf(answered(recording, 'exists')).version++],
  [
    'reads',
    'a child that does not exist',
    (recording) => void (answered(recording, 'getChildren2').reply!.body as { children: string[] }).children.push('more'),
  ],
  [
    'reads',
    'a read that does not show the write before it',
    ({ cnxns }) => {
      for (const { items } of cnxns) {
        const at = items.findIndex(
          (item, index) => isPlainWrite(item) && items[index + 1]?.kind === 'reply' && !isPlainWrite(items[index + 1]),
        );
        if (at !== -1) return change(items[at + 1] as Mutable<Item>, { zxid: 1 });
      }
      throw new NothingOfTheKind();
    },
  ],
  [
    'singleSystemImage',
    'a zxid that decreases',
    ({ cnxns }) =>
      change(found(cnxns.find(({ items }) => items.length > 3 && items.every(({ zxid }) => zxid > 0))).items[2] as Mutable<Item>, {
        zxid: 1,
      }),
  ],
  [
    'singleSystemImage',
    'a client that is served although it has seen a later zxid than the server',
    ({ cnxns }) => {
      const cnxn = found(cnxns.find(({ session }) => (session ?? 0n) !== 0n));
      change(cnxn.handshake, { lastZxidSeen: 2 ** 50 });
    },
  ],
  [
    'nothingRolledBack',
    'a zxid in a Stat that no log contains',
    (recording) => void (statOf(answered(recording, 'exists')).mzxid += 2 ** 40),
  ],
  [
    'nothingRolledBack',
    'a reply with a zxid after the end of the log',
    ({ cnxns, log }) => {
      const item = found(cnxns.flatMap(({ items }) => items).find(({ kind }) => kind === 'reply'));
      change(item as Mutable<Item>, { zxid: log.at(-1)!.logged.header.zxid + 1 });
    },
  ],
  [
    'syncThenRead',
    'a sync whose reply has an older zxid than an acknowledged write',
    (recording) => change(answered(recording, 'sync').reply, { zxid: 1 }),
  ],
  [
    'multiAtomic',
    'a multi of which only a part failed',
    (recording) => {
      const request = found(
        requestsOf(recording).find(
          ({ name, reply }) =>
            name === 'multi' &&
            reply?.err === ErrorCode.Ok &&
            (reply.body as MultiReply).results.length > 1 &&
            (reply.body as MultiReply).results[0]!.kind === 'error',
        ),
      );
      ((request.reply!.body as MultiReply).results as unknown[])[0] = { kind: 'delete' };
    },
  ],
  [
    'multiAtomic',
    'a part of a multi with its own zxid',
    (recording) => {
      const results = requestsOf(recording).flatMap(({ name, reply }) =>
        name === 'multi' && reply?.err === ErrorCode.Ok ? (reply.body as MultiReply).results : [],
      );
      const part = found(results.find((result) => result.kind === 'setData')) as { stat: Mutable<Stat> };
      part.stat.mzxid--;
    },
  ],
  [
    'compareAndSet',
    'two changes of a znode that required the same version',
    ({ cnxns }) => {
      const { requests } = found(cnxns.find((cnxn) => cnxn.requests.some(isConditional)));
      requests.push({ ...found(requests.find(isConditional)), xid: 77_777 });
    },
  ],
  [
    'unknownOutcomes',
    'a write that was applied twice',
    (recording) => {
      const { atMs, logged } = logOf(recording, OpCode.setData);
      const zxid = recording.log.at(-1)!.logged.header.zxid + 1;
      recording.log.push({ atMs, bytes: 0, logged: { ...logged, header: { ...logged.header, zxid } } });
    },
  ],
  [
    'watchBeforeData',
    'an event after the reply that shows the change',
    (recording) => {
      const { cnxn, at } = eventBeforeReply(recording, (each) => !hasPersistent(each));
      cnxn.items.splice(at, 2, cnxn.items[at + 1]!, cnxn.items[at]!);
    },
  ],
  [
    'watchBeforeData',
    'a missing event',
    (recording) => {
      const { cnxn, at } = eventBeforeReply(recording, (each) => !hasPersistent(each));
      cnxn.items.splice(at, 1);
    },
  ],
  [
    'oneShotWatches',
    'an event that was delivered twice',
    (recording) => {
      const { cnxn, at } = eventBeforeReply(recording, (each) => !hasPersistent(each));
      cnxn.items.splice(at, 0, cnxn.items[at]!);
    },
  ],
  [
    'oneShotWatches',
    'an event of the wrong type',
    (recording) => {
      const { cnxn, at } = eventBeforeReply(recording, (each) => !hasPersistent(each));
      change(cnxn.items[at] as Extract<Mutable<Item>, { kind: 'event' }>, { type: EventType.dataWatchRemoved });
    },
  ],
  [
    'watchEventOrder',
    'two events in reversed order',
    ({ cnxns }) => {
      for (const { items, requests } of cnxns) {
        if (requests.some(({ name }) => name === 'addWatch')) continue;
        const at = items.findIndex(
          (item, index) =>
            item.kind === 'event' && items[index + 1]?.kind === 'event' && item.zxid > 0 && items[index + 1]!.zxid > item.zxid,
        );
        if (at === -1) continue;
        items.splice(at, 2, items[at + 1]!, items[at]!);
        return;
      }
      throw new NothingOfTheKind();
    },
  ],
  [
    'persistentWatches',
    'a missing event of a persistent watch',
    ({ cnxns }) => {
      for (const { items } of cnxns) {
        const from = items.findIndex(
          (item) => item.kind === 'reply' && item.request.name === 'addWatch' && (item.request.record as { path: string }).path === '/',
        );
        const isRecursive =
          from !== -1 && ((items[from] as Extract<Item, { kind: 'reply' }>).request.record as { mode: number }).mode === 1;
        if (!isRecursive) continue;
        const at = items.findIndex((item, index) => index > from && item.kind === 'event' && items[index + 1]?.kind === 'reply');
        if (at === -1) continue;
        items.splice(at, 1);
        return;
      }
      throw new NothingOfTheKind();
    },
  ],
  [
    'watchesOverReconnect',
    'a change that a client missed and gets no event for',
    ({ cnxns }) => {
      for (const { items } of cnxns) {
        const at = items.findIndex(({ zxid, kind }) => kind === 'event' && zxid === -1);
        const isAnswered = items.slice(at).some((item) => item.kind === 'reply' && item.request.name?.startsWith('setWatches') === true);
        if (at === -1 || !isAnswered) continue;
        items.splice(at, 1);
        return;
      }
      throw new NothingOfTheKind();
    },
  ],
  [
    'watchesRestored',
    'a client that reconnected without its watches',
    ({ cnxns, libraryClients }) => {
      const requests = cnxns.filter(({ client }) => libraryClients.has(client)).flatMap((cnxn) => cnxn.requests);
      const none = { dataWatches: [], existWatches: [], childWatches: [] };
      const restoring = found(requests.find(({ name }) => name === 'setWatches2' || name === 'setWatches'));
      change(restoring, { record: { relativeZxid: 0, ...none, persistentWatches: [], persistentRecursiveWatches: [] } });
    },
  ],
  [
    'watchAcl',
    'an event of a znode that the client may not read',
    (recording) => {
      const { cnxn, at } = eventBeforeReply(recording);
      const { path } = cnxn.items[at] as Extract<Item, { kind: 'event' }>;
      const created = recording.log.filter(({ logged: { txn } }) => txn.kind === 'create' && txn.path === path);
      const entry = found(created.findLast(({ logged }) => logged.header.zxid <= cnxn.items[at]!.zxid));
      const request = found(requestsOf(recording).find(({ session, xid }) => sameRequest(session, xid, entry.logged.header)));
      change(request.record as { acl: unknown }, { acl: [{ perms: 0, id: { scheme: 'world', id: 'anyone' } }] });
    },
  ],
  [
    'ephemerals',
    'an ephemeral znode of a session that ended',
    (recording) => {
      for (const { reply } of requestsOf(recording)) {
        const { stat } = (reply?.body ?? {}) as { stat?: Stat };
        if (stat !== undefined && stat.ephemeralOwner !== 0n) return change(reply, { zxid: Infinity });
      }
      throw new NothingOfTheKind();
    },
  ],
  ['earlyExpiry', 'a session that ended too early', (recording) => change(expired(recording), { atMs: expired(recording).atMs - 4000 })],
  ['lateExpiry', 'a session that ended too late', ({ frameArrivals }) => frameArrivals.clear()],
  [
    'lateExpiry',
    'a session that ended too late, long after a standstill',
    ({ frameArrivals, partialArrivals, pauses }) => {
      frameArrivals.clear();
      partialArrivals.clear();
      pauses.push({ server: 'server-1', fromMs: -20_000, toMs: -10_000 });
    },
  ],
  [
    'sessionIdentity',
    'a session id that was assigned twice',
    ({ cnxns }) => {
      const [first, second] = cnxns.filter(({ handshake, session }) => handshake?.sessionId === 0n && (session ?? 0n) !== 0n);
      found(second).session = found(first).session;
    },
  ],
  [
    'sessionIdentity',
    'a session that was resumed after its end',
    ({ cnxns }) =>
      change(
        cnxns.find(({ handshake, session }) => handshake !== undefined && handshake.sessionId !== 0n && session === handshake.sessionId),
        { openedMs: Infinity },
      ),
  ],
  [
    'sessionIdentity',
    'a session that was resumed with a wrong password',
    ({ cnxns }) => {
      const cnxn = found(
        cnxns.find(({ handshake, session }) => handshake !== undefined && handshake.sessionId !== 0n && session === handshake.sessionId),
      );
      change(cnxn.handshake, { passwd: Buffer.alloc(16) });
    },
  ],
  [
    'localSessions',
    'an ephemeral of a session that was never global',
    ({ log }) => {
      const owner = found(log.find(({ logged: { txn } }) => txn.kind === 'create' && txn.ephemeral)).logged.header;
      const isItsCreation = ({ header, txn }: (typeof log)[number]['logged']) =>
        txn.kind === 'createSession' && header.clientHigh === owner.clientHigh && header.clientLow === owner.clientLow;
      log.splice(
        log.findIndex(({ logged }) => isItsCreation(logged)),
        1,
      );
    },
  ],
  [
    'localSessions',
    'a session that became global although none may',
    ({ limits }) => {
      if (limits.localSessions !== 'upgradable') throw new NothingOfTheKind();
      change(limits as Mutable<typeof limits>, { localSessions: 'enabled' });
    },
  ],
  [
    'localSessions',
    'a session that became global before its client had sent an ephemeral',
    ({ cnxns, limits, log }) => {
      if (limits.localSessions !== 'upgradable') throw new NothingOfTheKind();
      const { header } = logOf({ log } as Recording, OpCode.createSession).logged;
      const session = sessionIdOf(header.clientHigh, header.clientLow);
      for (const { requests } of cnxns)
        for (const request of requests) if (request.session === session) change(request, { sentMs: Infinity });
    },
  ],
  [
    'localSessions',
    'a local session that another server resumed',
    (recording) => change(resumedLocally(recording) as Mutable<CnxnRecord>, { server: 'another' }),
  ],
  [
    'localSessions',
    'a local session that was resumed after its end',
    (recording) => change(resumedLocally(recording) as Mutable<CnxnRecord>, { openedMs: Infinity }),
  ],
  [
    'localSessions',
    'a local session that expired although its client had just sent something',
    (recording) => {
      const { peerEvents } = recording;
      const opened = found(peerEvents.find(isLocalSession('opened')));
      peerEvents.push({ ...opened, what: 'expired' } as PeerEvent);
    },
  ],
  [
    'localSessions',
    'a local session that lived on in silence',
    ({ peerEvents }) => void peerEvents.splice(peerEvents.indexOf(found(peerEvents.find(isLocalSession('expired')))), 1),
  ],
  [
    'negotiation',
    'a timeout that does not follow from the requested one',
    ({ cnxns }) => void found(cnxns.find(({ session }) => (session ?? 0n) !== 0n)).timeoutMs++,
  ],
  [
    'sequentialNames',
    'a sequence number that was used twice',
    ({ log }) => {
      const counted = log.filter(({ logged: { txn } }) => txn.kind === 'create' && /^\/q-\d{10}$/.test(txn.path));
      const [first, second] = [found(counted.at(-2)), found(counted.at(-1))];
      change(second.logged.txn as { path: string }, { path: (first.logged.txn as { path: string }).path });
    },
  ],
  [
    'statConsistency',
    'a znode that was modified before it was created',
    (recording) => void (statOf(answered(recording, 'exists')).mzxid = -1),
  ],
  [
    'statConsistency',
    'a wrong number of children',
    (recording) => {
      const { stat } = answered(recording, 'getChildren2').reply!.body as GetChildren2Reply;
      (stat as Mutable<Stat>).numChildren++;
    },
  ],
  [
    'durability',
    'an acknowledged txn that was lost',
    (recording) => {
      const { reply } = found(acknowledged(recording).at(-1));
      recording.log.splice(recording.log.findIndex(({ logged }) => logged.header.zxid === reply!.zxid));
    },
  ],
  [
    'durability',
    'a session that a client received and that is not in the log',
    (recording) => change(logOf(recording, OpCode.createSession).logged.header, { clientLow: 77 }),
  ],
  [
    'durability',
    'a zxid other than the acknowledged one',
    (recording) => {
      const { reply } = found(acknowledged(recording).at(-1));
      change(reply, { zxid: reply!.zxid - 1 });
    },
  ],
  [
    'snapshots',
    'a snapshot that leads to another state',
    ({ snapshots }) => void (found(snapshots[0]).znodes as Map<string, string>).set('/a', 'something else'),
  ],
  [
    'snapshots',
    'a snapshot with a session that does not exist',
    ({ snapshots }) => void (found(snapshots[0]).sessions as Map<bigint, number>).set(5n, 5),
  ],
  [
    'snapshots',
    'a snapshot whose digest does not match its content',
    (recording) => {
      const logged = new Set(recording.log.map((entry) => entry.logged.header.zxid));
      const at = recording.snapshots.findIndex(({ content }) => logged.has(content.zxid));
      const snapshot = found(recording.snapshots[at]);
      recording.snapshots[at] = { ...snapshot, content: { ...snapshot.content, digest: 1n } };
    },
  ],
  [
    'digests',
    'a wrong digest in the log',
    ({ log }) => {
      const { logged } = found(log.find((entry) => entry.logged.header.zxid % 16 === 0));
      change(logged, { digest: { version: 2, high: 1, low: 2 } });
    },
  ],
  [
    'access',
    'a request that succeeded although the ACL denies it',
    (recording) => change(answered(recording, 'delete', ErrorCode.NoAuth).reply, { err: ErrorCode.Ok }),
  ],
  [
    'sweeps',
    'a container that was deleted before it had a child',
    (recording) => {
      const { logged } = logOf(recording, OpCode.deleteContainer);
      change(logged.txn as { path: string }, { path: '/zookeeper' });
    },
  ],
  [
    'noLeaks',
    'a watch that was not removed',
    ({ leftovers }) => change(found(leftovers[0]) as Mutable<Recording['leftovers'][number]>, { watches: 1 }),
  ],
  [
    'clientDeliveries',
    'a reply that never arrived',
    ({ clientDeliveries }) => {
      const at = clientDeliveries.findIndex(({ kind, text }) => kind === 'reply' && text === 'Ok');
      found(clientDeliveries[at]);
      clientDeliveries.splice(at, 0, { ...clientDeliveries[at]!, text: 'SystemError' });
    },
  ],
  [
    'clientDeliveries',
    'an event that the client reported twice',
    ({ clientDeliveries }) => {
      const at = clientDeliveries.findIndex(({ kind }) => kind === 'event');
      clientDeliveries.splice(at, 0, found(clientDeliveries[at]));
    },
  ],
  [
    'clientDeliveries',
    'an event that the client reported after a reply that had arrived later',
    ({ clientDeliveries }) => {
      const at = clientDeliveries.findIndex(
        ({ kind, client }, index) => kind === 'event' && isAnswerOf(client, clientDeliveries[index + 1]),
      );
      const [event] = clientDeliveries.splice(at, at === -1 ? 0 : 1);
      clientDeliveries.splice(at + 1, 0, found(event));
    },
  ],
  [
    'clientOutcomes',
    'a write that was sent although the client reported that it was not',
    ({ clientDeliveries }) =>
      change(found(clientDeliveries.find(({ kind, key, text }) => kind === 'reply' && key !== undefined && text === 'unknown')), {
        text: 'notSent',
      }),
  ],
  [
    'clientOutcomes',
    'two writes with each other’s results',
    ({ clientDeliveries }) => {
      const first = found(clientDeliveries.find(({ kind, key, text }) => kind === 'reply' && key !== undefined && text === 'Ok'));
      const isOther = ({ kind, key, text }: Recording['clientDeliveries'][number]) =>
        kind === 'reply' && key !== undefined && text === 'NodeExists';
      const second = found(clientDeliveries.find((each) => isOther(each) && each.client === first.client));
      const { key } = first;
      change(first, { key: second.key! });
      change(second, { key: key! });
    },
  ],
  [
    'clientOutcomes',
    'a write that was sent twice',
    ({ cnxns, libraryClients }) => {
      const [first, second] = cnxns.filter(({ client, requests }) => client === [...libraryClients][0] && requests.some(isUnanswered));
      found(second).requests.push(found(found(first).requests.find(isUnanswered)));
    },
  ],
  [
    'clientOutcomes',
    'a call that never ended',
    ({ clientDeliveries }) => change(found(clientDeliveries.find(({ kind }) => kind === 'closed')), { text: '1' }),
  ],
  [
    'childListings',
    'a child that a listing leaves out',
    ({ listings }) => {
      const listing = found(listings.find(({ names, fromZxid, toZxid }) => fromZxid === toZxid && names.length > 2));
      change(listing, { names: listing.names.slice(0, -1) });
    },
  ],
  [
    'childListings',
    'a child that a listing contains twice',
    ({ listings }) => {
      const listing = found(listings.find(({ names }) => names.some((name) => name !== 'zookeeper')));
      change(listing, { names: [...listing.names, listing.names.find((name) => name !== 'zookeeper')!] });
    },
  ],
  [
    'childListings',
    'a child that was deleted long before its listing',
    ({ listings, log }) => {
      const gone = found(log.find(({ logged: { txn } }) => txn.kind === 'delete' && /^\/e[12]$/.test(txn.path)));
      const { path } = gone.logged.txn as { readonly path: string };
      const isThere = (from: number, to: number) =>
        log.some(
          ({ logged: { header, txn } }) =>
            header.zxid > gone.logged.header.zxid &&
            header.zxid <= to &&
            header.zxid >= from - 1e9 &&
            JSON.stringify(txn, (_, value: unknown) => (typeof value === 'bigint' ? `${value}` : value)).includes(path),
        );
      const listing = found(
        listings.find(
          ({ path: parent, fromZxid, toZxid }) => parent === '/' && fromZxid > gone.logged.header.zxid && !isThere(fromZxid, toZxid),
        ),
      );
      change(listing, { names: [...listing.names, path.slice(1)] });
    },
  ],
  [
    'clientReconnects',
    'a client that reconnected with zxid 0 although it had seen a later one',
    ({ cnxns, libraryClients }) => {
      const back = cnxns.filter(({ client, handshake }) => libraryClients.has(client) && (handshake?.lastZxidSeen ?? 0) > 0);
      for (const cnxn of back) change(cnxn, { handshake: { ...cnxn.handshake!, lastZxidSeen: 0 } });
      found(back[0]);
    },
  ],
  [
    'clientReconnects',
    'a session that the client reported as expired although no server said so',
    ({ clientDeliveries }) => change(found(clientDeliveries.find(({ kind }) => kind === 'closed')), { kind: 'expired', text: '1' }),
  ],
  [
    'clientPings',
    'a missing ping',
    ({ cnxns, libraryClients }) => {
      for (const { client, requests, items } of cnxns) {
        const isBetween = ({ name }: Request, at: number) =>
          name === 'ping' && requests[at - 1]?.name === 'ping' && requests[at + 1]?.name === 'ping';
        const at = libraryClients.has(client) ? requests.findIndex(isBetween) : -1;
        if (at === -1) continue;
        const [ping] = requests.splice(at, 1);
        const answer = items.findIndex((item) => item.kind === 'reply' && item.request === ping);
        if (answer !== -1) items.splice(answer, 1);
        return;
      }
      throw new NothingOfTheKind();
    },
  ],
  [
    'protocolErrors',
    'a txn that the leader did not send',
    ({ peerEvents, endedMs }) =>
      void peerEvents.push({
        atMs: endedMs,
        server: 'server-1',
        kind: 'roleEnded',
        reason: 'protocol error',
        text: 'the leader sent 0x100000003 after 0x100000001: txns are missing',
      }),
  ],
  [
    'totalOrder',
    'an epoch that begins after another txn than the last one of its leader',
    ({ peerEvents, log }) => {
      const begun = found(log.find(({ logged }) => counterOf(logged.header.zxid) === 1 && epochOf(logged.header.zxid) > 1));
      const epoch = epochOf(begun.logged.header.zxid);
      change(firstServing(peerEvents, 'leader', epoch), { historyEnd: makeZxid(epoch - 1, 999_999) });
    },
  ],
  [
    'durability',
    'a later leader without an acknowledged txn',
    ({ peerEvents }) => {
      const served = found(
        peerEvents.findLast((event) => event.kind === 'serves' && event.role === 'leader' && event.historyEnd > 2 ** 32),
      );
      change(served as Extract<PeerEvent, { kind: 'serves' }>, { historyEnd: 1 });
    },
  ],
  [
    'earlyExpiry',
    'a session of an ensemble that expired while its client sent to the leader',
    (recording) => {
      if (recording.ensemble.size === 0) throw new NothingOfTheKind();
      const closed = expired(recording);
      const { clientHigh, clientLow, zxid } = closed.logged.header;
      const id = BigInt.asIntN(64, (BigInt(clientHigh >>> 0) << 32n) + BigInt(clientLow >>> 0));
      const leader = firstServing(recording.peerEvents, 'leader', epochOf(zxid));
      const cnxn = found(
        recording.cnxns.findLast(
          ({ session, server, malformedMs }) => session === id && server === leader.server && malformedMs === undefined,
        ),
      );
      found(recording.frameArrivals.get(cnxn.key)).push(closed.atMs - 1);
    },
  ],
  [
    'earlyExpiry',
    'a session that expired although a follower had received from it while the leader was paused',
    (recording) => {
      const closed = expired(recording);
      const { clientHigh, clientLow, zxid } = closed.logged.header;
      const id = BigInt.asIntN(64, (BigInt(clientHigh >>> 0) << 32n) + BigInt(clientLow >>> 0));
      if (recording.ensemble.size === 0) throw new NothingOfTheKind();
      const leader = firstServing(recording.peerEvents, 'leader', epochOf(zxid));
      const heardMs = closed.atMs - recording.limits.tickMs - 1;
      const cnxn = found(
        recording.cnxns.findLast(
          ({ session, server, malformedMs }) => session === id && server !== leader.server && malformedMs === undefined,
        ),
      );
      found(recording.frameArrivals.get(cnxn.key)).push(heardMs);
      recording.pauses.push({ server: leader.server, fromMs: heardMs - 100, toMs: closed.atMs - 1 });
    },
  ],
  [
    'zab',
    'two leaders of one epoch',
    ({ peerEvents }) => {
      const one = found(peerEvents.find((event) => event.kind === 'serves' && event.role === 'leader'));
      peerEvents.push({ ...one, server: 'server-9' });
    },
  ],
  [
    'zab',
    'a leader without a committed txn',
    ({ peerEvents }) => {
      const at = peerEvents.findLastIndex((event) => event.kind === 'applied');
      const { atMs, zxid } = found(peerEvents[at]) as Extract<PeerEvent, { kind: 'applied' }>;
      peerEvents.push({ atMs, server: 'server-1', kind: 'serves', role: 'leader', epoch: epochOf(zxid) + 9, historyEnd: zxid - 1 });
    },
  ],
  [
    'quorumCommits',
    'a follower that applied a txn that was not committed',
    ({ peerEvents }) => {
      const followers = peerEvents.filter((event) => event.kind === 'serves' && event.role === 'follower').map(({ server }) => server);
      const at = peerEvents.findLastIndex((event) => event.kind === 'applied' && event.server === followers.at(-1));
      const event = found(peerEvents[at]) as Extract<PeerEvent, { kind: 'applied' }>;
      peerEvents.splice(at + 1, 0, { ...event, zxid: event.zxid + 1 });
    },
  ],
  [
    'quorumCommits',
    'a txn that one of two voters committed alone against the word of the oracle',
    ({ peerEvents, oracleAnswers, limits, ensemble }) => {
      if (limits.oracleSid === undefined || ensemble.get(`server-${limits.oracleSid}`)?.isVoter !== true) throw new NothingOfTheKind();
      // Without the other voter every commit was made alone.
      for (let at = peerEvents.length - 1; at >= 0; at--) {
        const { kind, server } = peerEvents[at]!;
        if (kind === 'logged' && server !== `server-${limits.oracleSid}`) peerEvents.splice(at, 1);
      }
      oracleAnswers.splice(0, oracleAnswers.length, { atMs: 0, isYes: false });
    },
  ],
  [
    'epochQuorums',
    'an epoch that a leader began without the others',
    ({ peerEvents, ensemble }) => {
      if ([...ensemble.values()].filter(({ isVoter }) => isVoter).length < 2) throw new NothingOfTheKind();
      const leads = found(peerEvents.findLast((event) => event.kind === 'serves' && event.role === 'leader')) as Extract<
        PeerEvent,
        { kind: 'serves' }
      >;
      for (let at = peerEvents.indexOf(leads); at >= 0; at--) {
        const event = peerEvents[at]!;
        if (event.kind === 'savesEpoch' && event.current === leads.epoch && event.server !== leads.server) peerEvents.splice(at, 1);
      }
    },
  ],
  [
    'configurations',
    'a server that goes back to an earlier configuration',
    ({ peerEvents }) => {
      const last = found(peerEvents.findLast((event) => event.kind === 'config' && /version=[1-9a-f]/.test(event.text)));
      peerEvents.splice(peerEvents.indexOf(last) + 1, 0, { ...last, ...({ text: 'server.1=h:1:2:participant\nversion=0' } as object) });
    },
  ],
  [
    'configurations',
    'a configuration that no txn has made',
    ({ peerEvents }) => {
      const last = found(peerEvents.findLast((event) => event.kind === 'config' && /version=[1-9a-f]/.test(event.text)));
      peerEvents.splice(peerEvents.indexOf(last) + 1, 0, {
        ...last,
        ...({ text: 'server.1=h:1:2:participant\nversion=1fffffff0000001' } as object),
      });
    },
  ],
  [
    'configurations',
    'a reconfiguration that a server activated before others had it on disk',
    (recording) => {
      const { zxid } = logOf(recording, OpCode.reconfig).logged.header;
      const { peerEvents } = recording;
      const adopted = found(peerEvents.find((event) => event.kind === 'config' && event.text.endsWith(`version=${zxid.toString(16)}`)));
      const logged = found(peerEvents.find((event) => event.kind === 'logged' && event.zxid >= zxid));
      peerEvents.splice(peerEvents.indexOf(adopted), 1);
      peerEvents.splice(peerEvents.indexOf(logged), 0, adopted);
    },
  ],
  [
    'configurations',
    'a server that ends with another configuration',
    ({ quiescentStates }) => {
      const states = found(quiescentStates.find((each) => each.length > 1 && each.every(({ configText }) => configText !== undefined)));
      change(states[1] as Mutable<(typeof states)[number]>, { configText: 'server.1=h:1:2:participant\nversion=5' });
    },
  ],
  [
    'configurations',
    'a voter that observes in the end',
    ({ quiescentStates }) => {
      const states = found(quiescentStates.find((each) => each.length > 1 && each.every(({ configText }) => configText !== undefined)));
      change(states.find(({ role }) => role !== 'observer') as Mutable<(typeof states)[number]>, { role: 'observer' });
    },
  ],
  [
    'zab',
    'a txn that was skipped',
    ({ peerEvents }) => {
      const at = peerEvents.findIndex(
        (event, index) => event.kind === 'applied' && peerEvents.slice(index).some((each) => isNext(event, each)),
      );
      found(peerEvents[at]);
      peerEvents.splice(at, 1);
    },
  ],
  [
    'quorumCommits',
    'a txn that was committed before the followers had logged it',
    ({ peerEvents, ensemble }) => {
      if ([...ensemble.values()].filter(({ isVoter }) => isVoter).length < 2) throw new NothingOfTheKind();
      const { zxid } = found(peerEvents.flatMap((event) => (event.kind === 'applied' ? [event] : [])).at(-1));
      for (let at = peerEvents.length - 1; at >= 0; at--) {
        const event = peerEvents[at]!;
        if (event.kind === 'logged' && event.zxid >= zxid) peerEvents.splice(at, 1);
      }
    },
  ],
  [
    'quorumCommits',
    'a follower whose log was replaced by an older snapshot of the same leader',
    ({ peerEvents, ensemble }) => {
      const leads = found(peerEvents.findLast((event) => event.kind === 'serves' && event.role === 'leader')) as Extract<
        PeerEvent,
        { kind: 'serves' }
      >;
      const isFollower = ({ server }: PeerEvent): boolean => server !== leads.server && ensemble.get(server)?.isVoter === true;
      const last = found(
        peerEvents.findLast((event) => event.kind === 'logged' && isFollower(event) && epochOf(event.zxid) === leads.epoch),
      );
      const { atMs, server, zxid } = last as Extract<PeerEvent, { kind: 'logged' }>;
      const { sid } = ensemble.get(leads.server)!;
      peerEvents.splice(
        peerEvents.indexOf(last) + 1,
        0,
        { atMs, server, kind: 'elected', leader: sid, lookedMs: 0 },
        { atMs, server, kind: 'replaced', by: 'snap', zxid: zxid - 1 },
      );
    },
  ],
  [
    'readOnlyMode',
    'a write that a server in read-only mode acknowledged',
    (recording) => change(refusedReadOnly(recording, 'setData').reply, { err: ErrorCode.Ok }),
  ],
  [
    'readOnlyMode',
    'a sync that a server in read-only mode answered',
    (recording) => change(refusedReadOnly(recording, 'sync').reply, { err: ErrorCode.Ok }),
  ],
  [
    'readOnlyMode',
    'a client that had not asked for a read-only server',
    ({ readOnlyCnxns }) => change(found(readOnlyCnxns[0]).handshake, { readOnly: false }),
  ],
  [
    'readOnlyMode',
    'a session of the ensemble that a read-only server declared expired',
    (recording) => {
      const cnxn = found(recording.readOnlyCnxns.find(({ session = 0n }) => session !== 0n));
      const { header } = logOf(recording, OpCode.createSession).logged;
      const sessionId = sessionIdOf(header.clientHigh, header.clientLow);
      const passwd = Buffer.from(modelPassword(sessionId), 'latin1');
      change<CnxnRecord>(cnxn, { session: 0n, handshake: { ...cnxn.handshake!, sessionId, passwd } });
    },
  ],
  [
    'readOnlyMode',
    'read-only mode that began too early',
    ({ peerEvents }) => {
      const event = found(peerEvents.find(({ kind }) => kind === 'readOnly'));
      change(event, { atMs: event.atMs - 10 });
    },
  ],
  [
    'readOnlyMode',
    'a configuration that no server has had, in read-only mode',
    ({ readOnlyCnxns }) => {
      const read = readOnlyCnxns
        .flatMap(({ requests }) => requests)
        .find(({ name, record, reply }) => {
          const { path } = (record ?? {}) as { readonly path?: string };
          return name === 'getData' && path === systemPath.config && reply?.err === ErrorCode.Ok;
        });
      change(found(read).reply!.body as Mutable<GetDataReply>, { data: Buffer.from('server.9=nowhere:2888:3888:participant') });
    },
  ],
  [
    'reads',
    'another value at a server in read-only mode',
    ({ readOnlyCnxns, ...recording }) => {
      const isKept = new Set(readOnlyStreams({ readOnlyCnxns, ...recording }).flatMap(({ requests }) => requests));
      const read = [...isKept].find(({ name, reply }) => name === 'getData' && reply?.err === ErrorCode.Ok);
      change(found(read).reply!.body as Mutable<GetDataReply>, { data: Buffer.from('another') });
    },
  ],
  [
    'epochFiles',
    'an epoch that became current before it was accepted',
    ({ peerEvents }) => {
      const files = found(peerEvents.find((event) => event.kind === 'epochFiles' && (event.current ?? 0) > 0));
      change(files as Extract<PeerEvent, { kind: 'epochFiles' }>, { accepted: 0 });
    },
  ],
  [
    'epochFiles',
    'a durable promise that was lost',
    ({ peerEvents }) => {
      const durable = found(peerEvents.find((event) => event.kind === 'epochFiles' && (event.durable.accepted ?? 0) > 0));
      const after = peerEvents.slice(peerEvents.indexOf(durable) + 1).filter(({ server }) => server === durable.server);
      const next = found(after.find(({ kind }) => kind === 'epochFiles' || kind === 'wiped'));
      if (next.kind === 'wiped') throw new NothingOfTheKind();
      change(next as Extract<PeerEvent, { kind: 'epochFiles' }>, { accepted: 0, current: 0 });
      for (let at = peerEvents.length - 1; at >= 0; at--) if (peerEvents[at]!.kind === 'serves') peerEvents.splice(at, 1);
    },
  ],
  [
    'epochFiles',
    'an epoch that became current before its history was durable',
    ({ peerEvents, seedState }) => {
      const files = found(peerEvents.findLast((event) => event.kind === 'epochFiles' && (event.current ?? 0) > 0));
      const { server, current } = files as Extract<PeerEvent, { kind: 'epochFiles' }>;
      const leader = firstServing(peerEvents, 'leader', current!);
      if (leader.historyEnd <= seedState.zxid || counterOf(leader.historyEnd) === 0) throw new NothingOfTheKind();
      for (let at = peerEvents.length - 1; at >= 0; at--) {
        const event = peerEvents[at]!;
        if (event.server !== server || event === leader) continue;
        if (event.kind === 'epochFiles') change(event, { reached: undefined });
        else if (['logged', 'replaced', 'serves'].includes(event.kind)) peerEvents.splice(at, 1);
      }
    },
  ],
  [
    'peerClaims',
    'a vote with a zxid that is not durable',
    ({ peerEvents }) => {
      const vote = found(peerEvents.findLast((event) => event.kind === 'claims' && event.packet === 'vote' && event.zxid > 0));
      const { zxid } = vote as Extract<PeerEvent, { packet: 'vote' }>;
      change(vote as Mutable<Extract<PeerEvent, { packet: 'vote' }>>, { zxid: zxid + 1000 });
    },
  ],
  [
    'peerClaims',
    'a FOLLOWERINFO with an epoch that is not on disk',
    ({ peerEvents }) => {
      const info = found(peerEvents.find((event) => event.kind === 'claims' && event.packet === 'info'));
      change(info as Mutable<Extract<PeerEvent, { packet: 'info' }>>, { accepted: 999_999 });
    },
  ],
  [
    'peerClaims',
    'an ACKEPOCH for an epoch that is not durable',
    ({ peerEvents }) => {
      const ack = found(peerEvents.find((event) => event.kind === 'claims' && event.packet === 'ackEpoch' && event.zxid > 0));
      const { zxid } = ack as Extract<PeerEvent, { packet: 'ackEpoch' }>;
      change(ack as Mutable<Extract<PeerEvent, { packet: 'ackEpoch' }>>, { zxid: zxid + 1000 });
    },
  ],
  [
    'peerClaims',
    'a message with an epoch that the server is not in',
    ({ peerEvents }) => {
      const vote = found(peerEvents.find((event) => event.kind === 'claims' && event.packet === 'vote'));
      change(vote as Mutable<Extract<PeerEvent, { packet: 'vote' }>>, { current: 999_999 });
    },
  ],
  [
    'peerClaims',
    'an epoch that was accepted twice',
    ({ peerEvents }) => {
      const at = peerEvents.findIndex((event) => event.kind === 'claims' && event.packet === 'ackEpoch' && event.current !== -1);
      peerEvents.splice(at, 0, found(peerEvents[at]));
    },
  ],
  [
    'peerClaims',
    'an ACKEPOCH with a zxid after the server had found that its log cannot be cut',
    ({ peerEvents }) => {
      const at = peerEvents.findIndex((event) => event.kind === 'claims' && event.packet === 'ackEpoch' && event.zxid > 0);
      const ack = found(peerEvents[at]) as Extract<PeerEvent, { packet: 'ackEpoch' }>;
      const { server, atMs } = ack;
      const text = 'the log cannot be truncated that far: requesting a snapshot';
      peerEvents.splice(at + 1, 0, { atMs, server, kind: 'roleEnded', reason: 'log not truncatable', text }, { ...ack, current: -1 });
    },
  ],
  [
    'staleness',
    'a leader that begins to lead after a long pause',
    ({ peerEvents, pauses, limits: { syncLimitTicks = 0, tickMs } }) => {
      const serving = found(peerEvents.find((event) => event.kind === 'serves' && event.role === 'leader' && event.epoch > 1));
      const elected = found(
        peerEvents.slice(0, peerEvents.indexOf(serving)).findLast(({ kind, server }) => kind === 'elected' && server === serving.server),
      );
      const fromMs = serving.atMs - syncLimitTicks * tickMs - 2;
      change(elected as Mutable<PeerEvent>, { atMs: fromMs - 1 });
      pauses.push({ server: serving.server, fromMs, toMs: serving.atMs - 1 });
    },
  ],
  [
    'staleness',
    'a read of an old state',
    (recording) => {
      const { peerEvents } = recording;
      const read = found(requestsOf(recording).findLast(({ name, reply }) => name === 'getData' && (reply?.zxid ?? 0) > 0));
      const early = found(peerEvents.find((event) => event.kind === 'applied' && event.atMs < read.sentMs - 2000));
      change(read.reply, { zxid: (early as Extract<PeerEvent, { kind: 'applied' }>).zxid - 1 });
    },
  ],
  [
    'convergence',
    'a server whose digest differs',
    ({ quiescentStates }) => {
      const states = found(quiescentStates.find((each) => each.length > 1 && each.every(({ digests }) => digests.size > 0)));
      const digests = states[1]!.digests as Map<number, bigint>;
      for (const zxid of digests.keys()) digests.set(zxid, 1n);
    },
  ],
  [
    'convergence',
    'a server whose number of znodes differs',
    ({ quiescentStates }) => {
      const states = found(quiescentStates.find((each) => each.length > 1));
      change(states[1] as Mutable<(typeof states)[number]>, { znodes: 1 });
    },
  ],
  [
    'logRecordSize',
    'a logged txn that is too long for a server to read',
    ({ log, limits }) => change(found(log.at(-1)) as Mutable<Recording['log'][number]>, { bytes: limits.txnBytesMax + 1 }),
  ],
  [
    'acknowledgedAfterApply',
    'a write that was acknowledged by a server that was looking for a leader',
    ({ peerEvents, ...rest }) => {
      const at = appliedByWhoAnswered({ peerEvents, ...rest });
      peerEvents.splice(at, 0, {
        atMs: peerEvents[at]!.atMs,
        server: peerEvents[at]!.server,
        kind: 'roleEnded',
        reason: 'quorum lost',
        text: 'its quorum is lost',
      });
    },
  ],
  [
    'acknowledgedAfterApply',
    'a write that was acknowledged by a server that had not received its commit',
    (recording) => void recording.peerEvents.splice(appliedByWhoAnswered(recording), 1),
  ],
  [
    'silentAfterFailure',
    'bytes that were sent after the process had failed',
    ({ processes }) => change(processes[0], { sentAfterFailure: 1 }),
  ],
];

function isLocalSession(what: Extract<PeerEvent, { kind: 'localSession' }>['what']) {
  return (event: PeerEvent): boolean => event.kind === 'localSession' && event.what === what;
}

/** A connection that resumed a local session. */
function resumedLocally({ cnxns, peerEvents }: Recording): CnxnRecord {
  const global = new Set(
    peerEvents.flatMap((event) => (event.kind === 'localSession' && event.what === 'upgraded' ? [event.session] : [])),
  );
  const local = new Set(peerEvents.flatMap((event) => (event.kind === 'localSession' && event.what === 'opened' ? [event.session] : [])));
  const isResumed = ({ handshake, session = 0n }: CnxnRecord) =>
    handshake?.sessionId === session && local.has(session) && !global.has(session);
  return found(cnxns.find(isResumed));
}

const isUnanswered = (request: Request): boolean =>
  isWriteRequest(request) && request.reply === undefined && writeKey(request.record) !== undefined;

function isAnswerOf(client: string, reports: Recording['clientDeliveries'][number] | undefined): boolean {
  return reports?.client === client && reports.kind === 'reply' && !['unknown', 'notSent'].includes(reports.text);
}

/**
 * The index, in the list of events, at which a server of an ensemble applies a write of its own
 * client.
 */
function appliedByWhoAnswered({ cnxns, ensemble, peerEvents }: Recording): number {
  if (ensemble.size === 0) throw new NothingOfTheKind();
  const isDone = (each: Request) => isWriteRequest(each) && each.reply?.err === ErrorCode.Ok;
  const { server, requests } = found(cnxns.findLast((cnxn) => cnxn.requests.some(isDone)));
  const { zxid } = found(requests.find(isDone)).reply!;
  const at = peerEvents.findIndex((event) => event.kind === 'applied' && event.server === server && event.zxid === zxid);
  found(peerEvents[at]);
  return at;
}

function isConditional({ name, record, reply }: Request): boolean {
  return (
    name === 'setData' &&
    reply?.err === ErrorCode.Ok &&
    (record as { version: number }).version !== -1 &&
    (reply.body as StatReply).stat.version > 0
  );
}

function sameRequest(
  session: bigint,
  xid: number,
  { clientHigh, clientLow, cxid }: { clientHigh: number; clientLow: number; cxid: number },
): boolean {
  return xid === cxid && BigInt.asUintN(64, session) === (BigInt(clientHigh >>> 0) << 32n) + BigInt(clientLow >>> 0);
}

const recordings = new Map<number, Buffer>();

/** A recording of the test's own, made once and then copied. */
async function recordingOf(seed: number): Promise<Recording> {
  let bytes = recordings.get(seed);
  if (bytes === undefined) recordings.set(seed, (bytes = serialize((await runSeed(seed)).recording)));
  return deserialize(bytes) as Recording;
}

/** A run takes half a second, and a canary may need many. */
describe('the checkers of recordings', () => {
  test.for(sample(changes, 12))('%s finds %s', async ([checker, what, mutate], { skip }) => {
    const first = firstSeeds[what] ?? 1;
    let isTried = false;
    for (let seed = first; seed < first + seedMax; seed++) {
      const recording = await recordingOf(seed);
      try {
        mutate(recording);
      } catch (error) {
        if (!(error instanceof NothingOfTheKind)) throw error;
        continue;
      }
      isTried = true;
      if (checkers[checker].check(recording, replay(recording)).length > 0) return;
    }
    // If none of the few runs of `npm test` suits the change, the full mode checks it.
    skip(!isFull && !isTried);
    expect.fail(`in ${seedMax} runs no checker reported it`);
  });

  test('find servers that do not return although no fault is left (P35, which the run itself checks)', async () => {
    const [heal, boot] = [vi.spyOn(Run.prototype, 'heal'), vi.spyOn(Run.prototype, 'boot')];
    try {
      // Servers that were to be started later stay down as well.
      heal.mockImplementation(function (this: Run) {
        boot.mockImplementation(() => undefined);
        this.isHealed = true;
        for (const server of this.world.servers) server.kill();
      });
      const { recording } = await runSeed(1);
      expect(check(recording).some(({ checker, evidence }) => checker === 'run' && evidence.includes('not quiet'))).toBe(true);
    } finally {
      heal.mockRestore();
      boot.mockRestore();
    }
  });

  test('have at least one canary each', () => {
    expect(new Set(changes.map(([checker]) => checker))).toEqual(new Set(Object.keys(checkers)));
  });
});
