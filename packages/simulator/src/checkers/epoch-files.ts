import { formatZxid, type Zxid } from '@tskeeper/protocol';
import { lastTxnOf, reignsOf } from '../record/committed-history.ts';
import type { Checker } from './checker.ts';

export const epochFiles: Checker = {
  property: 'P31',
  promise:
    'Whenever a server ends, its disk says an acceptedEpoch that is not behind currentEpoch, neither is behind what it was, and the history with which the current epoch begins is there, as it was when the server began to save that epoch.',
  check(recording) {
    const faults: string[] = [];
    const reigns = reignsOf(recording);
    const beginnings = new Map(reigns.map(({ epoch, historyEnd }) => [epoch, lastTxnOf(reigns, historyEnd)]));
    /** What cannot go any more, with the power either. */
    const lasting = new Map<string, Epochs>();
    /** What its process has left. */
    const left = new Map<string, Epochs>();
    const durable = new Map<string, Zxid>();
    /** Epochs in which a server has served: it has said that it is part of them. */
    const served = new Map<string, number>();
    const lacks = (server: string, current: number, reached: Zxid | undefined): boolean => {
      // It may be there before the server has come to say so, or have been found there at a start.
      durable.set(server, Math.max(durable.get(server) ?? 0, reached ?? 0));
      const beginning = beginnings.get(current);
      return beginning !== undefined && beginning > recording.beginning.zxid && durable.get(server)! < beginning;
    };
    for (const event of recording.peers) {
      const { server } = event;
      if (event.kind === 'savesEpoch' && lacks(server, event.current, event.reached))
        faults.push(`${server} saves currentEpoch ${event.current}, and what that begins with is not durable at ${event.atMs}`);
      if (event.kind === 'logged' || event.kind === 'started') durable.set(server, Math.max(durable.get(server) ?? 0, event.zxid));
      if (event.kind === 'replaced') durable.set(server, event.zxid);
      if (event.kind === 'serves') {
        served.set(server, event.epoch);
        // What it serves with is on its disk, or else it may not say so.
        durable.set(server, Math.max(durable.get(server) ?? 0, event.historyEnd));
      }
      if (event.kind === 'wiped') {
        lasting.delete(server);
        left.delete(server);
        durable.delete(server);
        served.delete(server);
      }
      // Its start is done, so what it has found there is durable, if it was not before.
      if (event.kind === 'looking') lasting.set(server, left.get(server) ?? none);
      if (event.kind !== 'epochFiles') continue;
      const { accepted, current } = epochsOf(event);
      const last = lasting.get(server);
      if (accepted < current) faults.push(`${server} has accepted epoch ${accepted}, and currentEpoch is ${current}`);
      if (last !== undefined && (accepted < last.accepted || current < last.current)) {
        faults.push(`${server} has gone back from epochs ${last.accepted} and ${last.current} to ${accepted} and ${current}`);
      }
      if (current < (served.get(server) ?? 0))
        faults.push(`${server} has served in epoch ${served.get(server)}, and its disk says ${current}`);
      if (lacks(server, current, event.reached))
        faults.push(
          `${server} has currentEpoch ${current} on disk, and not ${formatZxid(beginnings.get(current)!)}, with which that begins`,
        );
      left.set(server, { accepted, current });
      lasting.set(server, epochsOf(event.durable));
    }
    return faults;
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
