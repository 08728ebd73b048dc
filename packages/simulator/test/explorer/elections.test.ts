/** That elections end is for the small world to say, which knows who can reach whom. */
import { Peer } from '@tskeeper/core';
import { afterEach, expect, test, vi } from 'vitest';
import { choice, chosen, openingToServe, parseRun, replayRun, scopeDefaults, SmallWorld } from '../../src/internal.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

/** All serve; then one of those that follow has crashed and is back. */
function withLatecomer(): SmallWorld {
  const world = new SmallWorld(scopeDefaults);
  for (const code of openingToServe({ scope: scopeDefaults })) world.make(code);
  const { sid } = world.servers.find(({ peer }) => peer?.role === 'learning')!;
  world.make(choice('crash', sid, 0, 0));
  world.make(choice('start', sid));
  return world;
}

test('who comes late finds the leader that a quorum has', () => {
  const world = withLatecomer();
  world.make(world.choices().find((code) => chosen(code).kind === 'elect' && chosen(code).a === 7)!);
  expect(world.servers.filter(({ isLooking }) => isLooking)).toEqual([]);
});

test('that nobody tells him is noticed', () => {
  const world = withLatecomer();
  vi.spyOn(Peer.prototype, 'notified').mockImplementation(() => undefined);
  expect(() => world.make(choice('elect', 7))).toThrow('1 find no leader');
});

test('who all look settle, and that none does is noticed', () => {
  const world = new SmallWorld(scopeDefaults);
  vi.spyOn(Peer.prototype, 'notified').mockImplementation(() => undefined);
  expect(() => world.make(choice('elect', 6))).toThrow(/2, 3 all look, and none has settled after \d+ ms/);
});

test('that servers answer each other for ever is noticed', () => {
  const world = new SmallWorld(scopeDefaults);
  for (const server of world.servers) {
    vi.spyOn(server, 'notified').mockImplementation((from, notification) => server.notify(from, notification));
  }
  expect(() => world.make(choice('elect', 6))).toThrow('2, 3 answer each other for ever');
});

test('a server that shuns itself and says nothing looks all the same', () => {
  // Server 3 leads in vain for two seconds, and is the best of 2 and 3 still.
  const { world, made } = replayRun({ scope: scopeDefaults }, parseRun('elect6,sleep3'));
  expect(made).toHaveLength(2);
  const looks = world.servers[2]!;
  expect([looks.isLooking, looks.saidLooking]).toEqual([true, false]);
});
