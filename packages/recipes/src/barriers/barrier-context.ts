/** The settings of a double barrier, for entering and leaving. */
import { type Acl, type ClientView, type Data, KeeperError } from '@tskeeper/client';
import { retryForever } from '../waiting/own-znode.ts';
import { readyName } from './ready.ts';

export interface BarrierContext {
  readonly zk: ClientView;
  readonly path: string;
  readonly size: number;
  readonly name: string;
  readonly data: Data;
  readonly acl: readonly Acl[] | undefined;
}

/** The names of all participants. */
export async function participantNames({ zk, path }: BarrierContext, signal: AbortSignal): Promise<string[]> {
  try {
    const { children } = await zk.getChildren(path, { ...retryForever, signal });
    return children.filter((name) => name !== readyName);
  } catch (error) {
    if (KeeperError.is(error, 'NoNode')) return [];
    throw error;
  }
}
