import type { Millis, Zxid } from '@tskeeper/protocol';
import { nameRequest, overtakes } from '../replay/replay.ts';
import type { Checker } from './checker.ts';

/** Links and servers' turns take a few milliseconds each. */
const onTheWayMs = 30;

export const timeliness: Checker = {
  property: 'P10',
  promise: 'Who is served sees what was committed at most syncLimit and a tick ago, on whatever server.',
  check({ peers, cnxns, limits }) {
    const faults: string[] = [];
    const { syncLimitTicks, tickMs } = limits;
    if (syncLimitTicks === undefined) return faults;
    const lagMaxMs = (syncLimitTicks + 1) * tickMs + onTheWayMs;
    const commits: { readonly atMs: Millis; readonly zxid: Zxid }[] = [];
    const leading = new Set<string>();
    for (const event of peers) {
      if (event.kind === 'serves' && event.role === 'leader') leading.add(event.server);
      if (event.kind === 'ended' || event.kind === 'gone') leading.delete(event.server);
      if (event.kind === 'applied' && leading.has(event.server)) commits.push({ atMs: event.atMs, zxid: event.zxid });
    }
    const requests = cnxns.flatMap((cnxn) => cnxn.requests.filter((request) => request.reply !== undefined && !overtakes(request)));
    let next = 0;
    let frontier: Zxid = 0;
    for (const request of requests.toSorted((a, b) => a.sentMs - b.sentMs)) {
      for (; next < commits.length && commits[next]!.atMs < request.sentMs - lagMaxMs; next++) {
        frontier = Math.max(frontier, commits[next]!.zxid);
      }
      const { zxid } = request.reply!;
      if (zxid > 0 && zxid < frontier)
        faults.push(`${nameRequest(request)} shows ${zxid}, and ${frontier} was committed ${lagMaxMs} ms before it was asked`);
    }
    return faults;
  },
};
