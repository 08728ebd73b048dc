/**
 * An ephemeral lives as long as its session: none is seen before its owner's session has begun or after it has ended. Told by the log's
 * sessions alone, without the model.
 */
import type { Stat } from '@tskeeper/protocol';
import type { Recording } from '../recording.ts';
import { nameRequest, type Replay } from '../replay.ts';

export function ephemerals(recording: Recording, { sessions }: Replay): string[] {
  const faults: string[] = [];
  for (const { requests } of recording.cnxns) {
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
}
