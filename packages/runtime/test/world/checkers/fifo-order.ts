/** Replies come in the order of their requests, each with its xid. */
import type { Recording } from '../recording.ts';
import { nameRequest } from '../replay.ts';

export function fifoOrder(recording: Recording): string[] {
  const faults: string[] = [];
  for (const { requests, items } of recording.cnxns) {
    let next = 0;
    for (const item of items) {
      if (item.kind !== 'reply') continue;
      const expected = requests[next++];
      if (expected === undefined || item.xid !== expected.xid || item.request !== expected) {
        faults.push(
          `a reply with xid ${item.xid} came in the place of that to ${expected === undefined ? 'nothing' : nameRequest(expected)}`,
        );
        break;
      }
    }
  }
  return faults;
}
