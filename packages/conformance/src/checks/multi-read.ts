/** multiRead: several reads, each with its own result. */
import { op, Perms, digestId } from '@tskeeper/client';
import { ErrorCode, OpCode, operations, writeMultiEnd, writeMultiHeader } from '@tskeeper/protocol';
import type { RunnableCheck } from '../check.ts';
import { equal, textOf } from '../expect.ts';
import { identities } from '../ground.ts';

const docs = 'ZooKeeper.multi with Op.getData and Op.getChildren; ZOOKEEPER-3402';

export const multiReadChecks: readonly RunnableCheck[] = [
  {
    name: 'multi-read.results',
    title: 'a multiRead reads data and children, and returns an error in the place of a read that fails',
    rows: ['A13', 'B47'],
    docs,
    since: [3, 6, 0],
    async run(ground) {
      const zk = await ground.open();
      const { root } = ground;
      const keeper = { perms: Perms.all, id: { scheme: 'digest', id: digestId(identities.keeper) } };
      const { path, stat } = await zk.create(`${root}/a`, 'x');
      await zk.create(`${root}/a/b`, null);
      await zk.create(`${root}/hidden`, null, { acl: [keeper] });
      const parts = [
        op.getData(path),
        op.getChildren(path),
        op.getData(`${root}/missing`),
        op.getChildren(`${root}/missing`),
        op.getData(`${root}/hidden`),
        op.getData(`${path}/b`),
      ] as const;
      const [data, children, none, noneBelow, hidden, empty] = await zk.multiRead(parts);
      equal('data', data.op === 'getData' && [textOf(data.data), data.stat.czxid], ['x', stat.czxid]);
      equal('children', children.op === 'getChildren' && children.children, ['b']);
      equal('errors', [none.error?.code, noneBelow.error?.code, hidden.error?.code], ['NoNode', 'NoNode', 'NoAuth']);
      equal('no data', empty.op === 'getData' && empty.data, null);
    },
  },
  {
    name: 'multi-read.no-watch',
    title: 'a multiRead sets no watch, even if one is requested',
    rows: ['A13'],
    docs: 'FinalRequestProcessor, OpCode.multiRead',
    since: [3, 6, 0],
    async run(ground) {
      const zk = await ground.open();
      await zk.create(`${ground.root}/a`);
      const cnxn = await ground.openRawSession();
      const reply = await cnxn.call(OpCode.multiRead, (writer) => {
        writeMultiHeader(writer, { type: OpCode.getData, done: false, err: -1 });
        operations.getData.request.write(writer, { path: `${ground.root}/a`, watch: true });
        writeMultiEnd(writer);
      });
      equal('the error', reply?.err, 0);
      await zk.setData(`${ground.root}/a`, 'x');
      await cnxn.call(OpCode.sync, (writer) => operations.sync.request.write(writer, { path: '/' }));
      await cnxn.ping();
      equal('events', cnxn.events, []);
    },
  },
  {
    name: 'multi-read.no-writes',
    title: 'a multiRead with a write is rejected as a whole (MarshallingError)',
    rows: ['A13'],
    docs: 'FinalRequestProcessor, OpCode.multiRead',
    since: [3, 6, 0],
    async run(ground) {
      const cnxn = await ground.openRawSession();
      const reply = await cnxn.call(OpCode.multiRead, (writer) => {
        writeMultiHeader(writer, { type: OpCode.delete, done: false, err: -1 });
        operations.delete.request.write(writer, { path: ground.root, version: -1 });
        writeMultiEnd(writer);
      });
      equal('the error', reply?.err, ErrorCode.MarshallingError);
      equal('whether the znode exists', (await (await ground.open()).exists(ground.root)) !== null, true);
    },
  },
];
