/** Data of a znode: bytes, empty or null. */
import type { RunnableCheck } from '../check.ts';
import { equal, holds, refused } from '../expect.ts';

export const dataChecks: readonly RunnableCheck[] = [
  {
    name: 'data.null-and-empty',
    title: 'null data and empty data are different',
    rows: ['C3-1'],
    docs: 'zookeeper.jute, GetDataResponse: a buffer of length -1 is null',
    async run(ground) {
      const zk = await ground.open();
      await zk.create(`${ground.root}/null`, null);
      await zk.create(`${ground.root}/empty`, '');
      const [none, empty] = [await zk.getData(`${ground.root}/null`), await zk.getData(`${ground.root}/empty`)];
      equal('no data', none.data, null);
      equal('empty data', empty.data, new Uint8Array());
      equal('dataLength of both', [none.stat.dataLength, empty.stat.dataLength], [0, 0]);
      await zk.setData(`${ground.root}/null`, '');
      await zk.setData(`${ground.root}/empty`, null);
      equal('after setting empty data', (await zk.getData(`${ground.root}/null`)).data, new Uint8Array());
      equal('after setting null', (await zk.getData(`${ground.root}/empty`)).data, null);
    },
  },
  {
    name: 'data.bytes',
    title: 'data are returned byte for byte',
    rows: ['C3-12'],
    docs: "Programmer's Guide, Data Access",
    async run(ground) {
      const zk = await ground.open();
      const bytes = Uint8Array.from({ length: 256 }, (_, at) => at);
      await zk.create(`${ground.root}/a`, bytes);
      equal('created', (await zk.getData(`${ground.root}/a`)).data, bytes);
      await zk.setData(`${ground.root}/a`, bytes.toReversed());
      equal('set', (await zk.getData(`${ground.root}/a`)).data, bytes.toReversed());
      await zk.setData(`${ground.root}/a`, new TextEncoder().encode('grüße, 世界'));
      equal('text', new TextDecoder().decode((await zk.getData(`${ground.root}/a`)).data ?? undefined), 'grüße, 世界');
    },
  },
  {
    name: 'data.large',
    title: 'a znode stores almost 1 MiB, and the client rejects more',
    rows: ['A3', 'C3-14'],
    docs: "Programmer's Guide, Data Access; Administrator's Guide, jute.maxbuffer",
    async run(ground) {
      const zk = await ground.open();
      const bytes = new Uint8Array(1_040_000).map((_, at) => at * 7);
      await zk.create(`${ground.root}/large`, bytes);
      const { data, stat } = await zk.getData(`${ground.root}/large`);
      holds('the data', Buffer.compare(data ?? Buffer.alloc(0), bytes) === 0, 'the written data', data);
      equal('dataLength', stat.dataLength, bytes.length);
      await refused('1 MiB', zk.setData(`${ground.root}/large`, new Uint8Array(1_048_576)), 'BadArguments');
      equal('the version, unchanged', (await zk.setData(`${ground.root}/large`, null)).version, 1);
    },
  },
  {
    name: 'data.frame-too-long',
    title: 'a frame with a length above any request closes the connection',
    rows: ['A3'],
    docs: "Administrator's Guide, jute.maxbuffer",
    async run(ground) {
      const zk = await ground.open();
      for (const length of [0x7fffffff, -1]) {
        const cnxn = await ground.openRawSession();
        const frame = Buffer.alloc(4);
        frame.writeInt32BE(length);
        cnxn.sendBytes(frame);
        const answer = await ground.until(`the end of the connection that announced a frame of ${length} bytes`, cnxn.ping());
        equal(`the error of a ping on the connection that announced a frame of ${length} bytes`, answer?.err, undefined);
      }
      await zk.setData(ground.root, 'the other session stays open');
    },
  },
];
