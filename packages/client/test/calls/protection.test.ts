/** Protected creates: whatever is lost, there is one znode, or none and a correct error. */
import { SeededRandom } from '@tskeeper/runtime';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { breadth, isFull } from '../../../../test/breadth.ts';
import { newGuid } from '../../src/calls/protection.ts';
import type { Client } from '../../src/index.ts';
import { ClientWorld } from '../support/client-world.ts';
import { type Cut, cutting } from '../support/cut-transport.ts';
import { settle } from '../support/outcomes.ts';

let world: ClientWorld;
let other: Client;

beforeEach(async () => {
  world = await ClientWorld.start();
  other = await world.connect();
  await world.until(other.create('/locks'));
});

afterEach(async () => {
  await world.close();
});

const guid = '0a1b2c3d-0000-4000-8000-000000000001';
const childrenOf = async (path: string): Promise<readonly string[]> => (await world.until(other.getChildren(path))).children;

/** All paths ever created below a path. */
async function creationsBelow(path: string): Promise<string[]> {
  const created: string[] = [];
  await world.until(
    other.addWatch(path, { mode: 'persistentRecursive', watch: (event) => event.type === 'NodeCreated' && created.push(event.path) }),
  );
  return created;
}

describe('a protected create', () => {
  it('B52: names its znode as Curator does, with a guid from the injected random numbers', async () => {
    const zk = await world.connect();
    const { path, stat } = await world.until(zk.create('/locks/lock-', 'x', { mode: 'ephemeralSequential', protection: true }));
    expect(path).toMatch(/^\/locks\/_c_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}-lock-0000000000$/);
    expect(stat.ephemeralOwner).toBe(zk.sessionId);
    expect(newGuid(new SeededRandom(7))).toBe(newGuid(new SeededRandom(7)));
    expect(newGuid(new SeededRandom(7))).not.toBe(newGuid(new SeededRandom(8)));
    expect((await world.until(zk.create('/top', null, { protection: guid }))).path).toBe(`/_c_${guid}-top`);
  });

  it.each(['persistent', 'ephemeral', 'persistentSequential', 'ephemeralSequential', 'container'] as const)(
    'B52: survives a cut after each byte in both directions: %s',
    async (mode) => {
      const cuts: Cut[] = [];
      // A connection carries its handshake, the create or the search; each is shorter than this.
      for (let bytes = 0; bytes <= 330; bytes += breadth(41, mode === 'ephemeralSequential' ? 1 : 7)) {
        cuts.push({ of: 'answers', afterBytes: bytes }, { of: 'requests', afterBytes: bytes });
      }
      for (const [index, cut] of cuts.entries()) {
        await world.until(other.create(`/locks/${index}`));
        const created = await creationsBelow(`/locks/${index}`);
        const plan: Cut[] = [];
        const zk = await world.connect(cutting(world, world.options(), plan));
        // Cuts this connection, counted from here, and then the next one, on which the client
        // searches.
        const { forward, backward } = world.cnxn;
        if (cut.of === 'answers') backward.resetAfter(backward.deliveredBytes + cut.afterBytes);
        else forward.resetAfter(forward.deliveredBytes + cut.afterBytes);
        plan.push(cut);
        const { path } = await world.until(zk.create(`/locks/${index}/x-`, 'x', { mode, protection: true }));
        expect(await childrenOf(`/locks/${index}`), JSON.stringify(cut)).toEqual([path.slice(path.lastIndexOf('/') + 1)]);
        expect(created, JSON.stringify(cut)).toEqual([path]);
        await world.until(zk.close());
        await world.until(other.removeWatches(`/locks/${index}`));
      }
    },
  );

  it('B52: finds its znode after a lost answer and returns its Stat and its number', async () => {
    await world.until(other.create('/locks/a-', null, { mode: 'persistentSequential' }));
    const zk = await world.connect();
    const { backward } = world.cnxn;
    backward.cut();
    const creating = zk.create('/locks/lock-', 'x', { mode: 'ephemeralSequential', protection: true });
    await world.settle();
    world.break();
    const { path, stat } = await world.until(creating);
    expect(path).toMatch(/-lock-0000000001$/);
    expect(stat).toMatchObject({ ephemeralOwner: zk.sessionId, version: 0, dataLength: 1 });
  });

  it('B52: deletes its znode in the background after its time-out or signal', async () => {
    const zk = await world.connect();
    const { backward } = world.cnxn;
    backward.cut();
    const late = settle(zk.create('/locks/lock-', null, { mode: 'persistentSequential', protection: true, timeoutMs: 500 }));
    const controller = new AbortController();
    const aborted = zk.create('/locks/lock-', null, { mode: 'persistentSequential', protection: true, signal: controller.signal });
    const reason = new Error('never mind');
    await world.settle();
    controller.abort(reason);
    await expect(aborted).rejects.toBe(reason);
    const { outcome, error } = await world.until(late);
    expect(outcome).toBe('RequestTimeout unknown');
    expect(error!.message).toMatch(/if it was created, it will be deleted in the background\)$/);
    expect(error).toMatchObject({ op: 'create', path: '/locks/lock-' });
    expect(await childrenOf('/locks')).toHaveLength(2);
    backward.heal();
    await world.pass(1000);
    expect(await childrenOf('/locks')).toEqual([]);
  });

  it('B52: rejects with an unknown outcome if the session ends', async () => {
    const zk = await world.connect({ sessionTimeoutMs: 2000 });
    const { backward } = world.cnxn;
    backward.cut();
    const creating = settle(zk.create('/locks/x', null, { mode: 'ephemeral', protection: true }));
    await world.settle();
    const { dialer, listener } = world.cnxn;
    world.wire.cut(dialer.address, listener.address);
    await world.pass(6000);
    world.wire.heal(dialer.address, listener.address);
    const { outcome } = await world.until(creating);
    expect(outcome).toBe('SessionExpired unknown');
    expect(await childrenOf('/locks')).toEqual([]);
  });

  it('B52: with a given guid continues on another session, but does not accept an ephemeral of a dead session', async () => {
    const first = await world.connect();
    const kept = await world.until(first.create('/locks/p', null, { protection: guid }));
    await world.until(first.create('/locks/sub', null));
    await world.until(first.create('/locks/sub/e', null, { mode: 'ephemeral', protection: guid }));
    const second = await world.connect();
    expect(await world.until(second.create('/locks/p', null, { protection: guid }))).toEqual(kept);
    const { stat } = await world.until(second.create('/locks/sub/e', null, { mode: 'ephemeral', protection: guid }));
    expect(stat.ephemeralOwner).toBe(second.sessionId);
    expect(await childrenOf('/locks/sub')).toEqual([`_c_${guid}-e`]);
    await world.until(first.close());
    expect(await childrenOf('/locks/sub')).toEqual([`_c_${guid}-e`]);
    // The same session finds its own znode.
    const again = await world.until(second.create('/locks/sub/e', null, { mode: 'ephemeral', protection: guid }));
    expect(again.stat.czxid).toBe(stat.czxid);
  });

  it('B52: fails like any create, and rejects an invalid guid before it is sent', async () => {
    const zk = await world.connect();
    const missing = await world.until(settle(zk.create('/missing/x', null, { protection: true })));
    expect(missing.outcome).toBe('NoNode refused');
    expect(missing.error).toMatchObject({ path: '/missing/x', op: 'create' });
    const strange = await world.until(settle(zk.create('/locks/x', null, { protection: 'mine' })));
    expect(strange.error!.message).toContain('protection must be true or a guid of 36 characters, 8-4-4-4-12 hex digits, not "mine"');
    const both = await world.until(settle(zk.create('/locks/x', null, { protection: true, idempotent: true })));
    expect(both.outcome).toBe('BadArguments notSent');
  });

  it('B52: fails at once, like any call, if it could not be sent', async () => {
    const zk = await world.connect();
    world.kill();
    await world.untilSo(() => zk.state === 'suspended');
    const { outcome, error } = await world.until(settle(zk.create('/locks/x', null, { protection: true })));
    expect(outcome).toBe('ConnectionLoss notSent');
    expect(error).toMatchObject({ op: 'create', path: '/locks/x', retryable: true });
    await world.boot();
  });

  it('B52, B53: creates its parents too', async () => {
    const zk = await world.connect();
    const { path } = await world.until(zk.create('/deep/er/x-', null, { mode: 'ephemeralSequential', protection: true, parents: true }));
    expect(await childrenOf('/deep/er')).toEqual([path.slice('/deep/er/'.length)]);
  });
});

