/** Views of a part of the tree, on one session. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Client, ClientView, type WatchedEvent } from '../../src/index.ts';
import { ClientWorld } from '../support/client-world.ts';
import { settle, text } from '../support/outcomes.ts';

let world: ClientWorld;
let zk: Client;

beforeEach(async () => {
  world = await ClientWorld.start();
  zk = await world.connect();
});

afterEach(async () => {
  await world.close();
});

const go = <T>(promise: Promise<T>): Promise<T> => world.until(promise);

describe('a view', () => {
  it('B55: acts below its path, shares the session, and has no close', async () => {
    const tenant = zk.chroot('/tenants/42');
    await go(tenant.ensurePath('/'));
    await go(tenant.create('/a', 'x', { mode: 'ephemeral' }));
    expect((await go(zk.getData('/tenants/42/a'))).stat.ephemeralOwner).toBe(zk.sessionId);
    expect([tenant.sessionId, tenant.state, tenant.connectedServer]).toEqual([zk.sessionId, 'connected', 'server:2181']);
    expect(tenant).toBeInstanceOf(ClientView);
    expect(tenant).not.toBeInstanceOf(Client);
    expect('close' in tenant).toBe(false);
    // @ts-expect-error: a view has no close.
    expect(tenant.close).toBe(undefined);
    expect(Symbol.asyncDispose in tenant).toBe(false);
    expect(await go(tenant.getEphemerals())).toEqual(['/a']);
  });

  it('B55: has views of its own, and the root of a client is a view like any other', async () => {
    await go(zk.ensurePath('/a/b/c'));
    expect((await go(zk.chroot('/a').chroot('/b').getChildren('/'))).children).toEqual(['c']);
    expect((await go(zk.chroot('/').getChildren('/a'))).children).toEqual(['b']);
    const inside = await world.connect({}, '/a');
    expect((await go(inside.chroot('/b').getChildren('/'))).children).toEqual(['c']);
    expect((await go(inside.chroot('/').getChildren('/b'))).children).toEqual(['c']);
    expect(() => zk.chroot('a/')).toThrow('KeeperErrorCode = BadArguments for a/ (a path must start with "/")');
  });

  it('B55: delivers events with its own paths, while it has listeners', async () => {
    await go(zk.ensurePath('/t'));
    const view = zk.chroot('/t');
    const heard: (string | null)[] = [];
    const watch = (event: WatchedEvent) => void heard.push(event.path);
    const states: string[] = [];
    const offEvent = view.on('event', ({ path }) => heard.push(`event ${path}`));
    const offState = view.on('state', ({ state }) => states.push(state));
    await go(view.exists('/a', { watch }));
    await go(zk.create('/t/a', 'x'));
    await world.settle();
    expect(heard).toEqual(['event /a', '/a']);
    world.break();
    await world.untilSo(() => zk.state === 'suspended');
    await world.untilSo(() => zk.state === 'connected');
    await world.settle();
    expect(states).toEqual(['Disconnected', 'SyncConnected']);
    offEvent();
    offState();
    await go(view.exists('/a', { watch: true }));
    await go(zk.delete('/t/a'));
    await world.settle();
    expect(heard).toHaveLength(2);
  });

  it('B55: puts its own paths into errors, also of calls of several steps', async () => {
    const view = zk.chroot('/t');
    const found = await Promise.all(
      [
        view.getData('/a'),
        view.update('/a', () => 'x'),
        view.create('/a/b', null, { protection: true }),
        view.delete('/a', { guaranteed: true }),
      ].map((call) => go(settle<unknown>(call))),
    );
    expect(found.map(({ error }) => error!.message)).toEqual([
      'KeeperErrorCode = NoNode for /a',
      'KeeperErrorCode = NoNode for /a (getData /a)',
      expect.stringMatching(/^KeeperErrorCode = NoNode for \/a\/b \(create \/a\/_c_[0-9a-f-]{36}-b\)$/),
      'KeeperErrorCode = NoNode for /a',
    ]);
    await go(view.create('/a', 'x', { parents: true }));
    const paths: string[] = [];
    const walking = (async () => {
      for await (const { path, data } of view.walk('/', { data: true })) paths.push(`${path} ${text(data)}`);
    })();
    await go(walking);
    expect(paths).toEqual(['/ null', '/a x']);
  });
});
