/** The data of `lease_holder`, as kazoo writes them: JSON, with an end in whole seconds of UTC. */
import { type ClientView, KeeperError } from '@tskeeper/client';
import { RecipeError } from '../recipe-error.ts';
import { retryForever } from '../waiting/own-znode.ts';

export interface LeaseRecord {
  readonly holder: string;
  /** By the leader's clock, in milliseconds of UTC. */
  readonly endMs: number;
  /** Of the znode. */
  readonly version: number;
}

const endPattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$/;

/** Rounds the end up to a whole second, so that no other process takes the lease too early. */
export function formatRecord({ holder, endMs }: Pick<LeaseRecord, 'holder' | 'endMs'>): string {
  const end = new Date(Math.ceil(endMs / 1000) * 1000).toISOString().slice(0, 19);
  return JSON.stringify({ version: 1, holder, end });
}

/**
 * undefined if the znode does not exist. Rejects with a RecipeError, Mismatch, when its data are
 * not a record.
 */
export async function readRecord(zk: ClientView, path: string, signal: AbortSignal): Promise<LeaseRecord | undefined> {
  try {
    const { data, stat } = await zk.getData(path, { ...retryForever, signal });
    const text = new TextDecoder().decode(data ?? undefined);
    return { ...parseRecord(path, text), version: stat.version };
  } catch (error) {
    if (KeeperError.is(error, 'NoNode')) return undefined;
    throw error;
  }
}

function parseRecord(path: string, text: string): Pick<LeaseRecord, 'holder' | 'endMs'> {
  let record: { readonly version?: unknown; readonly holder?: unknown; readonly end?: unknown } | null;
  try {
    record = JSON.parse(text) as typeof record;
  } catch {
    record = null;
  }
  if (record?.version !== 1 || typeof record.holder !== 'string' || typeof record.end !== 'string' || !endPattern.test(record.end))
    throw new RecipeError('Mismatch', `${path} is not a lease of version 1; delete it to take the lease`);
  return { holder: record.holder, endMs: Date.parse(`${record.end}Z`) };
}
