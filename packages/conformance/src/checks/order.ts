/** What ZooKeeper guarantees about order. */
import { OpCode, operations } from '@tskeeper/protocol';
import type { RunnableCheck } from '../check.ts';
import { expectEqual, expectThat, textOf } from '../expect.ts';
import { inFlight } from '../check-context.ts';

const docs = "Programmer's Guide, Consistency Guarantees";

export const orderChecks: readonly RunnableCheck[] = [
  {
    name: 'order.fifo',
    title: 'the requests of a session are executed and answered in the order in which they were sent, reads among writes',
    behaviourIds: ['A18'],
    docs: `${docs}, Sequential Consistency`,
    async run(context) {
      const zk = await context.openClient();
      const { path } = await zk.create(`${context.rootPath}/a`, '0');
      const count = 1000;
      const answered: number[] = [];
      const versions = await Promise.all(
        Array.from({ length: count }, async (_, at) => {
          const { version } = at % 2 === 0 ? await zk.setData(path, String(at)) : (await zk.getData(path)).stat;
          answered.push(at);
          return version;
        }),
      );
      const wrong = answered.findIndex((at, place) => at !== place);
      expectThat('the order of the replies', wrong === -1, 'the order of the calls', {
        from: wrong,
        came: answered.slice(wrong, wrong + 5),
      });
      const late = versions.findIndex((version, at) => version !== Math.floor(at / 2) + 1);
      expectThat('the versions read', late === -1, 'one more after each write', { call: late, version: versions[late] });
    },
  },
  {
    name: 'order.headers',
    title: 'each reply has the xid of its request, and the zxids of replies never decrease',
    behaviourIds: ['A18', 'C3-25'],
    docs: 'zookeeper.jute, ReplyHeader',
    async run(context) {
      const cnxn = await context.openRawCnxnWithSession();
      let before = 0;
      for (const xid of [7, 8, 3, 2147483647, 1]) {
        const request = { path: context.rootPath, data: null, version: -1 };
        const reply = await cnxn.call(OpCode.setData, (writer) => operations.setData.request.write(writer, request), xid);
        expectEqual('xid and error', [reply?.xid, reply?.err], [xid, 0]);
        expectThat('the zxid', reply!.zxid > before, `above ${before}`, reply!.zxid);
        before = reply!.zxid;
      }
      expectEqual('the xid of a ping', (await cnxn.ping())?.xid, -2);
    },
  },
  {
    name: 'order.never-back',
    title: 'a session never reads older data than it has already read',
    behaviourIds: ['A18'],
    docs: `${docs}, Single System Image`,
    async run(context) {
      const [writer, reader] = [await context.openClient(), await context.openClient({ server: context.facts.servers.length - 1 })];
      const { path } = await writer.create(`${context.rootPath}/a`, '0');
      await context.catchUp(reader);
      const writing = inFlight(Array.from({ length: 300 }, (_, at) => writer.setData(path, String(at + 1))));
      const seen: number[] = [];
      for (let at = 0; at < 100; at++) seen.push(Number(textOf((await reader.getData(path)).data)));
      await writing;
      const fallen = seen.findIndex((value, at) => at > 0 && value < seen[at - 1]!);
      expectThat('the data read', fallen === -1, 'never older than before', seen.slice(Math.max(0, fallen - 1), fallen + 1));
    },
  },
  {
    name: 'order.one-order-for-all',
    title: 'writes of several sessions have one order, the same for every client',
    behaviourIds: ['A18', 'C3-25'],
    docs: `${docs}, Single System Image`,
    async run(context) {
      const last = context.facts.servers.length - 1;
      const [one, other] = [await context.openClient(), await context.openClient({ server: last })];
      const children = await Promise.all(
        [one, other].flatMap((zk, who) =>
          Array.from({ length: 20 }, async (_, at) => (await zk.create(`${context.rootPath}/${who}-${at}`)).stat.czxid),
        ),
      );
      expectEqual('the number of zxids', new Set(children).size, 40);
      for (const zk of [one, other]) {
        await context.catchUp(zk);
        const seen = await Promise.all(
          [0, 1].flatMap((who) =>
            Array.from({ length: 20 }, async (_, at) => (await zk.exists(`${context.rootPath}/${who}-${at}`))?.czxid),
          ),
        );
        expectEqual('the zxids that a session sees', seen, children);
      }
      for (const who of [0, 1]) {
        const own = children.slice(who * 20, who * 20 + 20);
        expectThat(
          'the zxids of one session',
          own.every((zxid, at) => at === 0 || zxid > own[at - 1]!),
          'in the order of its calls',
          own,
        );
      }
    },
  },
];
