import { ErrorCode } from '@tskeeper/protocol';
import { isTurnedAway, nameRequest } from '../replay/replay.ts';
import type { Checker } from './checker.ts';

export const turnedAway: Checker = {
  property: 'P3',
  promise:
    'A write is turned away (ThrottledOp) only when its server says that there is no room for it, and once for each time that it says so.',
  check(recording) {
    const faults: string[] = [];
    for (const { key, requests } of recording.cnxns) {
      const said = [...(recording.turnedAway.get(key) ?? [])];
      for (const request of requests) {
        if (request.reply?.err !== ErrorCode.ThrottledOp || !isTurnedAway(request)) continue;
        const at = said.indexOf(request.opCode);
        if (at === -1) faults.push(`${nameRequest(request)} was turned away, and ${key} had room for it`);
        else said.splice(at, 1);
      }
    }
    return faults;
  },
};
