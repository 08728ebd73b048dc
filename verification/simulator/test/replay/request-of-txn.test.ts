/**
 * Two processes with one session may use the same xid: their writes are distinguished by what they
 * request, and not by the replies they got.
 */
import { ErrorCode, type TxnLogEntry, OpCode, type Txn } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import type { Request } from '../../src/record/recording.ts';
import {
  alternatives,
  type Candidate,
  type ConnectionWrites,
  canContinueWith,
  type NextTxn,
  requestOfTxn,
} from '../../src/replay/request-of-txn.ts';

const at = 0x100000007;

function write(
  name: 'setData' | 'setACL' | 'delete' | 'create' | 'create2' | 'multi',
  record: object,
  more: Partial<Request> = {},
): Request {
  return { session: 5n, xid: 3, opCode: OpCode[name], name, record, sentMs: 10, reply: undefined, ...more };
}

function setData(text: string, more: Partial<Request> = {}): Request {
  return write('setData', { path: '/', data: Buffer.from(text), version: -1 }, more);
}

/**
 * The requests of one connection, in order. `tracedIndex` of them have become txns, the last one
 * with zxid `tracedZxid`.
 */
function candidates(requests: readonly Request[], more: Partial<Candidate & ConnectionWrites> = {}): Candidate[] {
  const { tracedIndex = 0, tracedZxid = 0, throttledOps = [], ...rest } = more;
  const cnxnWrites: ConnectionWrites = { writes: [...requests], tracedIndex, tracedZxid, throttledOps };
  const mayHaveMoved = (rest.movedMs ?? Infinity) < Infinity;
  return requests.map((request, index) => ({
    request,
    movedMs: Infinity,
    mayHaveMoved,
    index: index + 1,
    shownZxid: 0,
    cnxnWrites,
    zxids: [],
    ...rest,
  }));
}

/** The last request of its connection. */
function candidate(request: Request, more: Partial<Candidate & ConnectionWrites> = {}, ahead: readonly Request[] = []): Candidate {
  return candidates([...ahead, request], more).at(-1)!;
}

function logged(txn: Txn): TxnLogEntry {
  return { header: { clientHigh: 0, clientLow: 5, cxid: 3, zxid: at, time: 20, type: 0 }, txn, digest: undefined };
}

const setTo = (text: string) => logged({ kind: 'setData', path: '/', data: Buffer.from(text), version: 4 });
const refused = (err: number) => logged({ kind: 'error', err });
const answer = (err: number, zxid = at) => ({ reply: { atMs: 30, zxid, err, body: undefined } });
const always = () => true;
const never = () => false;

