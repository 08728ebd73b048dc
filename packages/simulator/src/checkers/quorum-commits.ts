import { epochOf, formatZxid, type Zxid } from '@tskeeper/protocol';
import { isQuorum } from '../record/quorum-rule.ts';
import type { Checker } from './checker.ts';

export const quorumCommits: Checker = {
  property: 'P32, P36',
  promise:
    'A txn is applied when a quorum of the voters has it on disk: a majority, or what groups, weights and an oracle make one. Observers do not count, nor does anyone whose disk is behind. What a voter has of its ' +
    "leader's epoch stays there.",
  check({ peers, ensemble }) {
    const faults: string[] = [];
    const voters = [...ensemble].filter(([, { isVoter }]) => isVoter).map(([name]) => name);
    /** By server and epoch, up to where it has had the log on disk. A learner may hear late of what was committed in an epoch that is over. */
    const durable = new Map<string, Zxid>();
    /** The same, of disks that have not been lost since. */
    const kept = new Map<string, Zxid>();
    const keyOf = (server: string, epoch: number) => `${server} ${epoch}`;
    /** Where each server serves. */
    const epochs = new Map<string, number>();
    const names = new Map(Array.from(ensemble, ([name, { sid }]) => [sid, name]));
    /** Whom each server follows, or wants to. */
    const leaders = new Map<string, string>();
    for (const event of peers) {
      const { server } = event;
      if (event.kind === 'serves') epochs.set(server, event.epoch);
      if (event.kind === 'ended' || event.kind === 'gone') epochs.delete(server);
      if (event.kind === 'elected') leaders.set(server, names.get(event.leader) ?? '');
      if (event.kind === 'replaced' && event.by === 'snap' && ensemble.get(server)?.isVoter === true) {
        const had = kept.get(keyOf(server, epochs.get(leaders.get(server) ?? '') ?? -1)) ?? 0;
        if (had > event.zxid) {
          faults.push(
            `${server} has had ${formatZxid(had)} on disk in its leader's epoch, and a snapshot as of ${formatZxid(event.zxid)} takes its place`,
          );
        }
      }
      if (event.kind === 'logged') {
        durable.set(keyOf(server, epochOf(event.zxid)), event.zxid);
        kept.set(keyOf(server, epochOf(event.zxid)), event.zxid);
      }
      // With its disk goes what it has acknowledged: it begins anew, and whoever had a quorum with it has it without it.
      if (event.kind === 'wiped') for (const key of kept.keys()) if (key.startsWith(`${server} `)) kept.delete(key);
      // What an epoch began with was a quorum's before.
      if (event.kind !== 'applied' || epochs.get(server) !== epochOf(event.zxid)) continue;
      const has = (name: string) => (durable.get(keyOf(name, epochOf(event.zxid))) ?? 0) >= event.zxid;
      const havers = voters.filter(has);
      if (isQuorum(ensemble, havers)) continue;
      faults.push(
        `${server} has applied ${formatZxid(event.zxid)}, which ${havers.length} of ${voters.length} voters have: ${havers.join(', ')}`,
      );
    }
    return faults;
  },
};
