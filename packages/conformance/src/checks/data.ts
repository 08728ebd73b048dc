/** Data of a znode: bytes, empty or null. */
import type { RunnableCheck } from '../check.ts';
import { expectEqual, expectThat, expectError } from '../expect.ts';

export const dataChecks: readonly RunnableCheck[] = [
  {
    name: 'data.null-and-empty',
    title: 'null data and empty data are different',
    behaviourIds: ['C3-1'],
    docs: 'zookeeper.jute, GetDataResponse: a buffer of length -1 is null',
    async run(context) {
      const zk = await context.openClient();
      await zk.create(`${context.rootPath}/null`, null);
      await zk.create(`${context.rootPath}/empty`, '');
      const [none, empty] = [await zk.getData(`${context.rootPath}/null`), await zk.getData(`${context.rootPath}/empty`)];
      expectEqual('no data', none.data, null);
      expectEqual('empty data', empty.data, new Uint8Array());
      expectEqual('dataLength of both', [none.stat.dataLength, empty.stat.dataLength], [0, 0]);
      await zk.setData(`${context.rootPath}/null`, '');
      await zk.setData(`${context.rootPath}/empty`, null);
      expectEqual('after setting empty data', (await zk.getData(`${context.rootPath}/null`)).data, new Uint8Array());
      expectEqual('after setting null', (await zk.getData(`${context.rootPath}/empty`)).data, null);
    },
  },
  {
    name: 'data.bytes',
    title: 'data are returned byte for byte',
    behaviourIds: ['C3-12'],
    docs: "Programmer's Guide, Data Access",
    async run(context) {
      const zk = await context.openClient();
      const bytes = Uint8Array.from({ length: 256 }, (_, at) => at);
      await zk.create(`${context.rootPath}/a`, bytes);
      expectEqual('created', (await zk.getData(`${context.rootPath}/a`)).data, bytes);
      await zk.setData(`${context.rootPath}/a`, bytes.toReversed());
      expectEqual('set', (await zk.getData(`${context.rootPath}/a`)).data, bytes.toReversed());
      await zk.setData(`${context.rootPath}/a`, new TextEncoder().encode('grüße, 世界'));
      expectEqual('text', new TextDecoder().decode((await zk.getData(`${context.rootPath}/a`)).data ?? undefined), 'grüße, 世界');
    },
  },
  {
    name: 'data.large',
    title: 'a znode stores almost 1 MiB, and the client rejects more',
    behaviourIds: ['A3', 'C3-14'],
    docs: "Programmer's Guide, Data Access; Administrator's Guide, jute.maxbuffer",
    async run(context) {
      const zk = await context.openClient();
      const bytes = new Uint8Array(1_040_000).map((_, at) => at * 7);
      await zk.create(`${context.rootPath}/large`, bytes);
      const { data, stat } = await zk.getData(`${context.rootPath}/large`);
      expectThat('the data', Buffer.compare(data ?? Buffer.alloc(0), bytes) === 0, 'the written data', data);
      expectEqual('dataLength', stat.dataLength, bytes.length);
      await expectError('1 MiB', zk.setData(`${context.rootPath}/large`, new Uint8Array(1_048_576)), 'BadArguments');
      expectEqual('the version, unchanged', (await zk.setData(`${context.rootPath}/large`, null)).version, 1);
    },
  },
  {
    name: 'data.frame-too-long',
    title: 'a frame with a length above any request closes the connection',
    behaviourIds: ['A3'],
    docs: "Administrator's Guide, jute.maxbuffer",
    async run(context) {
      const zk = await context.openClient();
      for (const length of [0x7fffffff, -1]) {
        const cnxn = await context.openRawCnxnWithSession();
        const frame = Buffer.alloc(4);
        frame.writeInt32BE(length);
        cnxn.sendBytes(frame);
        const answer = await context.waitFor(`the end of the connection that announced a frame of ${length} bytes`, cnxn.ping());
        expectEqual(`the error of a ping on the connection that announced a frame of ${length} bytes`, answer?.err, undefined);
      }
      await zk.setData(context.rootPath, 'the other session stays open');
    },
  },
];
