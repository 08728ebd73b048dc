/** That elections end is for the small world to say, which knows who can reach whom. */
import { Peer } from '@tskeeper/core';
import { expect, test, vi } from 'vitest';
import { choice, scopeDefaults, SmallWorld } from '../../src/internal.ts';

test('who can reach each other and all look for a leader find one', () => {
  const world = new SmallWorld(scopeDefaults);
  world.make(choice('elect', 7));
  expect(world.servers.filter(({ isLooking }) => isLooking)).toEqual([]);
});

test('that they do not is noticed', () => {
  const deaf = vi.spyOn(Peer.prototype, 'notified').mockImplementation(() => undefined);
  try {
    expect(() => new SmallWorld(scopeDefaults).make(choice('elect', 7))).toThrow('Settles');
  } finally {
    deaf.mockRestore();
  }
});
