/**
 * Each request of a client that keeps a znode, or reads those of others, is lost once, and each
 * reply, and the connection with it: the client continues, and leaves the same behind as without a
 * loss.
 */
import type { Client } from '@tskeeper/client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LeaderLatch, Election, Group, PersistentNode, ServiceDiscovery, SetPartitioner } from '../../src/index.ts';
import { type Play, shapeOf, withEachLoss } from '../support/each-loss.ts';
import { RecipeWorld } from '../support/recipe-world.ts';

let t: RecipeWorld;
let other: Client;

beforeEach(async () => {
  // Containers stay, however long a story takes.
  t = await RecipeWorld.start({ containerCheckIntervalMs: 0 });
  other = await t.client();
});

afterEach(async () => {
  await t.close();
});

const utf8 = new TextDecoder();
const moment = () => new Promise<void>((resolve) => t.world.clock.after(900, resolve));

/** Created, written to, deleted by another client, created again, and closed. */
async function keeping(node: PersistentNode, path: string): Promise<unknown> {
  // The times of the heartbeats of a znode with a TTL do not matter here.
  const shape = async () => (await shapeOf(t, path)).filter((each) => !each.endsWith('/touch'));
  await node.ready();
  const first = await shape();
  await node.setData('second');
  const { data } = await t.zk.getData(node.path, { linearizable: true });
  await t.zk.deleteRecursive(node.path);
  await moment();
  await node.ready();
  const again = await shape();
  const { data: dataAgain } = await t.zk.getData(node.path, { linearizable: true });
  await node.close();
  await moment();
  expect(node.signal.aborted).toBe(false);
  return [first, utf8.decode(data), again, utf8.decode(dataAgain), await shape()];
}

const nodes: Record<string, Play> = {
  ephemeral: (zk, path) => keeping(new PersistentNode(zk, `${path}/a`, 'first'), path),
  'ephemeral, with a guid': (zk, path) => keeping(new PersistentNode(zk, `${path}/a`, 'first', { protection: true }), path),
  sequential: (zk, path) => keeping(new PersistentNode(zk, `${path}/a-`, 'first', { mode: 'ephemeralSequential' }), path),
  persistent: (zk, path) => keeping(new PersistentNode(zk, `${path}/a`, 'first', { mode: 'persistent' }), path),
  'with a TTL': (zk, path) => keeping(new PersistentNode(zk, `${path}/a`, 'first', { mode: 'persistentWithTtl', ttlMs: 200 }), path),
  'taken over': async (zk, path) => {
    await other.create(`${path}/a`, 'of another', { mode: 'ephemeral', parents: 'container' });
    return await keeping(new PersistentNode(zk, `${path}/a`, 'first', { takeOver: true }), path);
  },
};

describe('the loss of any one request or reply', () => {
  it.each(Object.keys(nodes))('C1-3, B23: does not affect a persistent node: %s', async (name) => {
    expect(await withEachLoss(t, nodes[name]!)).toBeGreaterThan(2 * 5);
  });

  it.each(['plain', 'party'] as const)('C1-3, C1-6: does not affect a member of a %s group', async (naming) => {
    const runs = await withEachLoss(t, async (zk, path) => {
      const [own, others] = [new Group(zk, path, { naming }), new Group(other, path, { naming })];
      const bob = await others.join('bob');
      const alice = await own.join('alice');
      const shown: string[] = [];
      const end = new AbortController();
      const observing = (async () => {
        for await (const { members, isSynced } of own.observe({ signal: end.signal }))
          if (isSynced) shown.push(members.map((each) => each.name).join());
      })().catch(() => undefined);
      while (shown.at(-1) !== 'alice,bob') await moment();
      const both = [await own.members(), await others.members()].map((members) => members.map((each) => each.name).join());
      await bob.close();
      await moment();
      await alice.close();
      while (shown.at(-1) !== '') await moment();
      end.abort();
      await observing;
      return [both, await others.members()];
    });
    expect(runs).toBeGreaterThan(2 * 8);
  });

  it('C1-3: does not affect an instance of a service', async () => {
    const runs = await withEachLoss(t, async (zk, path) => {
      const [own, others] = [new ServiceDiscovery(zk, path), new ServiceDiscovery(other, path)];
      const registration = await own.register({ name: 'api', address: '10.0.0.1', port: 80 });
      await using provider = own.provider('api');
      await provider.ready();
      const chosen = provider.choose()?.id;
      await registration.update({ enabled: false });
      const found = (await others.instances('api')).map(({ id, enabled }) => `${id} ${enabled}`);
      await own.update('api', '10.0.0.1:80', { enabled: true });
      const foundBySelf = (await own.instances('api')).map(({ id, enabled }) => `${id} ${enabled}`);
      await registration.unregister();
      return [chosen, found, foundBySelf, await own.names()];
    });
    expect(runs).toBeGreaterThan(2 * 10);
  });

  it('C1-3, B25: does not affect a share of a set', async () => {
    const runs = await withEachLoss(t, async (zk, path) => {
      const share = (each: Client, name: string) =>
        new SetPartitioner(each, path, name, ['q1', 'q2'], () => undefined, { timeBoundaryMs: 50 });
      const [alice, bob] = [share(zk, 'alice'), share(other, 'bob')];
      await Promise.all([alice.ready(), bob.ready()]);
      const owned = [alice, bob].map((each) => each.owned.map(({ item }) => item).toSorted());
      await bob.close();
      while (alice.owned.length < 2) await moment();
      const all = alice.owned.map(({ item }) => item).toSorted();
      await alice.close();
      return [owned, all];
    });
    expect(runs).toBeGreaterThan(2 * 10);
  });

  it('C1-3, B16: does not affect a candidate that leads, acknowledges and resigns', async () => {
    const runs = await withEachLoss(t, async (zk, path) => {
      const election = new Election(zk, path, { data: 'own' });
      const leadership = await election.lead();
      await leadership.acknowledge();
      const seen = await new Election(other, path).leader();
      const next = new LeaderLatch(other, path);
      await leadership.resign();
      await next.waitForLeadership();
      const rest = (await election.contenders()).length;
      await next.close();
      return [utf8.decode(seen!.data), seen!.acknowledged, rest];
    });
    expect(runs).toBeGreaterThan(2 * 5);
  });
});
