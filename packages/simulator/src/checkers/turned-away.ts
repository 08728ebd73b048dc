import { ErrorCode } from '@tskeeper/protocol';
import { isTurnedAway, nameRequest } from '../replay/replay.ts';
import type { Checker } from './checker.ts';

export const turnedAway: Checker = {
  property: 'P3',
  promise: 'A server answers ThrottledOp to a write only when it reports that it has no room, once for each such report.',
  check(recording) {
    const faults: string[] = [];
    for (const { key, requests } of recording.cnxns) {
      const said = [...(recording.turnedAway.get(key) ?? [])];
      for (const request of requests) {
        if (request.reply?.err !== ErrorCode.ThrottledOp || !isTurnedAway(request)) continue;
        const at = said.indexOf(request.opCode);
        if (at === -1) faults.push(`${nameRequest(request)} was turned away, though ${key} had room for it`);
        else said.splice(at, 1);
      }
    }
    return faults;
  },
};
