/** A checker that cannot turn red checks nothing: each is shown a true recording with one thing changed. */
import { ErrorCode, EventType, OpCode } from '@tskeeper/protocol';
import { expect, test } from 'vitest';
import { check, checkers } from './check.ts';
import type { CnxnRecord, Item, Recording, Request } from './recording.ts';
import { writeNames } from './replay.ts';
import { runSeed } from './scenario.ts';

/** Not every story has in it what a change is about; one of so many has. */
const seedMax = 20;

class NothingOfTheKind extends Error {}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

function change<T extends object>(what: T | undefined, changes: Partial<T>): void {
  if (what === undefined) throw new NothingOfTheKind();
  Object.assign(what, changes);
}

const requestsOf = ({ cnxns }: Recording): Request[] => cnxns.flatMap(({ requests }) => requests);
const acknowledged = (recording: Recording): Request[] =>
  requestsOf(recording).filter(({ name, reply }) => writeNames.has(name) && reply !== undefined);
const logOf = (recording: Recording, wanted: (type: number) => boolean) =>
  recording.log.findLast(({ logged }) => wanted(logged.header.type))!;

/** The last connection with a reply right behind an event. */
function eventBeforeReply({ cnxns }: Recording): { readonly cnxn: CnxnRecord; readonly at: number } {
  for (const cnxn of cnxns.toReversed()) {
    const at = cnxn.items.findIndex((item, index) => item.kind === 'event' && cnxn.items[index + 1]?.kind === 'reply');
    if (at !== -1) return { cnxn, at };
  }
  throw new NothingOfTheKind();
}

/** The last end of a session that its client did not ask for. */
function expired({ log }: Recording) {
  return log.findLast(({ logged }) => logged.header.type === OpCode.closeSession && logged.header.cxid === 0)!;
}

