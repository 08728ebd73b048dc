import type { Checker } from './checker.ts';

export const protocolErrors: Checker = {
  property: 'P30',
  promise: 'No server of an ensemble receives a packet that it does not expect: none is missing, duplicated or out of order.',
  check({ peerEvents }) {
    const violations: string[] = [];
    for (const event of peerEvents) {
      if (event.kind === 'roleEnded' && event.reason === 'protocol error')
        violations.push(`${event.server} ended its role at ${event.atMs}: ${event.text}`);
    }
    return violations;
  },
};
