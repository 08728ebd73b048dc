/** What a znode holds: bytes, none, or nothing at all. */
import type { RunnableCheck } from '../check.ts';
import { equal, holds, refused } from '../expect.ts';

export const dataChecks: readonly RunnableCheck[] = [
  {
    name: 'data.null-and-empty',
    title: 'no data and empty data are two things',
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
      equal('set to empty', (await zk.getData(`${ground.root}/null`)).data, new Uint8Array());
      equal('set to none', (await zk.getData(`${ground.root}/empty`)).data, null);
    },
  },
  {
    name: 'data.bytes',
    title: 'data come back byte for byte',
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
    title: 'a znode holds almost 1 MiB, and the client refuses to send more',
    rows: ['A3', 'C3-14'],
    docs: "Programmer's Guide, Data Access; Administrator's Guide, jute.maxbuffer",
    async run(ground) {
      const zk = await ground.open();
      const bytes = new Uint8Array(1_040_000).map((_, at) => at * 7);
      await zk.create(`${ground.root}/large`, bytes);
      const { data, stat } = await zk.getData(`${ground.root}/large`);
      holds('the data', Buffer.compare(data ?? Buffer.alloc(0), bytes) === 0, 'what was written', data);
      equal('dataLength', stat.dataLength, bytes.length);
      await refused('1 MiB', zk.setData(`${ground.root}/large`, new Uint8Array(1_048_576)), 'BadArguments');
      equal('the version, unchanged', (await zk.setData(`${ground.root}/large`, null)).version, 1);
    },
  },
  {
    name: 'data.frame-too-long',
    title: 'a frame that claims to be longer than any request costs the connection',
    rows: ['A3'],
    docs: "Administrator's Guide, jute.maxbuffer",
    async run(ground) {
      const zk = await ground.open();
      for (const length of [0x7fffffff, -1]) {
        const cnxn = await ground.openRawSession();
        const frame = Buffer.alloc(4);
        frame.writeInt32BE(length);
        cnxn.sendBytes(frame);
        const answer = await ground.until(`an end of the connection that has announced a frame of ${length} bytes`, cnxn.ping());
        equal(`the error of a ping on the connection that has announced a frame of ${length} bytes`, answer?.err, undefined);
      }
      await zk.setData(ground.root, 'another session goes on');
    },
  },
];