const changes: [checker: string, what: string, change: (recording: Recording) => void][] = [
  [
    'durability',
    'an acknowledged txn that is gone',
    ({ log, ...recording }) => {
      const { reply } = acknowledged({ log, ...recording }).at(-1)!;
      log.splice(log.findIndex(({ logged }) => logged.header.zxid === reply!.zxid));
    },
  ],
  [
    'durability',
    'a session that was given out and is not in the log',
    (recording) => change(logOf(recording, (type) => type === OpCode.createSession).logged.header, { clientLow: 77 }),
  ],
  ['durability', 'a hole in the log', (recording) => void recording.log.splice(5, 1)],
  [
    'durability',
    'another zxid than the one acknowledged',
    (recording) => {
      const { reply } = acknowledged(recording).at(-1)!;
      change(reply, { zxid: reply!.zxid - 1 });
    },
  ],
  [
    'outcomes',
    'a write that happened twice',
    (recording) => {
      const { atMs, logged } = logOf(recording, (type) => type === OpCode.setData);
      const zxid = recording.log.at(-1)!.logged.header.zxid + 1;
      recording.log.push({ atMs, logged: { ...logged, header: { ...logged.header, zxid } } });
    },
  ],
  [
    'outcomes',
    'a write that nobody asked for',
    (recording) => change(logOf(recording, (type) => type === OpCode.setData).logged.header, { cxid: 99_999 }),
  ],
  [
    'outcomes',
    'writes of one connection in another order',
    (recording) => {
      const { requests } = recording.cnxns.find((cnxn) => cnxn.items.filter(isWriteReply).length > 4)!;
      requests.reverse();
    },
  ],
  [
    'writeReplies',
    'another error',
    (recording) => change(acknowledged(recording).find(({ reply }) => reply!.err === ErrorCode.Ok)!.reply, { err: ErrorCode.NoNode }),
  ],
  [
    'writeReplies',
    'another path',
    (recording) => {
      const { reply } = acknowledged(recording).find(({ name, reply: each }) => name === 'create' && each!.err === ErrorCode.Ok)!;
      change(reply, { body: { path: '/another' } });
    },
  ],
  [
    'reads',
    'a Stat that is out by one',
    (recording) => {
      const { reply } = requestsOf(recording).find(({ name, reply: each }) => name === 'exists' && each?.err === ErrorCode.Ok)!;
      const { stat } = reply!.body as { stat: Mutable<{ version: number }> };
      stat.version++;
    },
  ],
  [
    'reads',
    'a child too few',
    (recording) => {
      const { reply } = requestsOf(recording).findLast(({ name, reply: each }) => name === 'getChildren2' && each?.err === ErrorCode.Ok)!;
      (reply!.body as { children: string[] }).children.push('more');
    },
  ],
  [
    'reads',
    'a read before its own write',
    (recording) => {
      for (const { items } of recording.cnxns) {
        const at = items.findIndex(
          (item, index) => isWriteReply(item) && items[index + 1]?.kind === 'reply' && !isWriteReply(items[index + 1]!),
        );
        if (at !== -1) return change(items[at + 1], { zxid: 1 });
      }
    },
  ],
  [
    'fifoOrder',
    'two replies in each other’s place',
    (recording) => {
      const { items } = recording.cnxns.find((cnxn) => cnxn.items.filter(({ kind }) => kind === 'reply').length > 5)!;
      items.reverse();
    },
  ],
  [
    'fifoOrder',
    'a reply with the xid of another request',
    (recording) =>
      change(
        recording.cnxns.flatMap(({ items }) => items).find((item) => item.kind === 'reply'),
        { xid: 7777 },
      ),
  ],
  [
    'zxidOrder',
    'a zxid that goes back',
    (recording) => change(recording.cnxns.find(({ items }) => items.length > 3)!.items[2], { zxid: 0 }),
  ],
  [
    'zxidOrder',
    'a write that was asked for after one behind it was acknowledged',
    (recording) => change(acknowledged(recording)[0], { sentMs: recording.endedMs }),
  ],
  [
    'watches',
    'an event that is missing',
    (recording) => {
      const { cnxn, at } = eventBeforeReply(recording);
      cnxn.items.splice(at, 1);
    },
  ],
  [
    'watches',
    'an event that comes twice',
    (recording) => {
      const { cnxn, at } = eventBeforeReply(recording);
      cnxn.items.splice(at, 0, cnxn.items[at]!);
    },
  ],
  [
    'watches',
    'an event behind the reply that shows the change',
    (recording) => {
      const { cnxn, at } = eventBeforeReply(recording);
      cnxn.items.splice(at, 2, cnxn.items[at + 1]!, cnxn.items[at]!);
    },
  ],
  [
    'watches',
    'an event of another kind',
    (recording) => {
      const { cnxn, at } = eventBeforeReply(recording);
      change(cnxn.items[at], { type: EventType.dataWatchRemoved });
    },
  ],
  [
    'ephemerals',
    'an ephemeral of a session that has ended',
    (recording) => {
      for (const { reply } of requestsOf(recording)) {
        const { stat } = (reply?.body ?? {}) as { stat?: { ephemeralOwner: bigint } };
        if (stat !== undefined && stat.ephemeralOwner !== 0n) return change(reply, { zxid: Infinity });
      }
      throw new NothingOfTheKind();
    },
  ],
  ['expiry', 'a session that ended too early', (recording) => change(expired(recording), { atMs: expired(recording).atMs - 4000 })],
  ['expiry', 'a session that ended too late', ({ arrivals }) => arrivals.clear()],
  [
    'sessionIdentity',
    'an id that was given twice',
    (recording) => {
      const [first, second] = recording.cnxns.filter(({ asked, session }) => asked === 0n && session !== undefined);
      second!.session = first!.session;
    },
  ],
  [
    'sessionIdentity',
    'a session that was taken up after its end',
    (recording) =>
      change(
        recording.cnxns.find(({ asked, session }) => asked !== 0n && session === asked),
        { openedMs: Infinity },
      ),
  ],
  ['afterFailure', 'a word after the end', (recording) => change(recording.processes[0], { sentAfterFailure: 1 })],
];

function isWriteReply(item: Item): boolean {
  return item.kind === 'reply' && writeNames.has(item.request.name);
}

test.each(changes)('%s notices %s', async (checker, _what, mutate) => {
  for (let seed = 1; seed <= seedMax; seed++) {
    const { recording } = await runSeed(seed);
    try {
      mutate(recording);
    } catch (error) {
      // The story has nothing of the kind.
      if (!(error instanceof TypeError || error instanceof NothingOfTheKind)) throw error;
      continue;
    }
    if (check(recording).some((fault) => fault.startsWith(`${checker}: `))) return;
  }
  expect.fail(`in ${seedMax} stories nobody noticed`);
});

test('every checker has a canary', () => {
  expect(new Set(changes.map(([checker]) => checker))).toEqual(new Set(Object.keys(checkers)));
});