describe('a txn with the session and xid of two requests', () => {
  it('belongs to the request for its content, even if the other one got the reply', () => {
    const first = candidate(setData('first'));
    const second = candidate(setData('second', answer(ErrorCode.Ok)));
    expect(requestOfTxn([first, second], setTo('first'), 20, always, never)).toBe(first);
    expect(requestOfTxn([second, first], setTo('first'), 20, always, never)).toBe(first);
    expect(requestOfTxn([first, second], setTo('second'), 20, always, never)).toBe(second);
  });

  it('belongs to the request whose next write is the next txn, if nothing else decides', () => {
    const [first, second] = [candidate(setData('same')), candidate(setData('same'))];
    expect(requestOfTxn([first, second], setTo('same'), 20, always, (each) => each === second)).toBe(second);
    expect(requestOfTxn([second, first], setTo('same'), 20, always, (each) => each === first)).toBe(first);
  });

  it('does not belong to a request whose connection had shown a later state before', () => {
    const moved = refused(ErrorCode.SessionMoved);
    const left = { movedMs: 5, mayHaveMoved: true };
    const first = candidate(setData('first'), { ...left, movedMs: 4 });
    const second = candidate(setData('second'), { ...left, shownZxid: at });
    expect(requestOfTxn([first, second], moved, 20, always, always)).toBe(first);
    expect(requestOfTxn([second, first], moved, 20, always, always)).toBe(first);
    expect(canContinueWith(first, [{ logged: moved, atMs: 20, candidates: [second] }])).toBe(false);
  });

  it('can also belong to another possible request, if neither got a reply', () => {
    const moved = refused(ErrorCode.SessionMoved);
    const left = { movedMs: 5, mayHaveMoved: true };
    const [first, second] = [candidate(setData('first'), left), candidate(setData('second'), left)];
    expect(alternatives([first, second], first, moved, 20)).toEqual([second]);
    const answered = candidate(setData('third', answer(ErrorCode.SessionMoved)), left);
    expect(alternatives([first, answered], first, moved, 20)).toEqual([]);
    expect(alternatives([first, answered], answered, moved, 20)).toEqual([]);
    const happened = candidate(setData('fourth'), { ...left, zxids: [at - 1] });
    const later = candidate(setData('fifth', { sentMs: 22 }), left);
    const stayed = candidate(setData('sixth'));
    expect(alternatives([first, happened, later, stayed], first, moved, 20)).toEqual([]);
  });

  it('belongs to neither if neither requested its content', () => {
    expect(requestOfTxn([candidate(setData('first')), candidate(setData('second'))], setTo('third'), 20, always, never)).toBeUndefined();
  });

  it('is a repetition if the request for it was already applied', () => {
    const first = candidate(setData('first'), { zxids: [at - 1] });
    expect(requestOfTxn([first, candidate(setData('second'))], setTo('first'), 20, always, never)).toBe(first);
  });

  it.each([
    [
      'create2',
      { path: '/q-', data: Buffer.from('x'), acl: [], flags: 2 },
      { kind: 'create', path: '/q-0000000001', data: Buffer.from('x') },
    ],
    ['delete', { path: '/a', version: -1 }, { kind: 'delete', path: '/a' }],
    [
      'multi',
      { ops: [{ kind: 'delete', path: '/a', version: -1 }] },
      { kind: 'multi', txns: [{ type: 2, txn: { kind: 'delete', path: '/a' } }] },
    ],
  ] as const)('belongs to a %s with its content', (name, record, txn) => {
    const mine = candidate(write(name, record));
    expect(requestOfTxn([candidate(setData('other')), mine], logged(txn as unknown as Txn), 20, always, never)).toBe(mine);
  });

  it('does not belong to a request if a later write of its connection is already a txn', () => {
    const [past] = candidates([setData('a'), setData('later')], { tracedIndex: 2 });
    const next = candidate(setData('b'), {}, [setData('blocked')]);
    expect(requestOfTxn([past!, next], refused(ErrorCode.NoNode), 20, always, never)).toBe(next);
  });

  it('can belong to a request after a write that was refused without a reply', () => {
    const blocked = candidate(setData('a'), {}, [setData('c')]);
    const free = candidate(setData('b'), { throttledOps: [OpCode.setData] }, [setData('d')]);
    expect(requestOfTxn([blocked, free], refused(ErrorCode.NoNode), 20, always, never)).toBe(free);
    expect(requestOfTxn([free, blocked], refused(ErrorCode.NoNode), 20, always, never)).toBe(free);
  });

  it('belongs, if it is an error, to the request for which the model predicts the error', () => {
    const bad = candidate(setData('a'));
    const good = candidate(setData('b', answer(ErrorCode.BadVersion)));
    expect(requestOfTxn([bad, good], refused(ErrorCode.BadVersion), 20, (each) => each === bad, never)).toBe(bad);
  });

  it.each([
    ['create2', ErrorCode.NodeExists],
    ['create', ErrorCode.NoChildrenForEphemerals],
    ['delete', ErrorCode.NotEmpty],
    ['delete', ErrorCode.BadVersion],
    ['setACL', ErrorCode.InvalidACL],
  ] as const)('belongs to a %s if it is the error %i, and not to a request that cannot fail so', (name, err) => {
    const mine = candidate(write(name, { path: '/a' }));
    const other = candidate(write(name === 'delete' ? 'create' : 'multi', { path: '/a', ops: [] }));
    expect(requestOfTxn([other, mine], refused(err), 20, always, never)).toBe(mine);
  });

  it('belongs, if it is an error that both could get, to the request that got it as its reply', () => {
    const silent = candidate(setData('a'));
    const answered = candidate(setData('b', answer(ErrorCode.NoAuth)));
    expect(requestOfTxn([silent, answered], refused(ErrorCode.NoAuth), 20, never, never)).toBe(answered);
  });

  it('belongs, if it is SessionMoved, to the connection that the session left', () => {
    const left = candidate(setData('a'), { movedMs: 15 });
    // The session leaves this connection too, but later.
    const present = candidate(setData('b'), { movedMs: 40 });
    expect(requestOfTxn([present, left], refused(ErrorCode.SessionMoved), 20, always, never)).toBe(left);
  });

  it('does not belong, if it is an error that no client got as a reply, to a connection that the session had left by then', () => {
    const left = candidate(setData('a'), { movedMs: 15, tracedIndex: 1, tracedZxid: at - 5 }, [setData('c')]);
    for (const movedMs of [40, 18]) {
      const later = candidate(setData('b'), { movedMs });
      expect(requestOfTxn([left, later], refused(ErrorCode.NoAuth), 20, always, never)).toBe(later);
    }
  });

  it('belongs, if it is an error that both could get and no client got, to the connection whose write became a txn last', () => {
    const earlier = candidate(setData('a'), { tracedIndex: 1, tracedZxid: at - 5 }, [setData('c')]);
    const later = candidate(setData('b'), { tracedIndex: 1, tracedZxid: at - 1 }, [setData('d')]);
    expect(requestOfTxn([earlier, later], refused(ErrorCode.NoAuth), 20, always, never)).toBe(later);
    expect(requestOfTxn([later, earlier], refused(ErrorCode.NoAuth), 20, always, never)).toBe(later);
  });

  it('does not belong to a request that was sent later, nor to one after a write that was not applied', () => {
    const late = candidate(setData('a', { sentMs: 50 }));
    const blocked = candidate(setData('b'), {}, [setData('c')]);
    const next = candidate(setData('d'));
    expect(requestOfTxn([late, blocked, next], refused(ErrorCode.NoAuth), 20, always, never)).toBe(next);
  });
});

