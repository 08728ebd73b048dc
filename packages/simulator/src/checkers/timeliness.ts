import type { Millis, Zxid } from '@tskeeper/protocol';
import { isQuorum } from '../record/quorum-rule.ts';
import { nameRequest, overtakes } from '../replay/replay.ts';
import type { Recording, Request } from '../record/recording.ts';
import type { Checker } from './checker.ts';

/** Allowance for links and turns of servers, which take a few milliseconds each. */
const onTheWayMs = 30;

export const timeliness: Checker = {
  property: 'P10',
  promise:
    'A server that serves a client lags the commits by at most syncLimit plus one tick. A server that was paused for longer than syncLimit since its election does not begin to lead.',
  judged: (recording) => readsToJudge(recording).length,
  check(recording) {
    const lagMaxMs = lagMaxMsOf(recording);
    const stale = readsToJudge(recording).flatMap(({ request, frontier }) => {
      const { zxid } = request.reply!;
      if (zxid >= frontier) return [];
      return [`${nameRequest(request)} shows ${zxid}, but ${frontier} was committed ${lagMaxMs} ms before the request`];
    });
    return [...stale, ...lateReigns(recording)];
  },
};

/** During the pause the others may have elected another leader and written. */
function lateReigns({ peers, pauses, ensemble, limits: { syncLimitTicks = 0, tickMs } }: Recording): string[] {
  const electedMs = new Map<string, Millis>();
  return peers.flatMap((event) => {
    const { server, atMs } = event;
    if (event.kind === 'elected') electedMs.set(server, atMs);
    if (event.kind !== 'serves' || event.role !== 'leader' || isQuorum(ensemble, [server])) return [];
    const sinceMs = electedMs.get(server) ?? atMs;
    const pause = pauses.find(
      ({ server: who, fromMs, toMs }) => who === server && fromMs > sinceMs && toMs <= atMs && toMs - fromMs > syncLimitTicks * tickMs,
    );
    if (pause === undefined) return [];
    return [`${server} begins to lead epoch ${event.epoch} at ${atMs}, though it was paused from ${pause.fromMs} to ${pause.toMs}`];
  });
}

function lagMaxMsOf({ limits: { syncLimitTicks = 0, tickMs } }: Recording): Millis {
  return (syncLimitTicks + 1) * tickMs + onTheWayMs;
}

/** Answered requests, with the highest zxid committed `lagMaxMs` before each was sent. */
function readsToJudge(recording: Recording): { readonly request: Request; readonly frontier: Zxid }[] {
  const { peers, cnxns, limits } = recording;
  if (limits.syncLimitTicks === undefined) return [];
  const lagMaxMs = lagMaxMsOf(recording);
  const found: { readonly request: Request; readonly frontier: Zxid }[] = [];
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
    if (request.reply!.zxid > 0 && frontier > 0) found.push({ request, frontier });
  }
  return found;
}
