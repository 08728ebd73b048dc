/** That elections end is for the small world to say, which knows who can reach whom. */
import { Peer } from '@tskeeper/core';
import { expect, test, vi } from 'vitest';
import { choice, chosen, openingToServe, scopeDefaults, SmallWorld } from '../../src/internal.ts';

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
  const deaf = vi.spyOn(Peer.prototype, 'notified').mockImplementation(() => undefined);
  try {
    expect(() => world.make(choice('elect', 7))).toThrow('Settles');
  } finally {
    deaf.mockRestore();
  }
});
