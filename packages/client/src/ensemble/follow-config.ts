/**
 * Makes a client use the servers that the ensemble's configuration lists instead of those of its
 * connect string.
 */
import type { Client } from '../client.ts';
import { formatServer } from '../connect-string.ts';
import { KeeperError } from '../keeper-error.ts';
import type { WatchedEvent } from '../watched-event.ts';
import { clientAddressesOf } from './client-addresses.ts';

/**
 * Reads `/zookeeper/config`, now and whenever it changes, and passes its addresses to
 * `updateServerList`. Resolves after the first read, even if it failed, and rejects if the session
 * ended meanwhile: a program that receives the client then would never learn of it. A configuration that cannot
 * be read, or lacks the address of a server, does not change the list; the client reads it again
 * after its next change, or, if the read failed, after the next reconnect.
 */
export async function followConfig(client: Client): Promise<void> {
  /**
   * The last list that was applied: a configuration that changes only weights or roles moves no
   * client.
   */
  let lastApplied = '';
  let isWatched = false;

  const changed = (event: WatchedEvent): void => {
    if (event.type === 'None') return;
    isWatched = false;
    void read();
  };
  /** Returns why the configuration could not be read. */
  const read = async (): Promise<KeeperError | undefined> => {
    if (isWatched) return undefined;
    isWatched = true;
    let data: Uint8Array | null;
    try {
      ({ data } = await client.getConfig({ watch: changed }));
    } catch (error) {
      if (!KeeperError.is(error)) throw error;
      isWatched = false;
      return error;
    }
    const servers = clientAddressesOf(Buffer.from(data ?? []).toString('utf8'));
    if (servers === undefined) return undefined;
    const list = servers.map(formatServer).join();
    if (list === lastApplied) return undefined;
    lastApplied = list;
    client.updateServerList(servers);
    return undefined;
  };

  client.on('state', ({ state }) => {
    if (state === 'SyncConnected' || state === 'ConnectedReadOnly') void read();
  });
  const failure = await read();
  if (failure !== undefined && client.endReason !== undefined) throw failure;
}
