import { expect, test } from 'vitest';
import { lastWords } from '../../src/checkers/staleness.ts';
import type { PeerEvent } from '../../src/record/peer-event.ts';

const serves = (server: string, role: 'leader' | 'follower'): PeerEvent => ({
  atMs: 1,
  server,
  kind: 'serves',
  role,
  epoch: 3,
  historyEnd: 0,
});
const ended = (atMs: number, server: string, reason: 'quorum lost' | 'leader silent', text = ''): PeerEvent => {
  return { atMs, server, kind: 'roleEnded', reason, text };
};
const begun = [serves('server-1', 'leader'), serves('server-2', 'follower')];
const silentFor = (ms: number, atMs: number): PeerEvent =>
  ended(atMs, 'server-2', 'leader silent', `nothing was received from the leader for ${ms} ms`);

test('what a leader had sent before its role ended may still arrive, and then its silence begins', () => {
  const peerEvents = [...begun, ended(100, 'server-1', 'quorum lost'), silentFor(50.5, 200)];
  expect(lastWords({ peerEvents })).toEqual([{ machines: ['server-2'], fromMs: 100, toMs: 149.5 }]);
});

test('nothing is excused where the leader was silent before its role ended, or still leads', () => {
  expect(lastWords({ peerEvents: [...begun, ended(160, 'server-1', 'quorum lost'), silentFor(50.5, 200)] })).toEqual([]);
  expect(lastWords({ peerEvents: [...begun, silentFor(50.5, 200)] })).toEqual([]);
});
