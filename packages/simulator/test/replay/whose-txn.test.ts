/** Two processes with one session may use one xid: their writes are told apart by what they ask for, and not by the answers they got. */
import { ErrorCode, type LoggedTxn, OpCode, type Txn } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import type { Request } from '../../src/record/recording.ts';
import { alternatives, type Candidate, type ConnectionWrites, leadsOn, type NextTxn, whoseTxn } from '../../src/replay/whose-txn.ts';

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

/** Those of one connection, in order. `tracedPlace` of them have become txns, the last of these `tracedZxid`. */
function candidates(requests: readonly Request[], more: Partial<Candidate & ConnectionWrites> = {}): Candidate[] {
  const { tracedPlace = 0, tracedZxid = 0, turnedAway = [], ...rest } = more;
  const over: ConnectionWrites = { writes: [...requests], tracedPlace, tracedZxid, turnedAway };
  const mayBeLeft = (rest.movedMs ?? Infinity) < Infinity;
  return requests.map((request, index) => ({
    request,
    movedMs: Infinity,
    mayBeLeft,
    place: index + 1,
    shownZxid: 0,
    over,
    zxids: [],
    ...rest,
  }));
}

/** The last one of its connection. */
function candidate(request: Request, more: Partial<Candidate & ConnectionWrites> = {}, ahead: readonly Request[] = []): Candidate {
  return candidates([...ahead, request], more).at(-1)!;
}

function logged(txn: Txn): LoggedTxn {
  return { header: { clientHigh: 0, clientLow: 5, cxid: 3, zxid: at, time: 20, type: 0 }, txn, digest: undefined };
}

const setTo = (text: string) => logged({ kind: 'setData', path: '/', data: Buffer.from(text), version: 4 });
const refused = (err: number) => logged({ kind: 'error', err });
const answer = (err: number, zxid = at) => ({ reply: { atMs: 30, zxid, err, body: undefined } });
const always = () => true;
const never = () => false;

