import { formatZxid, type Zxid } from '@tskeeper/protocol';
import { lastTxnOf, leaderEpochsOf } from '../record/committed-history.ts';
import { ServersWithoutLog } from '../record/servers-without-log.ts';
import type { Checker } from './checker.ts';

export const peerClaims: Checker = {
  property: 'P31',
  promise:
    'What a server states of itself in a vote, FOLLOWERINFO, OBSERVERINFO or ACKEPOCH is durable by then, and a server accepts an epoch once.',
  check(recording) {
    const violations: string[] = [];
    const leaderEpochs = leaderEpochsOf(recording);
    /**
     * The last durable txn, and the last that ever was durable: a server may repeat a vote from
     * before its log was truncated over a new connection.
     */
    const durable = new Map<string, Zxid>();
    const everDurable = new Map<string, Zxid>();
    const accepted = new Map<string, Set<number>>();
    /**
     * The epochs to whose leader a server has sent its last zxid, and those whose leader sent a
     * TRUNC that it could not apply.
     */
    const ackedEpochs = new Map<string, number>();
    const truncationRefused = new Map<string, number>();
    const noteDurable = (server: string, zxid: Zxid) => {
      durable.set(server, zxid);
      everDurable.set(server, Math.max(everDurable.get(server) ?? 0, zxid));
    };
    const withoutLog = new ServersWithoutLog();
    for (const event of recording.peerEvents) {
      const { server } = event;
      withoutLog.onEvent(event);
      if (event.kind === 'logged' || event.kind === 'started' || event.kind === 'replaced') noteDurable(server, event.zxid);
      if (event.kind === 'wiped') for (const known of [durable, everDurable, accepted]) known.delete(server);
      if (event.kind === 'roleEnded' && event.reason === 'log not truncatable')
        truncationRefused.set(server, ackedEpochs.get(server) ?? -1);
      if (event.kind === 'looking' || event.kind === 'processGone') truncationRefused.delete(server);
      if (event.kind !== 'claims') continue;
      const violation = (what: string) => violations.push(`at ${event.atMs} ${server} states in ${packetNames[event.packet]} ${what}`);
      const onDisk = { accepted: event.durable.accepted ?? 0, current: event.durable.current ?? 0 };
      if (event.packet === 'info') {
        if (event.accepted !== onDisk.accepted) violation(`acceptedEpoch ${event.accepted}, but its disk has ${onDisk.accepted}`);
        continue;
      }
      const { zxid, current } = event;
      // An observer without a log has its history in memory, and states that.
      if (current > onDisk.current && !withoutLog.has(server)) violation(`currentEpoch ${current}, but its disk has ${onDisk.current}`);
      const last = Math.max((event.packet === 'vote' ? everDurable : durable).get(server) ?? 0, recording.seedState.zxid);
      if (lastTxnOf(leaderEpochs, zxid) > last)
        violation(`last zxid ${formatZxid(zxid)}, but its durable log ends with ${formatZxid(last)}`);
      if (event.packet !== 'ackEpoch') continue;
      if (zxid > 0 && truncationRefused.get(server) === onDisk.accepted)
        violation(`last zxid ${formatZxid(zxid)}, but must ask for a snapshot, since it cannot truncate its log`);
      ackedEpochs.set(server, onDisk.accepted);
      if (current === -1) continue;
      const known = accepted.get(server) ?? new Set();
      if (known.has(onDisk.accepted)) violation(`that it accepts epoch ${onDisk.accepted}, which it accepted before`);
      accepted.set(server, known.add(onDisk.accepted));
    }
    return violations;
  },
};

const packetNames = { vote: 'a vote', info: 'its introduction', ackEpoch: 'ACKEPOCH' } as const;
