/**
 * The checker that does not use zxids terminates, however many requests stay without an answer.
 */
import { ErrorCode, OpCode } from '@tskeeper/protocol';
import { expect, it } from 'vitest';
import { registerLinearizability } from '../../src/checkers/register-linearizability.ts';

type Evidence = Parameters<typeof registerLinearizability.check>;

/** `answer` undefined: the connection broke before the answer arrived. */
function request(name: string, record: object, sentMs: number, answer?: object): object {
  return {
    name,
    record: { path: '/a', ...record },
    sentMs,
    session: 1n,
    ...(answer === undefined ? {} : { reply: { atMs: sentMs + 1, err: ErrorCode.Ok, body: answer } }),
  };
}

const data = (text: string): Buffer => Buffer.from(text);
const created = request('create', { data: data('new'), flags: 0 }, 0, { path: '/a' });
const readAt = (sentMs: number, text: string, version: number): object =>
  request('getData', {}, sentMs, { data: data(text), stat: { version } });
/** Four connections that broke during four writes each. */
const broken = [0, 1, 2, 3].map((line) => ({
  requests: [0, 1, 2, 3].map((place) => request('setData', { data: data(`${line}.${place}`), version: -1 }, 10)),
}));

function verdict(...reads: object[]): readonly string[] {
  const recording = { seedState: { znodes: [] }, ensemble: new Map(), cnxns: [{ requests: [created, ...reads] }, ...broken], log: [] };
  // The checker reads only this part of a recording, and not the result of the model.
  return registerLinearizability.check(...([recording, {}] as unknown as Evidence));
}

it('a value that was read is accepted if a request without a reply may have written it', () => {
  expect(verdict(readAt(20, '3.1', 1), readAt(30, '0.3', 5), readAt(40, '3.2', 6))).toEqual([]);
});

it('a value that no request can have written is a finding', () => {
  expect(verdict(readAt(20, 'never', 3))).toEqual([expect.stringMatching(/^no order of the \d+ operations on \/a /)]);
});

it('reads that reverse the order of two requests of one connection are a finding', () => {
  expect(verdict(readAt(20, '3.2', 1), readAt(30, '3.1', 2))).toEqual([expect.stringMatching(/^no order of the \d+ operations on \/a /)]);
});

/** Of session 1; `deleted` undefined for a txn that has changed nothing. */
function removalTxn(zxid: number, cxid: number, deleted?: readonly string[]): object {
  const members = deleted?.map((path) => ({ type: OpCode.delete, txn: { kind: 'delete', path } }));
  const txn = members === undefined ? { kind: 'error', err: ErrorCode.Ok } : { kind: 'multi', txns: members };
  return { logged: { header: { clientHigh: 0, clientLow: 1, cxid, zxid, type: OpCode.multi }, txn } };
}

const removal = { ...request('removeRecursive', { limit: 100 }, 10), xid: 7 };
const answeredRemoval = { ...removal, reply: { atMs: 11, err: ErrorCode.Ok, zxid: 5 } };

/** Both /a and /a/x are created before, and each of `others` is sent over a connection of its own. */
function verdictOfRemoval(log: readonly object[], ...others: object[]): readonly string[] {
  const both = [created, request('create', { path: '/a/x', data: data('new'), flags: 0 }, 2, { path: '/a/x' })];
  const cnxns = [{ requests: both }, ...others.map((each) => ({ requests: [each] }))];
  const recording = { seedState: { znodes: [] }, ensemble: new Map(), cnxns, log };
  return registerLinearizability.check(...([recording, {}] as unknown as Evidence));
}

const readOfChild = (sentMs: number, answer?: object) => ({
  ...request('exists', { path: '/a/x' }, sentMs),
  reply: { atMs: sentMs + 1, ...(answer === undefined ? { err: ErrorCode.NoNode } : { err: ErrorCode.Ok, body: answer }) },
});
const isThere = { stat: { version: 0 } };

it('after a removeRecursive the znodes of its txn are gone, and there are no others', () => {
  const whole = [removalTxn(5, 7, ['/a/x', '/a'])];
  expect(verdictOfRemoval(whole, answeredRemoval, readOfChild(20))).toEqual([]);
  expect(verdictOfRemoval(whole, answeredRemoval, readOfChild(20, isThere))).toEqual([expect.stringContaining('operations on /a/x ')]);
  expect(verdictOfRemoval([removalTxn(5, 7, ['/a'])], answeredRemoval)).toEqual([expect.stringContaining('operations on /a/x ')]);
  expect(verdictOfRemoval([removalTxn(5, 7)], answeredRemoval)).toHaveLength(2);
});

