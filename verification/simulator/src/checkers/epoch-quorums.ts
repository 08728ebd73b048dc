import { epochOf, formatZxid, type Zxid } from '@tskeeper/protocol';
import { leaderEpochsOf, lastTxnOf } from '../record/committed-history.ts';
import { committedConfigs } from '../record/config-history.ts';
import { configVersionOf, type Members } from '../record/config-text.ts';
import { isQuorum } from '../record/quorum-rule.ts';
import { ServersWithoutLog } from '../record/servers-without-log.ts';
import type { Checker } from './checker.ts';

export const epochQuorums: Checker = {
  property: 'P31, P32',
  promise:
    'A leader serves only when a quorum has saved its epoch, and has its history on disk: a quorum of the configuration at the end of that history, and while that is not known to be committed, of the one before as well.',
  check(recording) {
    const violations: string[] = [];
    const configs = committedConfigs(recording);
    const leaderEpochs = leaderEpochsOf(recording);
    const [saved, durable] = [new Map<string, number>(), new Map<string, Zxid>()];
    /** What was on disks that are lost: a leader that is slow may count its acknowledgement afterwards. */
    const lost = new Map<string, { readonly epoch: number; readonly zxid: Zxid }>();
    /** Reconfigurations that a server has carried out, or that were in the history of a leader. */
    const committed = new Set<Zxid>();
    const raise = (known: Map<string, number>, server: string, to: number) => known.set(server, Math.max(known.get(server) ?? 0, to));
    const withoutLog = new ServersWithoutLog();
    for (const event of recording.peerEvents) {
      const { server } = event;
      withoutLog.onEvent(event);
      const isOnDisk = !withoutLog.has(server);
      if (event.kind === 'savesEpoch') raise(saved, server, event.current);
      if ((event.kind === 'logged' && isOnDisk) || event.kind === 'started') raise(durable, server, event.zxid);
      if (event.kind === 'replaced' && isOnDisk) durable.set(server, event.zxid);
      if (event.kind === 'applied') committed.add(event.zxid);
      // Its leader may have resigned before any server applied it; `configurations` checks the claim.
      if (event.kind === 'config') committed.add(configVersionOf(event.text));
      if (event.kind === 'wiped') {
        lost.set(server, { epoch: saved.get(server) ?? 0, zxid: durable.get(server) ?? 0 });
        for (const known of [saved, durable]) known.delete(server);
      }
      if (event.kind !== 'serves' || event.role !== 'leader') continue;
      // A leader of an earlier epoch may be slow to serve: others are in a later one by then.
      if (epochOf(Math.max(0, ...committed)) > event.epoch) continue;
      const historyEnd = lastTxnOf(leaderEpochs, event.historyEnd);
      const last = configs.findLastIndex(({ zxid }) => zxid <= historyEnd);
      const inForce: Members[] = [configs[last]!.members];
      if (last > 0 && !committed.has(configs[last]!.zxid)) inForce.push(configs[last - 1]!.members);
      committed.add(configs[last]!.zxid);
      const names = [...saved].flatMap(([name, epoch]) => (epoch >= event.epoch ? [name] : []));
      const having = names.filter((name) => historyEnd <= recording.seedState.zxid || (durable.get(name) ?? 0) >= historyEnd);
      for (const [name, { epoch, zxid }] of lost) if (epoch === event.epoch && zxid >= historyEnd) having.push(name);
      if (inForce.every((members) => isQuorum(members, having))) continue;
      violations.push(
        `${server} leads epoch ${event.epoch}, which only ${names.join(', ')} have saved, of them ${having.join(', ') || 'none'} with ${formatZxid(historyEnd)}`,
      );
    }
    return violations;
  },
};
