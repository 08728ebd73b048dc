import { makeZxid } from '@tskeeper/protocol';
import { expect, test } from 'vitest';
import { zab } from '../../src/checkers/zab.ts';
import type { PeerEvent } from '../../src/record/peer-event.ts';

const leads = (atMs: number, server: string, epoch: number, historyEnd: number): PeerEvent => ({
  atMs,
  server,
  kind: 'serves',
  role: 'leader',
  epoch,
  historyEnd,
});
const applied = (atMs: number, server: string, zxid: number): PeerEvent => ({ atMs, server, kind: 'applied', zxid });
const faultsOf = (...peers: PeerEvent[]) => zab.check({ peers } as never, undefined as never);

const end = makeZxid(5, 2);
/** Epoch 7 is led, and has a txn. */
const seven = [leads(2, 'server-3', 7, end), applied(3, 'server-3', makeZxid(7, 1))];

test('a leader that stood still, and finds only then that a quorum was behind it, need not have what a later epoch has committed', () => {
  expect(faultsOf(...seven, leads(4, 'server-2', 6, end))).toEqual([]);
});

test('one that begins without what an earlier epoch has committed is found', () => {
  expect(faultsOf(...seven, leads(4, 'server-2', 8, end))).toEqual([
    expect.stringContaining('LeaderLogCompleteness: server-2 leads epoch 8'),
  ]);
});

test('as is one that stood still and commits behind a later epoch', () => {
  const late = applied(5, 'server-2', makeZxid(6, 1));
  expect(faultsOf(...seven, leads(4, 'server-2', 6, end), late)).toEqual([expect.stringContaining('PrimaryIntegrity: server-2')]);
});
