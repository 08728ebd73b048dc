/**
 * Drives `zookeeper` of npm, the addon over the C client, with its methods that return promises.
 */
import { createRequire } from 'node:module';
import { checkBytes, drive } from './node-driver.js';

const [connectString, folder] = process.argv.slice(2);
const ZooKeeper = createRequire(`${folder}/`)('zookeeper');

const anyVersion = -1;

await drive({
  style: 'promise',
  open: () =>
    new Promise((resolve, reject) => {
      const client = new ZooKeeper({ connect: connectString, timeout: 30_000, debug_level: ZooKeeper.constants.ZOO_LOG_LEVEL_ERROR });
      client.once('connect', () => resolve(client));
      client.once('error', reject);
      client.init({});
    }),
  getData: (client, next, bytes) => async () => {
    const [, data] = await client.get(next(), false);
    checkBytes(data, bytes);
  },
  setData: (client, next, data) => async () => {
    await client.set(next(), data, anyVersion);
  },
  createAndDelete: (client, path) => async () => {
    await client.create(path, '', ZooKeeper.constants.ZOO_EPHEMERAL);
    await client.delete_(path, anyVersion);
  },
  watchData: (client, path, onEvent) => client.w_get(path, onEvent),
  close: async (client) => {
    client.close();
  },
});
