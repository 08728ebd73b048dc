/** The client against our server, over real sockets. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Server, startServer } from '@tskeeper/server';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Client, connect, KeeperError, op, type WatchedEvent } from '../src/index.ts';

let folder: string;
let server: Server;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tskeeper-client-'));
  server = await startServer({ dataDir: folder, clientPort: 0 });
});

afterAll(async () => {
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});

it('a client creates, reads, changes, lists and deletes', async () => {
  await using zk: Client = await connect(server.connectString);
  expect(zk.state).toBe('connected');
  const { path, stat } = await zk.create('/a', 'one');
  expect(path).toBe('/a');
  expect(stat.version).toBe(0);
  const read = await zk.getData('/a');
  expect(new TextDecoder().decode(read.data ?? undefined)).toBe('one');
  expect((await zk.setData('/a', 'two', { version: 0 })).version).toBe(1);
  expect(await zk.exists('/b')).toBe(null);
  expect((await zk.getChildren('/')).children.toSorted()).toEqual(['a', 'zookeeper']);
  await zk.delete('/a');
  const events: WatchedEvent[] = [];
  await zk.exists('/a', { watch: (event) => void events.push(event) });
  const results = await zk.multi([op.create('/a', 'x'), op.setData('/a', 'y'), op.check('/a', { version: 1 }), op.delete('/a')]);
  expect(results[0].path).toBe('/a');
  expect(results[1].stat.version).toBe(1);
  expect(events).toMatchObject([{ type: 'NodeCreated', path: '/a', zxid: results[0].stat!.czxid }]);
});

it('the error of a rejected call shows the caller', async () => {
  await using zk = await connect(server.connectString);
  async function readsWhatIsNotThere(): Promise<unknown> {
    const { data } = await zk.getData('/missing');
    return data;
  }
  const error = await readsWhatIsNotThere().then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(KeeperError.is(error, 'NoNode')).toBe(true);
  expect(error).toMatchObject({ code: 'NoNode', errno: -101, op: 'getData', path: '/missing', retryable: false, outcome: 'refused' });
  expect((error as Error).message).toBe('KeeperErrorCode = NoNode for /missing');
  expect((error as Error).stack).toContain('readsWhatIsNotThere');
});
