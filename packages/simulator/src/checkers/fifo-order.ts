import type { Request } from '../record/recording.ts';
import { isWrite, nameRequest, overtakes } from '../replay/replay.ts';
import type { Checker } from './checker.ts';

/** A ping is answered in its place like everything else. */
function keepsItsPlace(request: Request): boolean {
  return !overtakes(request);
}

export const fifoOrder: Checker = {
  property: 'P5',
  promise: 'A session is served in the order in which it asks: replies come in turn, and of what it sent a beginning has happened.',
  check({ cnxns }, { txns }) {
    const faults: string[] = [];
    const zxids = new Map(txns.map(({ request, zxid }) => [request, zxid]));
    for (const { requests, items } of cnxns) {
      const expected = requests.filter(keepsItsPlace);
      let next = 0;
      for (const item of items) {
        if (item.kind !== 'reply' || overtakes(item.request)) continue;
        const due = expected[next++];
        if (item.request !== due) {
          faults.push(
            `the reply to ${nameRequest(item.request)} came in the place of that to ${due === undefined ? 'nothing' : nameRequest(due)}`,
          );
          break;
        }
      }
      let last = 0;
      let missing: Request | undefined;
      for (const request of requests) {
        if (!isWrite(request)) continue;
        const zxid = zxids.get(request);
        if (zxid === undefined) {
          missing ??= request;
          continue;
        }
        if (missing !== undefined) faults.push(`${nameRequest(request)} has happened, though ${nameRequest(missing)} before it has not`);
        if (zxid <= last) faults.push(`${nameRequest(request)} became ${zxid}, though the one before it became ${last}`);
        last = zxid;
      }
    }
    return faults;
  },
};