describe('a request leads to the next txns of its session', () => {
  const then = (atMs: number, ...askers: Candidate[]): NextTxn<Candidate> => ({
    logged: refused(ErrorCode.SessionMoved),
    atMs,
    candidates: askers,
  });
  const moved = { movedMs: 15 };
  const of = (...requests: Request[]) => candidates(requests, moved) as [Candidate, Candidate, Candidate];

  it('unless the next write of its connection was sent later', () => {
    const [mine, mineNext] = of(setData('a'), setData('c'));
    const [other, otherNext] = of(setData('b'), setData('d', { sentMs: 25 }));
    expect(canContinueWith(mine, [then(21, mineNext, otherNext)])).toBe(true);
    expect(canContinueWith(other, [then(21, mineNext, otherNext)])).toBe(false);
  });

  it('unless a later txn fits no request in the order of its connection', () => {
    const [mine, mineNext, mineLast] = of(setData('a'), setData('c'), setData('e'));
    const [other, otherNext] = of(setData('b'), setData('d'));
    expect(canContinueWith(mine, [then(21, mineNext, otherNext), then(22, mineLast)])).toBe(true);
    expect(canContinueWith(other, [then(21, mineNext, otherNext), then(22, mineLast)])).toBe(false);
  });

  it('unless it would be refused although no other connection had requested its session', () => {
    const [mine, next] = candidates([setData('a'), setData('c')]) as [Candidate, Candidate];
    expect(canContinueWith(mine, [then(21, next)])).toBe(false);
    const [left, behind] = candidates([setData('a'), setData('c')], { movedMs: 30 }) as [Candidate, Candidate];
    expect(canContinueWith(left, [then(21, behind)])).toBe(true);
  });

  it('through a SessionMoved error, if an older connection may have requested the session late', () => {
    const ask = (mayHaveMoved: boolean) => candidates([setData('a'), setData('c')], { mayHaveMoved }) as [Candidate, Candidate];
    const [stays, staysNext] = ask(false);
    const [moves, movesNext] = ask(true);
    expect(canContinueWith(stays, [then(21, staysNext)])).toBe(false);
    expect(canContinueWith(moves, [then(21, movesNext)])).toBe(true);
  });

  it('across txns of the server itself, and across a write that was refused without a reply', () => {
    const [mine, next] = of(setData('a'), setData('c'));
    const [other] = of(setData('b'));
    expect(canContinueWith(mine, [then(21), then(21, next)])).toBe(true);
    expect(canContinueWith(other, [then(21), then(21, next)])).toBe(false);
    const [first, , last] = candidates([setData('a'), setData('c'), setData('d')], { ...moved, throttledOps: [OpCode.setData] }) as [
      Candidate,
      Candidate,
      Candidate,
    ];
    expect(canContinueWith(first, [then(21, last)])).toBe(true);
  });
});
