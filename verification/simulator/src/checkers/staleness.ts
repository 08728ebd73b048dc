import type { Millis, Zxid } from '@tskeeper/protocol';
import { leaderEpochsOf, servingPeriodsOf } from '../record/committed-history.ts';
import { membersOf } from '../record/config-text.ts';
import { observersOfFollowers } from '../record/observers-of-followers.ts';
import { isQuorum } from '../record/quorum-rule.ts';
import { isAnsweredOutOfOrder } from '../record/request-kinds.ts';
import { requestText } from '../record/request-text.ts';
import type { Disturbance, Recording, Request } from '../record/recording.ts';
import type { Checker } from './checker.ts';

/** Allowance for links and turns of servers, which take a few milliseconds each. */
const latencyMs = 30;

export const staleness: Checker = {
  property: 'P10',
  promise:
    'A server that serves a client lags the commits by at most syncLimit plus one tick, and the time for which links kept what was on its way to it; an observer of a follower by twice that. A server that was paused for longer than syncLimit since its election does not begin to lead.',
  casesExercised: (recording) => readsWithBound(recording).length,
  check(recording) {
    const stale = readsWithBound(recording).flatMap(({ request, frontier, lagMaxMs }) => {
      const { zxid } = request.reply!;
      if (zxid >= frontier) return [];
      return [`${requestText(request)} shows ${zxid}, but ${frontier} was committed ${lagMaxMs} ms before the request`];
    });
    return [...stale, ...lateLeaders(recording)];
  },
};

/** During the pause the others may have elected another leader and written. */
function lateLeaders({ peerEvents, pauses, ensemble, limits: { syncLimitTicks = 0, tickMs, oracleSid } }: Recording): string[] {
  const electedMs = new Map<string, Millis>();
  const configs = new Map<string, string>();
  const isQuorumAlone = (server: string): boolean => {
    const text = configs.get(server);
    return isQuorum(text === undefined ? ensemble : membersOf(text, oracleSid), [server]);
  };
  return peerEvents.flatMap((event) => {
    const { server, atMs } = event;
    if (event.kind === 'config') configs.set(server, event.text);
    // The last leader may name this server without an election.
    if (event.kind === 'elected' || event.kind === 'roleEnded') electedMs.set(server, atMs);
    if (event.kind !== 'serves' || event.role !== 'leader' || isQuorumAlone(server)) return [];
    const sinceMs = electedMs.get(server) ?? atMs;
    const pause = pauses.find(
      ({ server: who, fromMs, toMs }) => who === server && fromMs > sinceMs && toMs <= atMs && toMs - fromMs > syncLimitTicks * tickMs,
    );
    if (pause === undefined) return [];
    return [`${server} begins to lead epoch ${event.epoch} at ${atMs}, though it was paused from ${pause.fromMs} to ${pause.toMs}`];
  });
}

/** An observer of a follower may lag it by as much as the follower lags its leader. */
function lagMaxMsOf({ limits: { syncLimitTicks = 0, tickMs }, linkDistanceMs }: Recording, hops: number): Millis {
  return hops * ((syncLimitTicks + 1) * tickMs + latencyMs + linkDistanceMs);
}

/**
 * The time at which a server that answers at `atMs` may have fallen behind. It counts the silence of its
 * leader from the last message that it received, and a disturbance of the links may have kept that message.
 */
function behindSinceMs(disturbances: readonly Disturbance[], lagMaxMs: Millis, atMs: Millis): Millis {
  for (let sinceMs = atMs - lagMaxMs; ;) {
    const from = sinceMs;
    const keptMs = disturbances.reduce((sum, { fromMs, toMs }) => sum + Math.max(0, Math.min(toMs, atMs) - Math.max(fromMs, from)), 0);
    sinceMs = atMs - lagMaxMs - keptMs;
    if (sinceMs === from) return sinceMs;
  }
}

interface BoundedRead {
  readonly request: Request;
  /** How long before the request its server may have fallen behind. */
  readonly lagMaxMs: Millis;
  /** The highest zxid committed before that. */
  readonly frontier: Zxid;
}

/** Answered requests, with what each must have seen. */
function readsWithBound(recording: Recording): BoundedRead[] {
  const far = observersOfFollowers(recording);
  return [...readsWithin(recording, 1, (server) => !far.has(server)), ...readsWithin(recording, 2, (server) => far.has(server))];
}

function readsWithin(recording: Recording, hops: number, concerns: (server: string) => boolean): BoundedRead[] {
  const cnxns = recording.cnxns.filter(({ server }) => concerns(server));
  if (recording.limits.syncLimitTicks === undefined || cnxns.length === 0) return [];
  const lagMaxMs = lagMaxMsOf(recording, hops);
  const committedBefore = commitsOf(recording);
  const kept = [...recording.disturbances, ...lastWords(recording)];
  return cnxns.flatMap(({ server, requests }) => {
    // What an observer of a follower learns passes two links.
    const disturbances = kept.filter(({ machines }) => hops > 1 || machines.includes(server));
    return requests.flatMap((request) => {
      const { reply, sentMs } = request;
      if (reply === undefined || reply.zxid <= 0 || isAnsweredOutOfOrder(request)) return [];
      const sinceMs = behindSinceMs(disturbances, lagMaxMs, sentMs);
      const frontier = committedBefore(sinceMs);
      return frontier === 0 ? [] : [{ request, lagMaxMs: sentMs - sinceMs, frontier }];
    });
  });
}

/**
 * Where a small window lets little through at a time, a learner goes on receiving what its leader
 * had sent before it stopped to lead, and counts the silence of the leader from the last of it.
 */
export function lastWords(recording: Pick<Recording, 'peerEvents'>): Disturbance[] {
  const leaderEpochs = leaderEpochsOf(recording);
  const periods = servingPeriodsOf(recording);
  return recording.peerEvents.flatMap((event) => {
    if (event.kind !== 'roleEnded' || event.reason !== 'leader silent') return [];
    const { server, atMs, text } = event;
    const epoch = periods.find((each) => each.server === server && each.toMs === atMs)?.epoch;
    const fromMs = leaderEpochs.find((each) => each.epoch === epoch)?.toMs ?? Infinity;
    const toMs = atMs - Number(/for ([\d.]+) ms$/.exec(text)?.[1] ?? Infinity);
    return fromMs < toMs ? [{ machines: [server], fromMs, toMs }] : [];
  });
}

/** Returns the highest zxid that a leader had committed before a time; 0 if there is none. */
function commitsOf({ peerEvents }: Recording): (atMs: Millis) => Zxid {
  const times: Millis[] = [];
  const highest: Zxid[] = [];
  const leading = new Set<string>();
  for (const event of peerEvents) {
    if (event.kind === 'serves' && event.role === 'leader') leading.add(event.server);
    if (event.kind === 'roleEnded' || event.kind === 'processGone') leading.delete(event.server);
    if (event.kind !== 'applied' || !leading.has(event.server)) continue;
    times.push(event.atMs);
    highest.push(Math.max(event.zxid, highest.at(-1) ?? 0));
  }
  return (atMs) => {
    let [low, high] = [0, times.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (times[middle]! < atMs) low = middle + 1;
      else high = middle;
    }
    return highest[low - 1] ?? 0;
  };
}
