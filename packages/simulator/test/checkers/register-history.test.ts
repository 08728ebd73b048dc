/** The checker that trusts no zxid comes to a verdict, however many requests were never answered. */
import { ErrorCode } from '@tskeeper/protocol';
import { expect, it } from 'vitest';
import { registerHistory } from '../../src/checkers/register-history.ts';

type Evidence = Parameters<typeof registerHistory.check>;

/** `answer` undefined: the connection broke before it came. */
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
/** Four connections that broke over four writes each. */
const broken = [0, 1, 2, 3].map((line) => ({
  requests: [0, 1, 2, 3].map((place) => request('setData', { data: data(`${line}.${place}`), version: -1 }, 10)),
}));

function verdict(...reads: object[]): readonly string[] {
  const recording = { beginning: { znodes: [] }, ensemble: new Map(), cnxns: [{ requests: [created, ...reads] }, ...broken], log: [] };
  // It looks at no more of a recording than this, and not at what the model makes of it.
  return registerHistory.check(...([recording, {}] as unknown as Evidence));
}

it('finds that what was read can have been written by requests whose answers never came', () => {
  expect(verdict(readAt(20, '3.1', 1), readAt(30, '0.3', 5), readAt(40, '3.2', 6))).toEqual([]);
});

it('finds that nobody can have written what was read', () => {
  expect(verdict(readAt(20, 'never', 3))).toEqual([expect.stringMatching(/^there is no order in which \/a /)]);
});

it('finds that requests of one connection cannot have happened in another order than they were sent in', () => {
  expect(verdict(readAt(20, '3.2', 1), readAt(30, '3.1', 2))).toEqual([expect.stringMatching(/^there is no order in which \/a /)]);
});

it('finds that a znode which was counted for a request without an answer has gone with its session, and made way for another', () => {
  const path = '/a0000000001';
  const requests = [
    request('create', { flags: 3, data: null }, 0),
    { ...request('create', { path, flags: 0, data: null }, 10), reply: { atMs: 11, err: ErrorCode.NodeExists } },
    { ...request('delete', { path, version: -1 }, 20), reply: { atMs: 21, err: ErrorCode.NoNode } },
    request('create', { path, flags: 0, data: null }, 30, { path }),
  ];
  const recording = { beginning: { znodes: [] }, ensemble: new Map(), cnxns: requests.map((each) => ({ requests: [each] })), log: [] };
  expect(registerHistory.check(...([recording, {}] as unknown as Evidence))).toEqual([]);
});
