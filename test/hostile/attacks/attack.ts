/** What an attack is: servers, what has to be in their tree, and what is done to them until it is over. */
import type { Operation } from '@tskeeper/simulator';
import { openToAll } from '../../process/honest-client.ts';
import type { Cluster, ClusterOptions, Member } from '../cluster.ts';
import type { Figure } from '../report.ts';
import { Stranger } from './stranger.ts';

export interface Site {
  readonly cluster: Cluster;
  /** The leader, or the one server. */
  readonly leader: Member;
  /** Where ordinary clients and the attackers are: a follower where there is one. */
  readonly target: Member;
}

export interface Attack {
  readonly name: string;
  /** What is done, in a line for the table of README.md. */
  readonly servers: 1 | 3;
  /** Quick to prepare and to run: part of the bounded form. */
  readonly isCheap?: boolean;
  /** Its limits besides those of every attack. */
  readonly limit?: string;
  readonly options?: Pick<ClusterOptions, 'config' | 'openFilesMax'>;
  /** Before memory is looked at and the honest clients begin. */
  readonly prepare?: (site: Site) => Promise<void>;
  /** Goes on until the signal; returns what else is to be judged. */
  readonly run: (site: Site, signal: AbortSignal) => Promise<readonly Figure[] | void>;
}

const atOnce = 4;

/** An attack on what could not be prepared would be none. */
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
