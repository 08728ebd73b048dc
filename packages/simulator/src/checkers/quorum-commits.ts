import { epochOf, formatZxid, type Zxid } from '@tskeeper/protocol';
import type { Checker } from './checker.ts';

export const quorumCommits: Checker = {
  property: 'P32, P36',
  promise: 'A txn is applied when a majority of the voters has it on disk. Observers do not count, nor does anyone whose disk is behind.',
  check({ peers, ensemble }) {
    const faults: string[] = [];
    const voters = [...ensemble].filter(([, { isVoter }]) => isVoter).map(([name]) => name);
    const quorum = (voters.length >> 1) + 1;
    const durable = new Map<string, Zxid>();
    /** Where each server serves. */
    const epochs = new Map<string, number>();
    for (const event of peers) {
      const { server } = event;
      if (event.kind === 'serves') epochs.set(server, event.epoch);
      if (event.kind === 'ended' || event.kind === 'gone') epochs.delete(server);
      if (event.kind === 'wiped') durable.delete(server);
      if (event.kind === 'logged' || event.kind === 'replaced') durable.set(server, event.zxid);
      // What an epoch began with was a quorum's before.
      if (event.kind !== 'applied' || epochs.get(server) !== epochOf(event.zxid)) continue;
      // Each txn of an epoch is logged anew in that epoch, so whoever has a later one of it has this one.
      const has = (name: string) => epochOf(durable.get(name) ?? 0) === epochOf(event.zxid) && durable.get(name)! >= event.zxid;
      const count = voters.filter(has).length;
      if (count < quorum) faults.push(`${server} has applied ${formatZxid(event.zxid)}, which ${count} of ${voters.length} voters have`);
    }
    return faults;
  },
};
