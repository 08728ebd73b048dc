/** Laws that hold between the fields of a Stat at all times. */
import type { GetChildren2Reply, GetDataReply, Stat } from '@tskeeper/protocol';
import { requestText } from '../record/request-text.ts';
import type { Checker } from './checker.ts';

export const statConsistency: Checker = {
  property: 'P26',
  promise: 'The fields of a Stat are consistent: czxid is not later than mzxid, and data length and number of children are right.',
  check({ cnxns }) {
    const violations: string[] = [];
    for (const { requests } of cnxns) {
      for (const request of requests) {
        const { stat } = (request.reply?.body ?? {}) as { readonly stat?: Stat };
        if (stat === undefined) continue;
        const broken = [
          stat.czxid > stat.mzxid && 'was changed before it was created',
          stat.czxid > stat.pzxid && 'had children before it was created',
          stat.mzxid > request.reply!.zxid && 'was changed after the reply',
          stat.numChildren < 0 && 'has a negative number of children',
          stat.ephemeralOwner !== 0n && stat.numChildren > 0 && 'is ephemeral and has children',
          request.name === 'getData' &&
            (request.reply!.body as GetDataReply).data?.length !== (stat.dataLength || undefined) &&
            !((request.reply!.body as GetDataReply).data?.length === 0 && stat.dataLength === 0) &&
            'has data of another length',
          request.name === 'getChildren2' &&
            (request.reply!.body as GetChildren2Reply).children.length !== stat.numChildren &&
            'has another number of children',
        ].filter((law) => law !== false);
        for (const law of broken) violations.push(`${requestText(request)} shows a znode that ${law}`);
      }
    }
    return violations;
  },
};
