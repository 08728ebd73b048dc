import type { Checker } from './checker.ts';

/** Reasons for which no role ever ends between servers that go by the protocol. */
const illegal = /means nothing|does not understand|was next|the leader sent 0x|which no leader understands|nobody asked for/;

export const legality: Checker = {
  property: 'P30',
  promise:
    'No server of an ensemble is sent what it cannot make sense of: nothing is left out, nothing comes twice, nothing comes out of place.',
  check({ peers }) {
    const faults: string[] = [];
    for (const event of peers) {
      if (event.kind === 'ended' && illegal.test(event.reason)) faults.push(`${event.server} gave up at ${event.atMs}: ${event.reason}`);
    }
    return faults;
  },
};
