/** Drives node-zookeeper-client, which has callbacks. */
import { createRequire } from 'node:module';
import { checkBytes, drive } from './node-driver.js';

const [connectString, folder] = process.argv.slice(2);
const zookeeper = createRequire(`${folder}/`)('node-zookeeper-client');

await drive({
  style: 'callback',
  open: () =>
    new Promise((resolve) => {
      const client = zookeeper.createClient(connectString, { sessionTimeout: 30_000 });
      client.once('connected', () => resolve(client));
      client.connect();
    }),
  getData: (client, next, bytes) => (done) => {
    client.getData(next(), (error, data) => {
      if (!error) checkBytes(data, bytes);
      done(error);
    });
  },
  setData: (client, next, data) => (done) => {
    client.setData(next(), data, done);
  },
  createAndDelete: (client, path) => (done) => {
    client.create(path, zookeeper.CreateMode.EPHEMERAL, (error) => {
      if (error) done(error);
      else client.remove(path, done);
    });
  },
  watchData: (client, path, onEvent) =>
    new Promise((resolve, reject) => {
      client.getData(path, onEvent, (error) => (error ? reject(error) : resolve()));
    }),
  close: (client) =>
    new Promise((resolve) => {
      client.once('disconnected', resolve);
      client.close();
    }),
});
