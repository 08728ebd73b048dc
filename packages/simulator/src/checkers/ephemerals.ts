/** Told by the log's sessions alone, without the model. */
import type { Stat } from '@tskeeper/protocol';
import { nameRequest } from '../replay/replay.ts';
import type { Checker } from './checker.ts';

export const ephemerals: Checker = {
  property: 'P20',
  promise: 'An ephemeral lives as long as its session: none is seen before its owner has come or after it has gone.',
  check({ cnxns }, { sessions }) {
    const faults: string[] = [];
    for (const { requests } of cnxns) {
      for (const request of requests) {
        const { stat } = (request.reply?.body ?? {}) as { readonly stat?: Stat };
        if (stat === undefined || stat.ephemeralOwner === 0n) continue;
        const owner = sessions.get(stat.ephemeralOwner);
        const { zxid } = request.reply!;
        if (owner === undefined || zxid < owner.openedZxid || zxid >= owner.closedZxid) {
          faults.push(
            `${nameRequest(request)} shows at ${zxid} an ephemeral of 0x${stat.ephemeralOwner.toString(16)}, whose session is not open then`,
          );
        }
      }
    }
    return faults;
  },
};
