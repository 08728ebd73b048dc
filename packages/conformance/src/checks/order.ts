/** What ZooKeeper guarantees about order. */
import { OpCode, operations } from '@tskeeper/protocol';
import type { RunnableCheck } from '../check.ts';
import { equal, holds, textOf } from '../expect.ts';
import { underWay } from '../ground.ts';

const docs = "Programmer's Guide, Consistency Guarantees";

export const orderChecks: readonly RunnableCheck[] = [
  {
    name: 'order.fifo',
    title: 'the requests of a session are executed and answered in the order in which they were sent, reads among writes',
    rows: ['A18'],
    docs: `${docs}, Sequential Consistency`,
    async run(ground) {
      const zk = await ground.open();
      const { path } = await zk.create(`${ground.root}/a`, '0');
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
      holds('the order of the replies', wrong === -1, 'the order of the calls', { from: wrong, came: answered.slice(wrong, wrong + 5) });
      const late = versions.findIndex((version, at) => version !== Math.floor(at / 2) + 1);
      holds('the versions read', late === -1, 'one more after each write', { call: late, version: versions[late] });
    },
  },
  {
    name: 'order.headers',
    title: 'each reply has the xid of its request, and the zxids of replies never decrease',
    rows: ['A18', 'C3-25'],
    docs: 'zookeeper.jute, ReplyHeader',
    async run(ground) {
      const cnxn = await ground.openRawSession();
      let before = 0;
      for (const xid of [7, 8, 3, 2147483647, 1]) {
        const request = { path: ground.root, data: null, version: -1 };
        const reply = await cnxn.call(OpCode.setData, (writer) => operations.setData.request.write(writer, request), xid);
        equal('xid and error', [reply?.xid, reply?.err], [xid, 0]);
        holds('the zxid', reply!.zxid > before, `above ${before}`, reply!.zxid);
        before = reply!.zxid;
      }
      equal('the xid of a ping', (await cnxn.ping())?.xid, -2);
    },
  },
  {
    name: 'order.never-back',
    title: 'a session never reads older data than it has already read',
    rows: ['A18'],
    docs: `${docs}, Single System Image`,
    async run(ground) {
      const [writer, reader] = [await ground.open(), await ground.open({ server: ground.facts.servers.length - 1 })];
      const { path } = await writer.create(`${ground.root}/a`, '0');
      await ground.caughtUp(reader);
      const writing = underWay(Array.from({ length: 300 }, (_, at) => writer.setData(path, String(at + 1))));
      const seen: number[] = [];
      for (let at = 0; at < 100; at++) seen.push(Number(textOf((await reader.getData(path)).data)));
      await writing;
      const fallen = seen.findIndex((value, at) => at > 0 && value < seen[at - 1]!);
      holds('the data read', fallen === -1, 'never older than before', seen.slice(Math.max(0, fallen - 1), fallen + 1));
    },
  },
  {
    name: 'order.one-order-for-all',
    title: 'writes of several sessions have one order, the same for every client',
    rows: ['A18', 'C3-25'],
    docs: `${docs}, Single System Image`,
    async run(ground) {
      const last = ground.facts.servers.length - 1;
      const [one, other] = [await ground.open(), await ground.open({ server: last })];
      const children = await Promise.all(
        [one, other].flatMap((zk, who) =>
          Array.from({ length: 20 }, async (_, at) => (await zk.create(`${ground.root}/${who}-${at}`)).stat.czxid),
        ),
      );
      equal('the number of zxids', new Set(children).size, 40);
      for (const zk of [one, other]) {
        await ground.caughtUp(zk);
        const seen = await Promise.all(
          [0, 1].flatMap((who) => Array.from({ length: 20 }, async (_, at) => (await zk.exists(`${ground.root}/${who}-${at}`))?.czxid)),
        );
        equal('the zxids that a session sees', seen, children);
      }
      for (const who of [0, 1]) {
        const own = children.slice(who * 20, who * 20 + 20);
        holds(
          'the zxids of one session',
          own.every((zxid, at) => at === 0 || zxid > own[at - 1]!),
          'in the order of its calls',
          own,
        );
      }
    },
  },
];
