/** Uses only the sessions in the log, not the model. */
import type { Stat } from '@tskeeper/protocol';
import { requestText } from '../record/request-text.ts';
import type { Checker } from './checker.ts';

export const ephemerals: Checker = {
  property: 'P20',
  promise: 'An ephemeral exists only while its session lives: no reply shows one before the session is created or after it is closed.',
  check({ cnxns }, { sessions }) {
    const violations: string[] = [];
    for (const { requests } of cnxns) {
      for (const request of requests) {
        const { stat } = (request.reply?.body ?? {}) as { readonly stat?: Stat };
        if (stat === undefined || stat.ephemeralOwner === 0n) continue;
        const owner = sessions.get(stat.ephemeralOwner);
        const { zxid } = request.reply!;
        if (owner === undefined || zxid < owner.openedZxid || zxid >= owner.closedZxid) {
          violations.push(
            `${requestText(request)} shows at ${zxid} an ephemeral of session 0x${stat.ephemeralOwner.toString(16)}, which is not open then`,
          );
        }
      }
    }
    return violations;
  },
};
