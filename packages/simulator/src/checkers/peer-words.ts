import { formatZxid, type Zxid } from '@tskeeper/protocol';
import { lastTxnOf, reignsOf } from '../record/committed-history.ts';
import type { Checker } from './checker.ts';

export const peerWords: Checker = {
  property: 'P31',
  promise:
    'What a server says of itself in a vote, FOLLOWERINFO, OBSERVERINFO or ACKEPOCH is on its disk by then, and would be after a power loss; and it accepts an epoch once.',
  check(recording) {
    const faults: string[] = [];
    const reigns = reignsOf(recording);
    /** The last txn that is durable, and the last that ever was: a vote that was said before the log was cut may be said again over a new connection. */
    const durable = new Map<string, Zxid>();
    const everDurable = new Map<string, Zxid>();
    const accepted = new Map<string, Set<number>>();
    /** Epochs to whose leader a server has said how far it is, and whose leader has told it to cut its log where it cannot. */
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
      if (event.kind === 'ended' && /cannot be cut that far/.test(event.reason)) cannotCut.set(server, told.get(server) ?? -1);
      if (event.kind === 'looking' || event.kind === 'gone') cannotCut.delete(server);
      if (event.kind !== 'says') continue;
      const says = (what: string) => faults.push(`${server} says at ${event.atMs} in ${names[event.word]} ${what}`);
      const onDisk = { accepted: event.durable.accepted ?? 0, current: event.durable.current ?? 0 };
      if (event.word === 'info') {
        if (event.accepted !== onDisk.accepted) says(`that it has accepted epoch ${event.accepted}, and its disk says ${onDisk.accepted}`);
        continue;
      }
      const { zxid, current } = event;
      if (current > onDisk.current) says(`that it stands in epoch ${current}, and its disk says ${onDisk.current}`);
      const last = Math.max((event.word === 'vote' ? everDurable : durable).get(server) ?? 0, recording.beginning.zxid);
      if (lastTxnOf(reigns, zxid) > last) says(`that it has ${formatZxid(zxid)}, and what is durable ends with ${formatZxid(last)}`);
      if (event.word !== 'ackEpoch') continue;
      if (zxid > 0 && cannotCut.get(server) === onDisk.accepted)
        says(`that it has ${formatZxid(zxid)}, and it has to be sent a snapshot, since its log cannot be cut`);
      told.set(server, onDisk.accepted);
      if (current === -1) continue;
      const known = accepted.get(server) ?? new Set();
      if (known.has(onDisk.accepted)) says(`that it accepts epoch ${onDisk.accepted}, which it has accepted before`);
      accepted.set(server, known.add(onDisk.accepted));
    }
    return faults;
  },
};

const names = { vote: 'a vote', info: 'its introduction', ackEpoch: 'ACKEPOCH' } as const;
