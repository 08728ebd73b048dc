/** A chroot after the servers of the connect string. */
import { op } from '@tskeeper/client';
import type { RunnableCheck } from '../check.ts';
import { equal, refused, textOf } from '../expect.ts';
import { Heard } from '../heard.ts';

const docs = "Programmer's Guide, ZooKeeper Sessions: chroot suffix";

export const chrootChecks: readonly RunnableCheck[] = [
  {
    name: 'chroot.paths',
    title: 'below a chroot, paths of calls, results and errors are relative to it',
    rows: ['C2-4', 'B34'],
    docs,
    async run(ground) {
      const outside = await ground.open();
      await outside.create(`${ground.root}/app`);
      const zk = await ground.open({ chroot: `${ground.root}/app` });
      equal('the path of a create', (await zk.create('/x', '1')).path, '/x');
      equal('that path without the chroot', textOf((await outside.getData(`${ground.root}/app/x`)).data), '1');
      const [created] = await zk.multi([op.create('/m-', null, { mode: 'persistentSequential' })]);
      equal('the path of a create in a multi', created.path, '/m-0000000001');
      equal('the children of the root', (await zk.getChildren('/')).children.toSorted(), ['m-0000000001', 'x']);
      equal('the path of an error', (await refused('getData', zk.getData('/y'), 'NoNode')).path, '/y');
      equal('its own root', (await zk.exists('/'))?.czxid, (await outside.exists(`${ground.root}/app`))?.czxid);
    },
  },
  {
    name: 'chroot.events',
    title: 'below a chroot, events have paths relative to it',
    rows: ['C2-4'],
    docs,
    async run(ground) {
      const outside = await ground.open();
      await outside.create(`${ground.root}/app`);
      const [zk, heard] = [await ground.open({ chroot: `${ground.root}/app` }), new Heard()];
      await zk.exists('/x', { watch: heard.watch });
      await zk.getChildren('/', { watch: heard.watch });
      await outside.create(`${ground.root}/app/x`);
      await zk.multi([op.check('/')]);
      equal('the events', heard.takeText(), ['NodeCreated /x', 'NodeChildrenChanged /']);
    },
  },
  {
    name: 'chroot.ephemerals',
    title: 'below a chroot, getEphemerals knows those below it',
    rows: ['C2-4', 'B48'],
    docs,
    since: [3, 6, 0],
    async run(ground) {
      const outside = await ground.open();
      await outside.create(`${ground.root}/app`);
      const zk = await ground.open({ chroot: `${ground.root}/app` });
      await zk.create('/x', null, { mode: 'ephemeral' });
      equal('the paths', await zk.getEphemerals(), ['/x']);
    },
  },
  {
    name: 'chroot.missing',
    title: 'below a missing chroot every call fails with NoNode until the chroot is created',
    rows: ['C2-4'],
    docs,
    async run(ground) {
      const zk = await ground.open({ chroot: `${ground.root}/app` });
      await refused('create', zk.create('/x'), 'NoNode');
      await zk.ensurePath('/');
      equal('the path', (await zk.create('/x')).path, '/x');
    },
  },
];
