import { epochOf, formatZxid, type Zxid } from '@tskeeper/protocol';
import type { Checker } from './checker.ts';

export const quorumCommits: Checker = {
  property: 'P32, P36',
  promise: 'A txn is committed when a majority of the voters has it on disk. Observers do not count, nor does anyone whose disk is behind.',
  check({ peers, ensemble }) {
    const faults: string[] = [];
    const voters = [...ensemble].filter(([, { isVoter }]) => isVoter).map(([name]) => name);
    const quorum = (voters.length >> 1) + 1;
    const durable = new Map<string, Zxid>();
    const leading = new Set<string>();
    for (const event of peers) {
      const { server } = event;
      if (event.kind === 'serves' && event.role === 'leader') leading.add(server);
      if (event.kind === 'ended' || event.kind === 'gone') leading.delete(server);
      if (event.kind === 'wiped') durable.delete(server);
      if (event.kind === 'logged' || event.kind === 'replaced') durable.set(server, event.zxid);
      if (event.kind !== 'applied' || !leading.has(server)) continue;
      // Each txn of an epoch is logged anew in that epoch, so whoever has a later one of it has this one.
      const has = (name: string) => epochOf(durable.get(name) ?? 0) === epochOf(event.zxid) && durable.get(name)! >= event.zxid;
      const count = voters.filter(has).length;
      if (count < quorum) faults.push(`${server} has committed ${formatZxid(event.zxid)}, which ${count} of ${voters.length} voters have`);
    }
    return faults;
  },
};
