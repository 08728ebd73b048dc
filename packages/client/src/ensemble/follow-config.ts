/** A client that goes by the servers its ensemble says it has, rather than by those it was told when it connected. */
import type { Client } from '../client.ts';
import { formatServer } from '../connect-string.ts';
import { KeeperError } from '../keeper-error.ts';
import type { WatchedEvent } from '../watched-event.ts';
import { clientAddressesOf } from './client-addresses.ts';

/**
 * Reads `/zookeeper/config`, now and whenever it changes, and gives its addresses to `updateServerList`. Resolves when it has been read for
 * the first time, or could not be. What cannot be read, or does not name an address for each server, changes nothing: the list stays, and
 * the configuration is looked at again after its next change, and where it could not be read, after the next reconnect.
 */
export async function followConfig(client: Client): Promise<void> {
  /** The last one that was followed: one that only gives weights or roles anew moves nobody. */
  let followed = '';
  let isWatched = false;

  const changed = (event: WatchedEvent): void => {
    if (event.type === 'None') return;
    isWatched = false;
    void read();
  };
  const read = async (): Promise<void> => {
    if (isWatched) return;
    isWatched = true;
    let data: Uint8Array | null;
    try {
      ({ data } = await client.getConfig({ watch: changed }));
    } catch (error) {
      if (!KeeperError.is(error)) throw error;
      isWatched = false;
      return;
    }
    const servers = clientAddressesOf(Buffer.from(data ?? []).toString('utf8'));
    if (servers === undefined) return;
    const list = servers.map(formatServer).join();
    if (list === followed) return;
    followed = list;
    client.updateServerList(servers);
  };

  client.on('state', ({ state }) => {
    if (state === 'SyncConnected' || state === 'ConnectedReadOnly') void read();
  });
  await read();
}
