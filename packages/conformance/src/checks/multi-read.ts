/** multiRead: several reads, each with its own result. */
import { op, Perms, digestId } from '@tskeeper/client';
import { ErrorCode, OpCode, operations, writeMultiEnd, writeMultiHeader } from '@tskeeper/protocol';
import type { RunnableCheck } from '../check.ts';
import { expectEqual, textOf } from '../expect.ts';
import { identities } from '../check-context.ts';

const docs = 'ZooKeeper.multi with Op.getData and Op.getChildren; ZOOKEEPER-3402';

export const multiReadChecks: readonly RunnableCheck[] = [
  {
    name: 'multi-read.results',
    title: 'a multiRead reads data and children, and returns an error in the place of a read that fails',
    behaviourIds: ['A13', 'B47'],
    docs,
    since: [3, 6, 0],
    async run(context) {
      const zk = await context.openClient();
      const { rootPath } = context;
      const keeper = { perms: Perms.all, id: { scheme: 'digest', id: digestId(identities.keeper) } };
      const { path, stat } = await zk.create(`${rootPath}/a`, 'x');
      await zk.create(`${rootPath}/a/b`, null);
      await zk.create(`${rootPath}/hidden`, null, { acl: [keeper] });
      const parts = [
        op.getData(path),
        op.getChildren(path),
        op.getData(`${rootPath}/missing`),
        op.getChildren(`${rootPath}/missing`),
        op.getData(`${rootPath}/hidden`),
        op.getData(`${path}/b`),
      ] as const;
      const [data, children, none, noneBelow, hidden, empty] = await zk.multiRead(parts);
      expectEqual('data', data.op === 'getData' && [textOf(data.data), data.stat.czxid], ['x', stat.czxid]);
      expectEqual('children', children.op === 'getChildren' && children.children, ['b']);
      expectEqual('errors', [none.error?.code, noneBelow.error?.code, hidden.error?.code], ['NoNode', 'NoNode', 'NoAuth']);
      expectEqual('no data', empty.op === 'getData' && empty.data, null);
    },
  },
  {
    name: 'multi-read.no-watch',
    title: 'a multiRead sets no watch, even if one is requested',
    behaviourIds: ['A13'],
    docs: 'FinalRequestProcessor, OpCode.multiRead',
    since: [3, 6, 0],
    async run(context) {
      const zk = await context.openClient();
      await zk.create(`${context.rootPath}/a`);
      const cnxn = await context.openRawCnxnWithSession();
      const reply = await cnxn.call(OpCode.multiRead, (writer) => {
        writeMultiHeader(writer, { type: OpCode.getData, done: false, err: -1 });
        operations.getData.request.write(writer, { path: `${context.rootPath}/a`, watch: true });
        writeMultiEnd(writer);
      });
      expectEqual('the error', reply?.err, 0);
      await zk.setData(`${context.rootPath}/a`, 'x');
      await cnxn.call(OpCode.sync, (writer) => operations.sync.request.write(writer, { path: '/' }));
      await cnxn.ping();
      expectEqual('events', cnxn.events, []);
    },
  },
  {
    name: 'multi-read.no-writes',
    title: 'a multiRead with a write is rejected as a whole (MarshallingError)',
    behaviourIds: ['A13'],
    docs: 'FinalRequestProcessor, OpCode.multiRead',
    since: [3, 6, 0],
    async run(context) {
      const cnxn = await context.openRawCnxnWithSession();
      const reply = await cnxn.call(OpCode.multiRead, (writer) => {
        writeMultiHeader(writer, { type: OpCode.delete, done: false, err: -1 });
        operations.delete.request.write(writer, { path: context.rootPath, version: -1 });
        writeMultiEnd(writer);
      });
      expectEqual('the error', reply?.err, ErrorCode.MarshallingError);
      expectEqual('whether the znode exists', (await (await context.openClient()).exists(context.rootPath)) !== null, true);
    },
  },
];
