/** Drives @tskeeper/client, as built. */
import { connect } from '../../../packages/client/dist/index.js';
import { checkBytes, drive } from './node-driver.js';

const [connectString] = process.argv.slice(2);

await drive({
  style: 'promise',
  open: () => connect(connectString, { sessionTimeoutMs: 30_000 }),
  getData: (zk, next, bytes) => async () => {
    const { data } = await zk.getData(next());
    checkBytes(data, bytes);
  },
  setData: (zk, next, data) => async () => {
    await zk.setData(next(), data);
  },
  createAndDelete: (zk, path) => async () => {
    await zk.create(path, null, { mode: 'ephemeral' });
    await zk.delete(path);
  },
  watchData: (zk, path, onEvent) =>
    zk.getData(path, {
      watch: ({ type }) => {
        if (type === 'NodeDataChanged') onEvent();
      },
    }),
  close: (zk) => zk.close(),
});
