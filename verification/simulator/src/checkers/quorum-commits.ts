import { epochOf, formatZxid, type Millis, type Zxid } from '@tskeeper/protocol';
import { committedConfigs, configsAt } from '../record/config-history.ts';
import { isQuorum, withoutFavourite } from '../record/quorum-rule.ts';
import type { Recording } from '../record/recording.ts';
import { ServersWithoutLog } from '../record/servers-without-log.ts';
import type { Checker } from './checker.ts';

/**
 * The oracle is asked every 100 ms and takes a moment to answer; what is committed is applied some
 * turns later.
 */
const answerMs = 250;

export const quorumCommits: Checker = {
  property: 'P32, P36',
  promise:
    'A server applies a txn only when a quorum of the voters has it on disk: a majority, or what groups, weights and an oracle define; of a change of the membership also a quorum of the new voters. Observers and removed servers do not count. The voter that an oracle favours commits alone only if it leads, and only while the oracle allows it. Once a voter has a txn of its ' +
    "leader's epoch on disk, it keeps it.",
  check(recording) {
    const { peerEvents, ensemble } = recording;
    const violations: string[] = [];
    const configs = committedConfigs(recording);
    /** Whether a server votes in every configuration from that txn on. */
    const votesSince = (server: string, zxid: Zxid) =>
      [...configsAt(configs, zxid), ...configs.filter((config) => config.zxid >= zxid).map(({ members }) => members)].every(
        (members) => members.get(server)?.isVoter === true,
      );
    /**
     * By server and epoch: up to which zxid the server has had the log on disk. A learner may learn
     * of a commit after the commit's epoch is over.
     */
    const durable = new Map<string, Zxid>();
    /** The same for disks that were not lost since. */
    const durableSinceWipe = new Map<string, Zxid>();
    const keyOf = (server: string, epoch: number) => `${server} ${epoch}`;
    /** The epoch in which each server serves. */
    const servingEpochs = new Map<string, number>();
    const leading = new Set<string>();
    const names = new Map(Array.from(ensemble, ([name, { sid }]) => [sid, name]));
    /** The leader that each server follows or was elected to follow. */
    const leaders = new Map<string, string>();
    const withoutLog = new ServersWithoutLog();
    for (const event of peerEvents) {
      const { server } = event;
      withoutLog.onEvent(event);
      if (event.kind === 'serves') {
        servingEpochs.set(server, event.epoch);
        if (event.role === 'leader') leading.add(server);
      }
      if (event.kind === 'roleEnded' || event.kind === 'processGone') {
        servingEpochs.delete(server);
        leading.delete(server);
      }
      if (event.kind === 'elected') leaders.set(server, names.get(event.leader) ?? '');
      if (event.kind === 'replaced' && event.by === 'snap') {
        const had = durableSinceWipe.get(keyOf(server, servingEpochs.get(leaders.get(server) ?? '') ?? -1)) ?? 0;
        if (had > event.zxid && votesSince(server, event.zxid)) {
          violations.push(
            `${server} had ${formatZxid(had)} on disk in its leader's epoch, but replaced it with a snapshot as of ${formatZxid(event.zxid)}`,
          );
        }
      }
      if (event.kind === 'logged' && !withoutLog.has(server)) {
        durable.set(keyOf(server, epochOf(event.zxid)), event.zxid);
        durableSinceWipe.set(keyOf(server, epochOf(event.zxid)), event.zxid);
      }
      // A lost disk loses what the server acknowledged. It starts empty, and quorums that counted
      // it hold without it.
      if (event.kind === 'wiped') for (const key of durableSinceWipe.keys()) if (key.startsWith(`${server} `)) durableSinceWipe.delete(key);
      // What an epoch began with was on a quorum before.
      if (event.kind !== 'applied' || servingEpochs.get(server) !== epochOf(event.zxid)) continue;
      const has = (name: string) => (durable.get(keyOf(name, epochOf(event.zxid))) ?? 0) >= event.zxid;
      for (const members of configsAt(configs, event.zxid)) {
        const voters = [...members].filter(([, { isVoter }]) => isVoter).map(([name]) => name);
        const durableVoters = voters.filter(has);
        if (isQuorum(members, durableVoters)) {
          // Learners may be late to learn what it has committed.
          if (!leading.has(server) || isQuorum(withoutFavourite(members), durableVoters)) continue;
          if (members.get(server)?.mayGoAlone !== true) {
            violations.push(`${server} applied ${formatZxid(event.zxid)}, which only the other voter has on disk`);
          } else if (!wasAllowedAlone(recording, server, event.atMs)) {
            violations.push(`${server} applied ${formatZxid(event.zxid)} alone at ${event.atMs}, which the oracle had forbidden before`);
          }
          continue;
        }
        violations.push(
          `${server} applied ${formatZxid(event.zxid)}, which only ${durableVoters.length} of ${voters.length} voters have on disk: ${durableVoters.join(', ')}`,
        );
      }
    }
    return violations;
  },
};

/** Whether the oracle allowed it so recently that the server may not know better. A paused server knows nothing. */
function wasAllowedAlone({ oracleAnswers, pauses, jobs }: Recording, server: string, atMs: Millis): boolean {
  let sinceMs = atMs - answerMs;
  for (const each of [...pauses, ...jobs].toSorted((a, b) => b.toMs - a.toMs)) {
    if (each.server === server && each.fromMs < atMs && each.toMs > sinceMs) sinceMs -= each.toMs - each.fromMs;
  }
  return oracleAnswers.some(({ atMs: fromMs, isYes }, at) => isYes && fromMs < atMs && (oracleAnswers[at + 1]?.atMs ?? Infinity) > sinceMs);
}
