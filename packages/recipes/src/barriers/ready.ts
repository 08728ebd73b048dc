/**
 * `ready`, the znode that says that a round of a double barrier is on.
 *
 * Its data are the names of the participants that opened the round, as JSON. They show whether a
 * crash has left it behind: none of the participants it names exists, and names are never used
 * twice. Other clients create it without data.
 */
import { type ClientView, KeeperError } from '@tskeeper/client';
import { retryForever } from '../waiting/own-znode.ts';

export const readyName = 'ready';

/** `ready` as read. */
export interface ReadyZnode {
  readonly czxid: bigint;
  /** Names of znodes. undefined if another kind of client has created it, without names. */
  readonly openers: ReadonlySet<string> | undefined;
}

/** undefined if it does not exist. */
export async function readReady(zk: ClientView, path: string, signal: AbortSignal): Promise<ReadyZnode | undefined> {
  try {
    const { data, stat } = await zk.getData(path, { ...retryForever, signal });
    return { czxid: stat.czxid, openers: openersIn(data) };
  } catch (error) {
    if (KeeperError.is(error, 'NoNode')) return undefined;
    throw error;
  }
}

export function readyData(openers: readonly string[]): string {
  return JSON.stringify(openers);
}

function openersIn(data: Uint8Array | null): ReadonlySet<string> | undefined {
  let names: unknown;
  try {
    names = JSON.parse(new TextDecoder().decode(data ?? undefined));
  } catch {
    return undefined;
  }
  return Array.isArray(names) && names.length > 0 && names.every((name) => typeof name === 'string') ? new Set(names) : undefined;
}
