/**
 * Only the small world can check that elections end, since it knows which servers can reach each
 * other.
 */
import { Peer } from '@tskeeper/core';
import { afterEach, expect, test, vi } from 'vitest';
import { encodeChoice, decodeChoice, choicesToServe, parseRun, replayRun, scopeDefaults, SmallWorld } from '../../src/internal.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

/** All servers serve; then one follower crashes and restarts. */
function withLatecomer(): SmallWorld {
  const world = new SmallWorld(scopeDefaults);
  for (const code of choicesToServe({ scope: scopeDefaults })) world.apply(code);
  const { sid } = world.servers.find(({ peer }) => peer?.role === 'learning')!;
  world.apply(encodeChoice('crash', sid, 0, 0));
  world.apply(encodeChoice('start', sid));
  return world;
}

test('a server that starts later finds the leader of the quorum', () => {
  const world = withLatecomer();
  world.apply(world.choices().find((code) => decodeChoice(code).kind === 'elect' && decodeChoice(code).a === 7)!);
  expect(world.servers.filter(({ isLooking }) => isLooking)).toEqual([]);
});

test('a server that starts later and gets no vote of the others is a finding', () => {
  const world = withLatecomer();
  vi.spyOn(Peer.prototype, 'notified').mockImplementation(() => undefined);
  expect(() => world.apply(encodeChoice('elect', 7))).toThrow('1 find no leader');
});

test('servers that all look and find no leader are a finding', () => {
  const world = new SmallWorld(scopeDefaults);
  vi.spyOn(Peer.prototype, 'notified').mockImplementation(() => undefined);
  expect(() => world.apply(encodeChoice('elect', 6))).toThrow(/2, 3 all look, and none has found a leader after \d+ ms/);
});

test('servers that answer each other endlessly are a finding', () => {
  const world = new SmallWorld(scopeDefaults);
  for (const server of world.servers) {
    vi.spyOn(server, 'notified').mockImplementation((from, notification) => server.election.notify(from, notification));
  }
  expect(() => world.apply(encodeChoice('elect', 6))).toThrow('2, 3 answer each other endlessly');
});

test('a server that led without a quorum and has not announced a new vote counts as looking', () => {
  // Server 3 leads without a quorum for two seconds, and is still the better one of 2 and 3.
  const { world, made } = replayRun({ scope: scopeDefaults }, parseRun('elect6,sleep3'));
  expect(made).toHaveLength(2);
  const looks = world.servers[2]!;
  expect([looks.isLooking, looks.election.announcedLooking]).toEqual([true, false]);
});

test('a voter of a pending configuration alone does not delay an election', () => {
  // Servers 3 and 4 have logged that server 4 joins. Server 1 has not, and cannot vote for server 4.
  const run = parseRun(
    'elect15,dial1,dial2,packet3#0,file3,packet1#0,file1,packet3#0,file3,packet1#0,packet1#0,config1,file1,packet3#0,packet1#0,config1,packet3#0,config3,dial4,packet3#2,packet4#0,file4,packet3#2,log3,wake3,packet4#0,log4,config4,file4,packet3#2,packet4#0,write3,packet1#0,log1,packet3#0,log3,packet4#0,packet4#0,config4,log4,reconfig3.1,packet4#0,config4,crash3.1.0.1,packet4#0,crash1.0.0,start1,log4,elect11,start3,elect13',
  );
  const { world, made, error } = replayRun({ scope: { ...scopeDefaults, servers: 4, ensemble: 'growing', reconfigs: 1 } }, run);
  expect(error?.message).toBeUndefined();
  expect(made).toEqual(run);
  expect(world.servers[2]!.peer!.role).toBe('leading');
});