describe('B52: a protected create in random runs with cuts, crashes, partitions, time-outs and aborts', () => {
  it('leaves exactly one znode, or none and a correct error, and never a second', async () => {
    const seen = new Map<string, number>();
    for (let seed = 1; seed <= breadth(20, 300); seed++) {
      const ending = await story(seed);
      seen.set(ending, (seen.get(ending) ?? 0) + 1);
    }
    // The runs must not all end alike, or they would prove little.
    expect(seen.size).toBeGreaterThan(1);
    if (!isFull) return;
    for (const ending of ['done', 'RequestTimeout unknown', 'SessionExpired unknown', 'aborted']) {
      expect(seen.get(ending), `${ending} of ${JSON.stringify([...seen])}`).toBeGreaterThan(3);
    }
    expect(seen.get('done')).toBeGreaterThan(100);
  });

  async function story(seed: number): Promise<string> {
    const random = new SeededRandom(seed);
    const parent = `/locks/${seed}`;
    await world.until(other.create(parent));
    const created = await creationsBelow(parent);
    const plan: Cut[] = [];
    const isShort = random.below(3) === 0;
    const zk = await world.connect(cutting(world, world.options({ sessionTimeoutMs: isShort ? 2000 : 10_000 }), plan));
    const side = world.cnxn.dialer.address;
    const server = world.cnxn.listener.address;
    for (let cuts = random.below(5); cuts > 0; cuts--) {
      plan.push({ of: random.below(2) === 0 ? 'answers' : 'requests', afterBytes: random.below(400) });
    }
    const { forward, backward } = world.cnxn;
    const harm = random.below(6);
    if (harm < 3) backward.resetAfter(backward.deliveredBytes + random.below(170));
    else if (harm === 3) forward.resetAfter(forward.deliveredBytes + random.below(120));
    else if (harm === 4) backward.cut();
    const mode = (['persistent', 'ephemeral', 'persistentSequential', 'ephemeralSequential'] as const)[random.below(4)]!;
    const controller = new AbortController();
    const creating = zk.create(`${parent}/x-`, 'x', {
      mode,
      protection: true,
      signal: controller.signal,
      timeoutMs: random.below(3) === 0 ? 1 + random.below(3000) : undefined,
      retry: random.below(2) === 0,
    });
    const isEphemeral = mode.startsWith('ephemeral');
    const ending = settle(creating).catch(() => ({ outcome: 'aborted', result: undefined }));
    const steps = random.below(6);
    for (let step = 0; step < steps; step++) {
      const what = random.below(10);
      if (what === 0) controller.abort(new Error('never mind'));
      else if (what === 1) world.wire.cut(side, server);
      else if (what === 2) world.wire.heal(side, server);
      await world.pass(random.below(2500), 500);
    }
    world.wire.heal(side, server);
    const { outcome, result } = await world.until(ending);
    // Time for background work, and for the expiry of dead sessions.
    await world.pass(4000, 500);
    await world.untilSo(() => zk.state === 'connected' || zk.endReason !== undefined);
    await world.pass(2000, 500);
    const isOver = zk.endReason !== undefined;
    const children = await childrenOf(parent);
    const received = `seed ${seed}, ${mode}: ${outcome}, created ${created.join()}, there is ${children.join()}`;
    expect(created.length, received).toBeLessThanOrEqual(1);
    if (outcome === 'done') {
      expect(created, received).toEqual([result!.path]);
      expect(children, received).toHaveLength(isOver && isEphemeral ? 0 : 1);
    } else if (outcome.endsWith('notSent') || outcome.endsWith('refused')) {
      expect(created, received).toEqual([]);
    } else if (!isOver || isEphemeral) {
      expect(children, received).toEqual([]);
    }
    await world.until(zk.close());
    await world.until(other.removeWatches(parent));
    return outcome;
  }
});
