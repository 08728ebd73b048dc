import { formatZxid, type Zxid } from '@tskeeper/protocol';
import { lastTxnOf, leaderEpochsOf } from '../record/committed-history.ts';
import { ServersWithoutLog } from '../record/servers-without-log.ts';
import type { Checker } from './checker.ts';

export const epochFiles: Checker = {
  property: 'P31',
  promise:
    'Whenever a server ends, acceptedEpoch on its disk is not lower than currentEpoch and neither is lower than before. The history with which the current epoch begins is durable by then, and was when the server began to save that epoch.',
  check(recording) {
    const violations: string[] = [];
    const leaderEpochs = leaderEpochsOf(recording);
    const initialZxids = new Map(leaderEpochs.map(({ epoch, historyEnd }) => [epoch, lastTxnOf(leaderEpochs, historyEnd)]));
    /** The epochs that survive a power loss. */
    const durableEpochs = new Map<string, Epochs>();
    /** The epochs that the server's last process left on disk. */
    const writtenEpochs = new Map<string, Epochs>();
    const durable = new Map<string, Zxid>();
    /**
     * The last epoch in which each server served; by serving it states that it belongs to that
     * epoch.
     */
    const served = new Map<string, number>();
    const lacksInitialHistory = (server: string, current: number, reached: Zxid | undefined): boolean => {
      // The history may be durable before the server reports it, or a start may have found it on
      // disk.
      durable.set(server, Math.max(durable.get(server) ?? 0, reached ?? 0));
      const initialZxid = initialZxids.get(current);
      return initialZxid !== undefined && initialZxid > recording.seedState.zxid && durable.get(server)! < initialZxid;
    };
    const withoutLog = new ServersWithoutLog();
    for (const event of recording.peerEvents) {
      const { server } = event;
      // Of an observer without a log only its disk says what is durable there.
      withoutLog.onEvent(event);
      const keepsNoLog = withoutLog.has(server);
      if (event.kind === 'savesEpoch' && lacksInitialHistory(server, event.current, event.reached))
        violations.push(
          `${server} saves currentEpoch ${event.current} at ${event.atMs}, before the history with which that epoch begins is durable`,
        );
      if ((event.kind === 'logged' && !keepsNoLog) || event.kind === 'started')
        durable.set(server, Math.max(durable.get(server) ?? 0, event.zxid));
      if (event.kind === 'replaced' && !keepsNoLog) durable.set(server, event.zxid);
      if (event.kind === 'serves' && !keepsNoLog) {
        served.set(server, event.epoch);
        // The history with which a server begins to serve must be on its disk.
        durable.set(server, Math.max(durable.get(server) ?? 0, event.historyEnd));
      }
      if (event.kind === 'wiped') {
        durableEpochs.delete(server);
        writtenEpochs.delete(server);
        durable.delete(server);
        served.delete(server);
      }
      // The start is complete, so everything it found on disk is durable.
      if (event.kind === 'looking') durableEpochs.set(server, writtenEpochs.get(server) ?? none);
      if (event.kind !== 'epochFiles') continue;
      const { accepted, current } = epochsOf(event);
      const last = durableEpochs.get(server);
      if (accepted < current) violations.push(`${server} has acceptedEpoch ${accepted}, lower than its currentEpoch ${current}`);
      if (last !== undefined && (accepted < last.accepted || current < last.current)) {
        violations.push(
          `${server} went back from acceptedEpoch ${last.accepted} and currentEpoch ${last.current} to ${accepted} and ${current}`,
        );
      }
      if (current < (served.get(server) ?? 0))
        violations.push(`${server} served in epoch ${served.get(server)}, but currentEpoch on its disk is ${current}`);
      if (lacksInitialHistory(server, current, event.reached))
        violations.push(
          `${server} has currentEpoch ${current} on disk without ${formatZxid(initialZxids.get(current)!)}, with which that epoch begins`,
        );
      writtenEpochs.set(server, { accepted, current });
      durableEpochs.set(server, epochsOf(event.durable));
    }
    return violations;
  },
};

interface Epochs {
  readonly accepted: number;
  readonly current: number;
}

const none: Epochs = { accepted: 0, current: 0 };

function epochsOf({ accepted = 0, current = 0 }: { readonly [Name in keyof Epochs]: number | undefined }): Epochs {
  return { accepted, current };
}
