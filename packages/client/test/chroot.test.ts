/** Under a chroot, no argument or result shows a path from outside. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Chroot } from '../src/chroot.ts';
import { type Client, op, type WatchedEvent } from '../src/index.ts';
import { ClientWorld } from './support/client-world.ts';
import { settle } from './support/outcomes.ts';

describe('a chroot', () => {
  it.each([
    ['', '/a', '/a', '/a'],
    ['', '/', '/', '/'],
    ['/app', '/', '/app', '/'],
    ['/app', '/a/b', '/app/a/b', '/a/b'],
    ['/app/a', '/foo/bar', '/app/a/foo/bar', '/foo/bar'],
  ])('"%s" maps %s to %s on the server, and back', (prefix, path, outer, inner) => {
    const chroot = new Chroot(prefix);
    expect(chroot.prepend(path)).toBe(outer);
    expect(chroot.strip(outer)).toBe(inner);
  });

  it('does not change paths that only share its prefix', () => {
    const chroot = new Chroot('/app');
    expect(chroot.strip('/apple')).toBe('/apple');
    expect(chroot.strip('/zookeeper/config')).toBe('/zookeeper/config');
    expect(chroot.prependPrefix('')).toBe('/app/');
    expect(chroot.prependPrefix('/a')).toBe('/app/a');
    expect(new Chroot('').prependPrefix('')).toBe('');
  });
});

describe('C2-4: a client under /app/a', () => {
  let world: ClientWorld;
  let outside: Client;
  let zk: Client;

  const go = <T>(promise: Promise<T>): Promise<T> => world.until(promise);

  beforeEach(async () => {
    world = await ClientWorld.start();
    outside = await world.connect();
    await go(outside.create('/app'));
    await go(outside.create('/app/a'));
    await go(outside.create('/apple'));
    zk = await world.connect({}, '/app/a');
  });

  afterEach(async () => {
    await world.close();
  });

  it('A89: acts below it in every operation, and sees only its own paths', async () => {
    expect((await go(zk.create('/x', '1'))).path).toBe('/x');
    expect((await go(zk.create('/x/s-', null, { mode: 'ephemeralSequential' }))).path).toBe('/x/s-0000000000');
    expect(await go(outside.getEphemerals())).toEqual([]);
    expect((await go(outside.getData('/app/a/x'))).data).toEqual(new Uint8Array([0x31]));
    expect((await go(zk.setData('/x', '2'))).version).toBe(1);
    expect((await go(zk.exists('/x')))!.version).toBe(1);
    expect((await go(zk.getChildren('/'))).children).toEqual(['x']);
    expect(await go(zk.getAllChildrenNumber('/'))).toBe(2);
    expect(await go(zk.getEphemerals())).toEqual(['/x/s-0000000000']);
    expect(await go(zk.getEphemerals('/x/s'))).toEqual(['/x/s-0000000000']);
    expect((await go(zk.getACL('/x'))).acl).toHaveLength(1);
    expect((await go(zk.setACL('/x', [{ perms: 31, id: { scheme: 'world', id: 'anyone' } }]))).aversion).toBe(1);
    await go(zk.sync('/x'));
    const [created] = await go(zk.multi([op.create('/m'), op.setData('/m', 'x'), op.check('/m', { version: 1 }), op.delete('/m')]));
    expect(created.path).toBe('/m');
    const [read, missing] = await go(zk.multiRead([op.getData('/x'), op.getChildren('/missing')]));
    expect(read.op).toBe('getData');
    expect(missing.op === 'error' && missing.error.path).toBe('/missing');
    await go(zk.delete('/x/s-0000000000'));
    await go(zk.delete('/x'));
    expect((await go(outside.getChildren('/app/a'))).children).toEqual([]);
  });

  it('shares no paths, watches or listings with a sibling tenant', async () => {
    await go(outside.create('/app/b'));
    const tenant = await world.connect({}, '/app/b');
    const heard: string[] = [];
    const watch = ({ type, path }: WatchedEvent) => void (type === 'None' ? undefined : heard.push(`${type} ${path}`));
    await go(tenant.addWatch('/', { mode: 'persistentRecursive', watch }));
    await go(zk.create('/same', 'a'));
    await go(tenant.create('/same', 'b'));
    await go(zk.delete('/same'));
    expect(new TextDecoder().decode((await go(tenant.getData('/same'))).data ?? undefined)).toBe('b');
    expect(await go(zk.exists('/same'))).toBe(null);
    await go(tenant.create('/other', null, { mode: 'ephemeral' }));
    expect((await go(zk.getChildren('/'))).children).toEqual([]);
    expect(await go(zk.getAllChildrenNumber('/'))).toBe(0);
    expect(heard).toEqual(['NodeCreated /same', 'NodeCreated /other']);
    // Paths outside cannot be expressed.
    expect((await go(settle(zk.getData('/../b/same')))).outcome).toBe('BadArguments notSent');
  });

  it('reads the configuration of the ensemble at its real path', async () => {
    expect((await go(zk.getConfig())).stat.aversion).toBe(-1);
    const [result] = await world.until(Promise.allSettled([zk.getData('/zookeeper/config')]));
    expect((result as PromiseRejectedResult).reason).toMatchObject({ code: 'NoNode', path: '/zookeeper/config' });
  });

  it('receives events with its own paths, also after a lost connection', async () => {
    const lines: string[] = [];
    const watch = ({ type, path }: WatchedEvent) => {
      if (path !== null) lines.push(`${type} ${path}`);
    };
    zk.on('event', ({ type, path }) => void lines.push(`event ${type} ${path}`));
    await go(zk.exists('/x', { watch }));
    await go(zk.getChildren('/', { watch }));
    await go(zk.addWatch('/', { mode: 'persistentRecursive', watch }));
    world.break();
    await world.untilSo(() => zk.state === 'suspended');
    await world.untilSo(() => zk.state === 'connected');
    await go(outside.create('/app/a/x'));
    await world.settle();
    expect(lines).toEqual(['event NodeCreated /x', 'NodeCreated /x', 'event NodeChildrenChanged /', 'NodeChildrenChanged /']);
    await go(zk.removeWatches('/'));
    await world.settle();
    expect(lines.at(-1)).toBe('PersistentWatchRemoved /');
  });

  it('gets errors with its own paths, also if its root does not exist', async () => {
    const failures = await world.until(
      Promise.allSettled([zk.getData('/missing'), zk.create('/a/b'), zk.delete('/missing'), zk.multi([op.delete('/missing')])]),
    );
    expect(failures.map((result) => (result as PromiseRejectedResult).reason.message)).toEqual([
      'KeeperErrorCode = NoNode for /missing',
      'KeeperErrorCode = NoNode for /a/b',
      'KeeperErrorCode = NoNode for /missing',
      'KeeperErrorCode = NoNode (ops[0], delete /missing; nothing was changed)',
    ]);
    const nowhere = await world.connect({}, '/nowhere');
    expect(await go(nowhere.exists('/'))).toBe(null);
    const [result] = await world.until(Promise.allSettled([nowhere.create('/a')]));
    expect((result as PromiseRejectedResult).reason).toMatchObject({ code: 'NoNode', path: '/a' });
  });
});