describe('a txn whose session and xid two requests bear', () => {
  it('belongs to the one that asked for its content, though the other was given the answer', () => {
    const first = candidate(setData('first'));
    const second = candidate(setData('second', answer(ErrorCode.Ok)));
    expect(whoseTxn([first, second], setTo('first'), 20, always, never)).toBe(first);
    expect(whoseTxn([second, first], setTo('first'), 20, always, never)).toBe(first);
    expect(whoseTxn([first, second], setTo('second'), 20, always, never)).toBe(second);
  });

  it('belongs to the one whose next write is the next txn, where nothing else tells', () => {
    const [first, second] = [candidate(setData('same')), candidate(setData('same'))];
    expect(whoseTxn([first, second], setTo('same'), 20, always, (each) => each === second)).toBe(second);
    expect(whoseTxn([second, first], setTo('same'), 20, always, (each) => each === first)).toBe(first);
  });

  it('does not belong to one whose connection had shown a later state before it was asked', () => {
    const moved = refused(ErrorCode.SessionMoved);
    const left = { movedMs: 5, mayBeLeft: true };
    const first = candidate(setData('first'), { ...left, movedMs: 4 });
    const second = candidate(setData('second'), { ...left, shownZxid: at });
    expect(whoseTxn([first, second], moved, 20, always, always)).toBe(first);
    expect(whoseTxn([second, first], moved, 20, always, always)).toBe(first);
    expect(leadsOn(first, [{ logged: moved, atMs: 20, candidates: [second] }])).toBe(false);
  });

  it('may as well belong to another that can have asked for it, if neither was answered', () => {
    const moved = refused(ErrorCode.SessionMoved);
    const left = { movedMs: 5, mayBeLeft: true };
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

  it('belongs to none of them when none asked for its content', () => {
    expect(whoseTxn([candidate(setData('first')), candidate(setData('second'))], setTo('third'), 20, always, never)).toBeUndefined();
  });

  it('is a repetition when the one that asked for it has happened already', () => {
    const first = candidate(setData('first'), { zxids: [at - 1] });
    expect(whoseTxn([first, candidate(setData('second'))], setTo('first'), 20, always, never)).toBe(first);
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
  ] as const)('is that of a %s', (name, record, txn) => {
    const mine = candidate(write(name, record));
    expect(whoseTxn([candidate(setData('other')), mine], logged(txn as unknown as Txn), 20, always, never)).toBe(mine);
  });

  it('is none of a request behind which its connection has gone on', () => {
    const [past] = candidates([setData('a'), setData('later')], { tracedPlace: 2 });
    const next = candidate(setData('b'), {}, [setData('blocked')]);
    expect(whoseTxn([past!, next], refused(ErrorCode.NoNode), 20, always, never)).toBe(next);
  });

  it('may be one behind a write that was turned away without its client hearing of it', () => {
    const blocked = candidate(setData('a'), {}, [setData('c')]);
    const free = candidate(setData('b'), { turnedAway: [OpCode.setData] }, [setData('d')]);
    expect(whoseTxn([blocked, free], refused(ErrorCode.NoNode), 20, always, never)).toBe(free);
    expect(whoseTxn([free, blocked], refused(ErrorCode.NoNode), 20, always, never)).toBe(free);
  });

  it('is, for an error, that of the request to which the model gives it', () => {
    const bad = candidate(setData('a'));
    const good = candidate(setData('b', answer(ErrorCode.BadVersion)));
    expect(whoseTxn([bad, good], refused(ErrorCode.BadVersion), 20, (each) => each === bad, never)).toBe(bad);
  });

  it.each([
    ['create2', ErrorCode.NodeExists],
    ['create', ErrorCode.NoChildrenForEphemerals],
    ['delete', ErrorCode.NotEmpty],
    ['delete', ErrorCode.BadVersion],
    ['setACL', ErrorCode.InvalidACL],
  ] as const)('is that of a %s, for the error %i, and not that of a request that cannot fail so', (name, err) => {
    const mine = candidate(write(name, { path: '/a' }));
    const other = candidate(write(name === 'delete' ? 'create' : 'multi', { path: '/a', ops: [] }));
    expect(whoseTxn([other, mine], refused(err), 20, always, never)).toBe(mine);
  });

  it('is, for an error that both could have got, that of the one that was answered with it', () => {
    const silent = candidate(setData('a'));
    const answered = candidate(setData('b', answer(ErrorCode.NoAuth)));
    expect(whoseTxn([silent, answered], refused(ErrorCode.NoAuth), 20, never, never)).toBe(answered);
  });

  it('is, for a session that has moved, that of the connection that was left', () => {
    const left = candidate(setData('a'), { movedMs: 15 });
    // It is left as well, later.
    const present = candidate(setData('b'), { movedMs: 40 });
    expect(whoseTxn([present, left], refused(ErrorCode.SessionMoved), 20, always, never)).toBe(left);
  });

  it('is, for an error txn of either that no client got as its reply, not that of a connection that the session had left by then', () => {
    const left = candidate(setData('a'), { movedMs: 15, tracedPlace: 1, tracedZxid: at - 5 }, [setData('c')]);
    for (const movedMs of [40, 18]) {
      const later = candidate(setData('b'), { movedMs });
      expect(whoseTxn([left, later], refused(ErrorCode.NoAuth), 20, always, never)).toBe(later);
    }
  });

  it('is, for an error that both could have got and nobody was told, that of the connection whose write came last', () => {
    const earlier = candidate(setData('a'), { tracedPlace: 1, tracedZxid: at - 5 }, [setData('c')]);
    const later = candidate(setData('b'), { tracedPlace: 1, tracedZxid: at - 1 }, [setData('d')]);
    expect(whoseTxn([earlier, later], refused(ErrorCode.NoAuth), 20, always, never)).toBe(later);
    expect(whoseTxn([later, earlier], refused(ErrorCode.NoAuth), 20, always, never)).toBe(later);
  });

  it('is not that of a request that was sent later, nor of one behind a write that has not happened', () => {
    const late = candidate(setData('a', { sentMs: 50 }));
    const blocked = candidate(setData('b'), {}, [setData('c')]);
    const next = candidate(setData('d'));
    expect(whoseTxn([late, blocked, next], refused(ErrorCode.NoAuth), 20, always, never)).toBe(next);
  });
});

describe('a request leads on to what the session does next', () => {
  const then = (atMs: number, ...askers: Candidate[]): NextTxn<Candidate> => ({
    logged: refused(ErrorCode.SessionMoved),
    atMs,
    candidates: askers,
  });
  const moved = { movedMs: 15 };
  const of = (...requests: Request[]) => candidates(requests, moved) as [Candidate, Candidate, Candidate];

  it('unless the write after it over its connection was asked for later', () => {
    const [mine, mineNext] = of(setData('a'), setData('c'));
    const [other, otherNext] = of(setData('b'), setData('d', { sentMs: 25 }));
    expect(leadsOn(mine, [then(21, mineNext, otherNext)])).toBe(true);
    expect(leadsOn(other, [then(21, mineNext, otherNext)])).toBe(false);
  });

  it('unless a later txn fits no request in the order of its connection', () => {
    const [mine, mineNext, mineLast] = of(setData('a'), setData('c'), setData('e'));
    const [other, otherNext] = of(setData('b'), setData('d'));
    expect(leadsOn(mine, [then(21, mineNext, otherNext), then(22, mineLast)])).toBe(true);
    expect(leadsOn(other, [then(21, mineNext, otherNext), then(22, mineLast)])).toBe(false);
  });

  it('unless it would be refused though its session was never asked for elsewhere', () => {
    const [mine, next] = candidates([setData('a'), setData('c')]) as [Candidate, Candidate];
    expect(leadsOn(mine, [then(21, next)])).toBe(false);
    const [left, behind] = candidates([setData('a'), setData('c')], { movedMs: 30 }) as [Candidate, Candidate];
    expect(leadsOn(left, [then(21, behind)])).toBe(true);
  });

  it('by a refusal with SessionMoved where an older connection may have asked for the session late', () => {
    const ask = (mayBeLeft: boolean) => candidates([setData('a'), setData('c')], { mayBeLeft }) as [Candidate, Candidate];
    const [stays, staysNext] = ask(false);
    const [moves, movesNext] = ask(true);
    expect(leadsOn(stays, [then(21, staysNext)])).toBe(false);
    expect(leadsOn(moves, [then(21, movesNext)])).toBe(true);
  });

  it('past what the server does by itself, and past a write that was turned away unheard', () => {
    const [mine, next] = of(setData('a'), setData('c'));
    const [other] = of(setData('b'));
    expect(leadsOn(mine, [then(21), then(21, next)])).toBe(true);
    expect(leadsOn(other, [then(21), then(21, next)])).toBe(false);
    const [first, , last] = candidates([setData('a'), setData('c'), setData('d')], { ...moved, turnedAway: [OpCode.setData] }) as [
      Candidate,
      Candidate,
      Candidate,
    ];
    expect(leadsOn(first, [then(21, last)])).toBe(true);
  });
});
