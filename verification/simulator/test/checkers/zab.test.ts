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
const faultsOf = (...peerEvents: PeerEvent[]) => zab.check({ peerEvents } as never, undefined as never);

const end = makeZxid(5, 2);
/** Epoch 7 has a leader and one txn. */
const seven = [leads(2, 'server-3', 7, end), applied(3, 'server-3', makeZxid(7, 1))];

test('a leader that was paused and learns of its quorum only afterwards need not have the txns of a later epoch', () => {
  expect(faultsOf(...seven, leads(4, 'server-2', 6, end))).toEqual([]);
});

test('a leader that begins without a committed txn of an earlier epoch is a finding', () => {
  expect(faultsOf(...seven, leads(4, 'server-2', 8, end))).toEqual([
    expect.stringContaining('LeaderLogCompleteness: server-2 leads epoch 8'),
  ]);
});

test('a leader that was paused and commits a txn after a later epoch began is a finding', () => {
  const late = applied(5, 'server-2', makeZxid(6, 1));
  expect(faultsOf(...seven, leads(4, 'server-2', 6, end), late)).toEqual([expect.stringContaining('PrimaryIntegrity: server-2')]);
});

test('a server that truncates a txn which it has applied for clients is a finding', () => {
  const truncated = (zxid: number): PeerEvent => ({ atMs: 5, server: 'server-3', kind: 'replaced', by: 'trunc', zxid });
  expect(faultsOf(...seven, truncated(makeZxid(7, 1)))).toEqual([]);
  expect(faultsOf(...seven, truncated(end))).toEqual([
    expect.stringContaining('CommittedKept: server-3 truncates its log after 0x500000002'),
  ]);
});
