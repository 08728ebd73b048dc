import { formatZxid, type Zxid } from '@tskeeper/protocol';
import { lastTxnOf, reignsOf } from '../record/committed-history.ts';
import type { Checker } from './checker.ts';

export const peerWords: Checker = {
  property: 'P31',
  promise:
    'What a server states of itself in a vote, FOLLOWERINFO, OBSERVERINFO or ACKEPOCH is durable by then, and a server accepts an epoch once.',
  check(recording) {
    const faults: string[] = [];
    const reigns = reignsOf(recording);
    /**
     * The last durable txn, and the last that ever was durable: a server may repeat a vote from
     * before its log was truncated over a new connection.
     */
    const durable = new Map<string, Zxid>();
    const everDurable = new Map<string, Zxid>();
    const accepted = new Map<string, Set<number>>();
    /**
     * The epochs to whose leader a server has sent its last zxid, and those whose leader told it to
     * truncate its log, which it could not.
     */
    const told = new Map<string, number>();
    const cannotCut = new Map<string, number>();
    const reaches = (server: string, zxid: Zxid) => {
      durable.set(server, zxid);
      everDurable.set(server, Math.max(everDurable.get(server) ?? 0, zxid));
    };
    for (const event of recording.peers) {
      const { server } = event;
      if (event.kind === 'logged' || event.kind === 'started' || event.kind === 'replaced') reaches(server, event.zxid);
      if (event.kind === 'wiped') for (const known of [durable, everDurable, accepted]) known.delete(server);
      if (event.kind === 'ended' && /cannot be truncated that far/.test(event.reason)) cannotCut.set(server, told.get(server) ?? -1);
      if (event.kind === 'looking' || event.kind === 'gone') cannotCut.delete(server);
      if (event.kind !== 'says') continue;
      const says = (what: string) => faults.push(`at ${event.atMs} ${server} states in ${names[event.word]} ${what}`);
      const onDisk = { accepted: event.durable.accepted ?? 0, current: event.durable.current ?? 0 };
      if (event.word === 'info') {
        if (event.accepted !== onDisk.accepted) says(`acceptedEpoch ${event.accepted}, but its disk has ${onDisk.accepted}`);
        continue;
      }
      const { zxid, current } = event;
      if (current > onDisk.current) says(`currentEpoch ${current}, but its disk has ${onDisk.current}`);
      const last = Math.max((event.word === 'vote' ? everDurable : durable).get(server) ?? 0, recording.beginning.zxid);
      if (lastTxnOf(reigns, zxid) > last) says(`last zxid ${formatZxid(zxid)}, but its durable log ends with ${formatZxid(last)}`);
      if (event.word !== 'ackEpoch') continue;
      if (zxid > 0 && cannotCut.get(server) === onDisk.accepted)
        says(`last zxid ${formatZxid(zxid)}, but must ask for a snapshot, since it cannot truncate its log`);
      told.set(server, onDisk.accepted);
      if (current === -1) continue;
      const known = accepted.get(server) ?? new Set();
      if (known.has(onDisk.accepted)) says(`that it accepts epoch ${onDisk.accepted}, which it accepted before`);
      accepted.set(server, known.add(onDisk.accepted));
    }
    return faults;
  },
};

const names = { vote: 'a vote', info: 'its introduction', ackEpoch: 'ACKEPOCH' } as const;
