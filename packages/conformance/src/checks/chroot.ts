/** A chroot after the servers of the connect string. */
import { op } from '@tskeeper/client';
import type { RunnableCheck } from '../check.ts';
import { expectEqual, expectError, textOf } from '../expect.ts';
import { EventRecorder } from '../event-recorder.ts';

const docs = "Programmer's Guide, ZooKeeper Sessions: chroot suffix";

export const chrootChecks: readonly RunnableCheck[] = [
  {
    name: 'chroot.paths',
    title: 'below a chroot, paths of calls, results and errors are relative to it',
    behaviourIds: ['C2-4', 'B34'],
    docs,
    async run(context) {
      const outside = await context.openClient();
      await outside.create(`${context.rootPath}/app`);
      const zk = await context.openClient({ chroot: `${context.rootPath}/app` });
      expectEqual('the path of a create', (await zk.create('/x', '1')).path, '/x');
      expectEqual('that path without the chroot', textOf((await outside.getData(`${context.rootPath}/app/x`)).data), '1');
      const [created] = await zk.multi([op.create('/m-', null, { mode: 'persistentSequential' })]);
      expectEqual('the path of a create in a multi', created.path, '/m-0000000001');
      expectEqual('the children of the root', (await zk.getChildren('/')).children.toSorted(), ['m-0000000001', 'x']);
      expectEqual('the path of an error', (await expectError('getData', zk.getData('/y'), 'NoNode')).path, '/y');
      expectEqual('its own root', (await zk.exists('/'))?.czxid, (await outside.exists(`${context.rootPath}/app`))?.czxid);
    },
  },
  {
    name: 'chroot.events',
    title: 'below a chroot, events have paths relative to it',
    behaviourIds: ['C2-4'],
    docs,
    async run(context) {
      const outside = await context.openClient();
      await outside.create(`${context.rootPath}/app`);
      const [zk, recorder] = [await context.openClient({ chroot: `${context.rootPath}/app` }), new EventRecorder()];
      await zk.exists('/x', { watch: recorder.watch });
      await zk.getChildren('/', { watch: recorder.watch });
      await outside.create(`${context.rootPath}/app/x`);
      await zk.multi([op.check('/')]);
      expectEqual('the events', recorder.takeText(), ['NodeCreated /x', 'NodeChildrenChanged /']);
    },
  },
  {
    name: 'chroot.ephemerals',
    title: 'below a chroot, getEphemerals knows those below it',
    behaviourIds: ['C2-4', 'B48'],
    docs,
    since: [3, 6, 0],
    async run(context) {
      const outside = await context.openClient();
      await outside.create(`${context.rootPath}/app`);
      const zk = await context.openClient({ chroot: `${context.rootPath}/app` });
      await zk.create('/x', null, { mode: 'ephemeral' });
      expectEqual('the paths', await zk.getEphemerals(), ['/x']);
    },
  },
  {
    name: 'chroot.missing',
    title: 'below a missing chroot every call fails with NoNode until the chroot is created',
    behaviourIds: ['C2-4'],
    docs,
    async run(context) {
      const zk = await context.openClient({ chroot: `${context.rootPath}/app` });
      await expectError('create', zk.create('/x'), 'NoNode');
      await zk.ensurePath('/');
      expectEqual('the path', (await zk.create('/x')).path, '/x');
    },
  },
];
