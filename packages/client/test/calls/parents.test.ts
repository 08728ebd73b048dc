/** Parents that a create creates, while other clients create and delete them too. */
import { creatorAcl } from '@tskeeper/protocol';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Client, op } from '../../src/index.ts';
import { ClientWorld } from '../support/client-world.ts';
import { settle } from '../support/outcomes.ts';

let world: ClientWorld;
let zk: Client;
let other: Client;

beforeEach(async () => {
  world = await ClientWorld.start();
  zk = await world.connect();
  other = await world.connect();
});

afterEach(async () => {
  await world.close();
});

const go = <T>(promise: Promise<T>): Promise<T> => world.until(promise);
const childrenOf = async (path: string) => (await go(other.getChildren(path))).children.toSorted();

describe('create with parents', () => {
  it('B53: creates missing parents, persistent or containers, with the ACL of the znode', async () => {
    expect((await go(zk.create('/a/b/c', 'x', { parents: true }))).path).toBe('/a/b/c');
    expect((await go(zk.create('/a/d/e/s-', null, { mode: 'ephemeralSequential', parents: 'container' }))).path).toBe(
      '/a/d/e/s-0000000000',
    );
    expect((await go(zk.create('/a/q/', null, { mode: 'persistentSequential', parents: true }))).path).toBe('/a/q/0000000000');
    await go(zk.addAuth('digest', 'me:secret'));
    await go(zk.create('/mine/x', null, { parents: true, acl: creatorAcl }));
    expect((await go(zk.getACL('/mine'))).acl).toEqual((await go(zk.getACL('/mine/x'))).acl);
    expect((await go(settle(other.create('/mine/theirs')))).outcome).toBe('NoAuth refused');
    // Containers are deleted after their last child; persistent parents stay.
    await go(zk.delete('/a/d/e/s-0000000000'));
    await go(zk.delete('/a/b/c'));
    await world.pass(200_000, 10_000);
    await world.untilSo(() => other.state === 'connected');
    expect(await childrenOf('/a')).toEqual(['b', 'q']);
  });

  it('B53: costs one create if the parents exist, and two round trips more if they do not', async () => {
    await go(zk.create('/a'));
    const { forward } = world.wire.cnxns.values().next().value!;
    const sizes: number[] = [];
    for (const path of ['/a/b', '/a/c/d/e']) {
      const before = forward.deliveredBytes;
      await go(zk.create(path, null, { parents: true }));
      sizes.push(forward.deliveredBytes - before);
    }
    const plain = forward.deliveredBytes;
    await go(zk.create('/a/f'));
    expect(sizes[0]).toBe(forward.deliveredBytes - plain);
    // One failed create, exists of three znodes, two creates, and the create again.
    expect(sizes[1]).toBeLessThan(500);
  });

  it('B53: fails like any create: if the znode exists, below an ephemeral, without permission', async () => {
    await go(zk.create('/a/b', null, { parents: true }));
    expect(await go(settle(zk.create('/a/b', null, { parents: true })))).toMatchObject({ outcome: 'NodeExists refused' });
    await go(zk.create('/e', null, { mode: 'ephemeral' }));
    const below = await go(settle(zk.create('/e/x/y', null, { parents: true })));
    expect(below.outcome).toBe('NoChildrenForEphemerals refused');
    expect(below.error).toMatchObject({ op: 'create', path: '/e/x/y' });
    expect(below.error!.message).toContain('(create /e/x)');
    await expect(go(zk.create('/x/y', null, { parents: 'ephemeral' as never }))).rejects.toThrow(
      'create: parents must be true, false, "persistent" or "container", not "ephemeral"',
    );
    expect((await go(settle(zk.create('/x//y', null, { parents: true })))).outcome).toBe('BadArguments notSent');
    expect(await go(other.exists('/x'))).toBe(null);
  });

  it('B53: succeeds for fifty znodes below the same parents while another client keeps deleting the parents', async () => {
    const creates: Promise<unknown>[] = [];
    const deletes = { stop: false, count: 0 };
    const deleter = (async () => {
      while (!deletes.stop) {
        const results = await Promise.allSettled([other.delete('/a/b/c'), other.delete('/a/b'), other.delete('/a')]);
        deletes.count += results.filter(({ status }) => status === 'fulfilled').length;
      }
    })();
    const clients = [zk, await world.connect(), await world.connect()];
    for (let index = 0; index < 50; index++) {
      const each = clients[index % 3]!;
      creates.push(
        (async () => {
          const { path } = await each.create(`/a/b/c/${index}`, null, { parents: true });
          await each.delete(path);
        })(),
      );
      if (index % 5 === 0) await world.pass(1, 1);
    }
    await go(Promise.all(creates));
    deletes.stop = true;
    await go(deleter);
    expect(deletes.count).toBeGreaterThan(6);
  });

  it('B51, B53: repeats a step whose answer is lost if retry is on, and rejects if it is off', async () => {
    for (const retry of [true, false]) {
      const { backward } = [...world.wire.cnxns].at(0)!;
      const client = await world.connect({ retry });
      const cnxn = world.cnxn;
      // The create is answered with NoNode, and the answer to the check of the parents is lost.
      cnxn.backward.resetAfter(cnxn.backward.deliveredBytes + 25);
      const { outcome } = await go(settle(client.create(`/r${retry}/x/y`, null, { parents: true })));
      expect(outcome).toBe(retry ? 'done' : 'ConnectionLoss unknown');
      expect(backward.to.isClosed).toBe(false);
    }
  });
});

describe('ensurePath', () => {
  it('B53: creates a path, and resolves if it exists', async () => {
    await go(zk.ensurePath('/a/b/c'));
    await go(zk.ensurePath('/a/b/c'));
    await go(zk.ensurePath('/'));
    expect(await go(zk.getAllChildrenNumber('/a'))).toBe(2);
    await go(zk.ensurePath('/k', { mode: 'container' }));
    const { message } = (await go(settle(zk.ensurePath('/a//b')))).error!;
    expect(message).toMatch(/^KeeperErrorCode = BadArguments for \/a\/\/b/);
  });

  it('B53: creates a missing chroot too', async () => {
    const tenant = await world.connect({}, '/tenants/42');
    expect((await go(settle(tenant.create('/x')))).outcome).toBe('NoNode refused');
    await go(tenant.create('/x/y', null, { parents: true }));
    expect(await childrenOf('/tenants/42')).toEqual(['x']);
    const next = zk.chroot('/tenants/43');
    await go(next.ensurePath('/'));
    expect(await childrenOf('/tenants')).toEqual(['42', '43']);
    // Errors contain the paths of the view.
    await go(zk.create('/tenants/44', null, { mode: 'ephemeral' }));
    const refused = await go(settle(zk.chroot('/tenants/44').ensurePath('/x/y')));
    expect(refused.error).toMatchObject({ code: 'NoChildrenForEphemerals', path: '/x/y', reason: 'create /x' });
  });

  it('B53: applies its signal and its time-out to the whole call', async () => {
    const { backward } = [...world.wire.cnxns][0]!;
    backward.cut();
    const late = settle(zk.ensurePath('/a/b', { timeoutMs: 300 }));
    const started = world.clock.now().elapsedMs;
    expect((await go(late)).outcome).toBe('RequestTimeout unknown');
    expect(world.clock.now().elapsedMs - started).toBeLessThan(400);
    const reason = new Error('never mind');
    await expect(zk.ensurePath('/a/b', { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    backward.heal();
    await go(zk.multi([op.create('/z')]));
  });
});
