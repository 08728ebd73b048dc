/** An attack: its servers, the content of their tree, and the action against them. */
import type { Operation } from '@tskeeper/simulator';
import { openToAll } from '../../process/honest-client.ts';
import type { Cluster, ClusterOptions, Member } from '../cluster.ts';
import type { Figure } from '../report.ts';
import { Stranger } from './stranger.ts';

export interface Site {
  readonly cluster: Cluster;
  /** The leader, or the only server. */
  readonly leader: Member;
  /** The server of the ordinary clients and of the attackers: a follower if there is one. */
  readonly target: Member;
}

export interface Attack {
  readonly name: string;
  /** What the attack does, in a line for the table of README.md. */
  readonly servers: 1 | 3;
  /** Quick to prepare and to run: part of the bounded form. */
  readonly isCheap?: boolean;
  /** Its limits in addition to those of every attack. */
  readonly limit?: string;
  readonly options?: Pick<ClusterOptions, 'config' | 'openFilesMax'>;
  /** Runs before memory is measured and the honest clients start. */
  readonly prepare?: (site: Site) => Promise<void>;
  /** Runs until the signal is aborted; returns further figures. */
  readonly run: (site: Site, signal: AbortSignal) => Promise<readonly Figure[] | void>;
}

const atOnce = 4;

/** An attack without its preparation would prove nothing. */
async function untilDone(stranger: Stranger, what: string): Promise<void> {
  if (!(await stranger.answered())) throw new Error(`${what} was not answered`);
  if (stranger.lastError !== 0) throw new Error(`${what} was answered ${stranger.lastError}`);
}

/** Creates `count` children below `parent`, in multis. */
export async function createChildren(port: number, parent: string, count: number, data = '', perMulti = 1000): Promise<void> {
  const stranger = await Stranger.join(port);
  await stranger.send({ kind: 'create', path: parent, data: '', acl: openToAll, flags: 0 });
  for (let from = 0; from < count; from += perMulti) {
    const steps = Array.from({ length: Math.min(perMulti, count - from) }, (_, index) => ({
      kind: 'create' as const,
      path: `${parent}/${(from + index).toString(36)}`,
      data,
      acl: openToAll,
      flags: 0,
    }));
    await stranger.send({ kind: 'multi', steps });
    if ((from / perMulti) % atOnce === 0 && !(await stranger.answered()))
      throw new Error(`creating children of ${parent} was not answered`);
  }
  if (!(await stranger.answered())) throw new Error(`creating children of ${parent} was not answered`);
  stranger.destroy();
}

export async function createOne(port: number, operation: Operation): Promise<void> {
  const stranger = await Stranger.join(port);
  await stranger.send(operation);
  await untilDone(stranger, operation.kind);
  stranger.destroy();
}
