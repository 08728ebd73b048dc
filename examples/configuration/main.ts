/**
 * Configuration: a znode holds it, and every program that needs it watches the znode.
 *
 *   main.js <connect string> <path> set <value>
 *   main.js <connect string> <path> follow        prints the value, and each later one, until it is deleted
 */
import { type Client, connect, KeeperError } from '@tskeeper/client';

/**
 * Calls `take` with the data of a znode now and after each change; resolves when the znode is deleted.
 * Fast changes may be merged into one call.
 */
export async function follow(zk: Client, path: string, take: (value: string, version: number) => void): Promise<void> {
  let seen = -1n;
  for (;;) {
    let tell!: () => void;
    const changed = new Promise<void>((resolve) => (tell = resolve));
    try {
      const { data, stat } = await zk.getData(path, { watch: tell });
      // The watch also fires when the state of the connection changes; then there may be no new data.
      if (stat.mzxid !== seen) take(Buffer.from(data ?? []).toString(), stat.version);
      seen = stat.mzxid;
    } catch (error) {
      if (KeeperError.is(error, 'NoNode')) return;
      if (KeeperError.is(error, 'ConnectionLoss')) continue;
      throw error;
    }
    await changed;
  }
}

/** Creates the znode if it does not exist. */
export async function set(zk: Client, path: string, value: string): Promise<void> {
  try {
    await zk.setData(path, value);
  } catch (error) {
    if (!KeeperError.is(error, 'NoNode')) throw error;
    await zk.create(path, value);
  }
}

const [hosts, path, command, value] = process.argv.slice(2);
if (hosts === undefined || path === undefined || (command !== 'follow' && (command !== 'set' || value === undefined))) {
  console.error('usage: main.js <connect string> <path> set <value> | follow');
  process.exit(2);
}
const zk = await connect(hosts);
if (command === 'set') await set(zk, path, value!);
else await follow(zk, path, (text, version) => console.log(`version ${version}: ${text}`));
await zk.close();
