import { expect, test } from 'vitest';
import { observersOfFollowers } from '../../src/record/observers-of-followers.ts';
import type { PeerEvent } from '../../src/record/peer-event.ts';

const ensemble = new Map([
  ['server-1', { sid: 1, isVoter: true, observesFollowers: false }],
  ['server-2', { sid: 2, isVoter: true, observesFollowers: false }],
  ['server-3', { sid: 3, isVoter: false, observesFollowers: true }],
  ['server-4', { sid: 4, isVoter: false, observesFollowers: false }],
]);
const members = ['server.1=a:1:2:participant', 'server.2=b:1:2:observer', 'server.3=c:1:2:observer', 'server.4=d:1:2:observer'];
const config = (server: string): PeerEvent => ({ atMs: 1, server, kind: 'config', text: members.join('\n') });

test('a voter that a reconfiguration made an observer may learn from a follower', () => {
  const peerEvents: PeerEvent[] = [config('server-1')];
  const found = () => [...observersOfFollowers({ ensemble, peerEvents } as never)];
  expect(found()).toEqual(['server-3']);
  peerEvents.push(config('server-2'), config('server-4'));
  expect(found()).toEqual(['server-3', 'server-2']);
});
