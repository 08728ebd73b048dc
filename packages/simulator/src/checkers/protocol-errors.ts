import type { Checker } from './checker.ts';

/** Reasons for which a role never ends among servers that follow the protocol. */
const protocolErrorReason = /out of order|does not accept|the next proposal is|the leader sent 0x|that this server did not send/;

export const protocolErrors: Checker = {
  property: 'P30',
  promise: 'No server of an ensemble receives a packet that it does not expect: none is missing, duplicated or out of order.',
  check({ peerEvents }) {
    const violations: string[] = [];
    for (const event of peerEvents) {
      if (event.kind === 'ended' && protocolErrorReason.test(event.reason))
        violations.push(`${event.server} ended its role at ${event.atMs}: ${event.reason}`);
    }
    return violations;
  },
};