it('a removeRecursive without an answer has an effect at any time, or never, and none without a txn', () => {
  const whole = [removalTxn(5, 7, ['/a/x', '/a'])];
  expect(verdictOfRemoval(whole, removal, readOfChild(20, isThere), readOfChild(30))).toEqual([]);
  expect(verdictOfRemoval(whole, removal, readOfChild(20), readOfChild(30, isThere))).toHaveLength(1);
  expect(verdictOfRemoval([], removal, readOfChild(20, isThere))).toEqual([]);
  expect(verdictOfRemoval([], removal, readOfChild(20))).toHaveLength(1);
});

it('a removeRecursive in a multi may be followed by a create of the same znode', () => {
  const ops = [
    { kind: 'removeRecursive', path: '/a', limit: 100 },
    { kind: 'create', path: '/a', data: data('again'), flags: 0 },
  ];
  const reply = { atMs: 11, err: ErrorCode.Ok, zxid: 5, body: { results: [{ kind: 'removeRecursive' }, { kind: 'create', path: '/a' }] } };
  const multi = { ...request('multi', { ops }, 10), xid: 7, reply };
  const { logged } = removalTxn(5, 7, ['/a/x', '/a']) as { logged: { header: object; txn: { txns: object[] } } };
  const txns = [...logged.txn.txns, { type: OpCode.create, txn: { kind: 'create', path: '/a', data: data('again') } }];
  const log = [{ logged: { ...logged, txn: { kind: 'multi', txns } } }];
  expect(verdictOfRemoval(log, multi, readAt(20, 'again', 0), readOfChild(20))).toEqual([]);
  expect(verdictOfRemoval(log, multi, readAt(20, 'new', 0))).toEqual([expect.stringContaining('operations on /a ')]);
});

it('an ephemeral znode of a create without an answer is deleted with its session, and another create can succeed', () => {
  const path = '/a0000000001';
  const requests = [
    request('create', { flags: 3, data: null }, 0),
    { ...request('create', { path, flags: 0, data: null }, 10), reply: { atMs: 11, err: ErrorCode.NodeExists } },
    { ...request('delete', { path, version: -1 }, 20), reply: { atMs: 21, err: ErrorCode.NoNode } },
    request('create', { path, flags: 0, data: null }, 30, { path }),
  ];
  const recording = { seedState: { znodes: [] }, ensemble: new Map(), cnxns: requests.map((each) => ({ requests: [each] })), log: [] };
  expect(registerLinearizability.check(...([recording, {}] as unknown as Evidence))).toEqual([]);
});

it('a multi that creates a znode unless it exists and deletes it may take effect where it exists, also at a moment when it does not', () => {
  const ops = [
    { kind: 'createIfNotExists', path: '/a', data: data('kept'), flags: 0 },
    { kind: 'delete', path: '/a', version: -1 },
  ];
  const results = [{ kind: 'createIfNotExists', path: '/a' }, { kind: 'delete' }];
  const both = { ...request('multi', { ops }, 5), reply: { atMs: 15, err: ErrorCode.Ok, body: { results } } };
  const create = (sentMs: number, atMs: number) => ({
    ...request('create', { data: data('new'), flags: 0 }, sentMs),
    reply: { atMs, err: ErrorCode.Ok, body: { path: '/a' } },
  });
  const verdictOf = (...requests: object[]) => {
    const cnxns = requests.map((each) => ({ requests: [each] }));
    const recording = { seedState: { znodes: [] }, ensemble: new Map(), cnxns, log: [] };
    return registerLinearizability.check(...([recording, {}] as unknown as Evidence));
  };
  // The first create overlaps the multi, and the second shows that the multi came between them.
  expect(verdictOf(create(0, 10), both, create(20, 21))).toEqual([]);
  expect(verdictOf(create(0, 10), both, readAt(20, 'new', 0))).toEqual([]);
  expect(verdictOf(create(0, 10), both, create(20, 21), create(22, 23))).toHaveLength(1);
});
