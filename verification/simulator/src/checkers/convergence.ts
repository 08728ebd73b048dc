import { formatZxid } from '@tskeeper/protocol';
import type { Checker } from './checker.ts';

export const convergence: Checker = {
  property: 'P29, P20, P26',
  promise:
    'When faults have ceased, all servers have the same last txn, znodes, ephemerals and sessions, and equal digests at equal zxids.',
  check({ quiescentStates }) {
    const violations: string[] = [];
    for (const states of quiescentStates) {
      const [first, ...others] = states;
      if (first === undefined) continue;
      for (const state of others) {
        for (const what of ['lastZxid', 'znodes', 'bytes', 'ephemerals', 'sessions'] as const) {
          if (state[what] !== first[what])
            violations.push(`${state.server} has ${what} ${state[what]}, but ${first.server} has ${first[what]}`);
        }
        for (const [zxid, digest] of state.digests) {
          const other = first.digests.get(zxid);
          if (other !== undefined && other !== digest) {
            violations.push(
              `at ${formatZxid(zxid)} the tree of ${state.server} had digest ${digest}, but that of ${first.server} had ${other}`,
            );
          }
        }
      }
    }
    return violations;
  },
};
