/**
 * The checker that does not use zxids terminates, however many requests stay without an answer.
 */
import { ErrorCode } from '@tskeeper/protocol';
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
