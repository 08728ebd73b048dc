import { type Client, connect } from '@tskeeper/client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PersistentNode, Sessions, SharedValue, textCodec } from '../../src/index.ts';
import { expire, forgetful } from '../support/faults.ts';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

const path = '/services/a';
const text = async (each = path): Promise<string> => new TextDecoder().decode((await t.until(t.zk.getData(each))).data ?? undefined);
const start = (): Promise<Sessions> => t.until(Sessions.start((signal) => connect('server:2181', t.world.options({ signal }))));

describe('a persistent node', () => {
  it('B23: is created, watched, and created again when it is deleted, with as many requests each time', async () => {
    const { zk, lines } = await t.recorded();
    const node = new PersistentNode(zk, path, 'here');
    expect(await t.until(node.ready())).toBe(path);
    await t.settle();
    expect(lines).toEqual([
      'create /services/a ephemeral',
      'exists /services',
      'createContainer /services container',
      'create /services/a ephemeral',
      'exists /services/a watch',
    ]);
    const states: string[] = [];
    node.onStateChange((state) => states.push(state));
    lines.length = 0;
    await t.until(t.zk.delete(path));
    await t.settle();
    expect(lines).toEqual([
      'exists /services/a watch',
      'removeWatches /services/a',
      'create /services/a ephemeral',
      'exists /services/a watch',
    ]);
    expect(states).toEqual(['absent', 'present']);
    expect((await t.until(t.zk.exists(path)))!.ephemeralOwner).toBe(zk.sessionId);
    await t.until(node.close());
    expect(await t.until(t.zk.exists(path))).toBe(null);
    expect(node.signal.aborted).toBe(false);
  });

  it('B23: is created again in the next session, with the data that were set last', async () => {
    const sessions = await start();
    const node = new PersistentNode(sessions, path, 'one');
    await t.until(node.ready());
    await t.until(node.setData('two'));
    const first = sessions.client;
    await expire(t, first);
    await t.world.untilSo(() => node.state === 'present');
    expect(sessions.client).not.toBe(first);
    expect((await t.until(t.zk.exists(path)))!.ephemeralOwner).toBe(sessions.client.sessionId);
    expect(await text()).toBe('two');
    await t.until(sessions.close());
    expect(node.signal.reason).toMatchObject({ code: 'Closed' });
    expect(node.state).toBe('closed');
    await expect(node.ready()).rejects.toMatchObject({ code: 'Closed' });
    await expect(node.setData('three')).rejects.toMatchObject({ code: 'Closed' });
  });

  it('B23: ends when the session of its client ends', async () => {
    const zk = await t.client();
    const node = new PersistentNode(zk, path);
    await t.until(node.ready());
    await expire(t, zk);
    await t.settle();
    expect(node.state).toBe('closed');
    expect(node.signal.reason).toMatchObject({ name: 'RecipeError', code: 'Lost', message: 'the session is over: expired' });
    await t.until(node.close());
  });

  it('is suspended without a connection, and present after a reconnect', async () => {
    const zk = await t.client();
    const node = new PersistentNode(zk, path);
    await t.until(node.ready());
    const states: string[] = [];
    node.onStateChange((state) => states.push(state));
    t.world.break();
    await t.pass(2000);
    expect(states).toEqual(['suspended', 'present']);
  });

  it('B23: waits until a closed one of the same name is done, which would take its znode for its own', async () => {
    const { zk, lose } = await forgetful(t);
    const shared = new SharedValue(t.zk, path, textCodec);
    const seen: string[] = [];
    const look = (async () => {
      for await (const { current } of shared.changes()) if (current !== undefined) seen.push(current.value);
    })();
    lose('create2');
    const before = new PersistentNode(zk, path, 'before');
    await t.world.untilSo(() => zk.state === 'suspended');
    await t.until(before.close());
    const node = new PersistentNode(zk, path, 'now');
    await t.until(node.ready());
    await t.pass(1000);
    expect(seen).toEqual(['before', 'now']);
    await shared.close();
    await look;
  });

  it("B23: waits until another session's znode at its path is deleted, or takes the znode over", async () => {
    const other = await t.client();
    await t.until(other.create(path, 'the other', { mode: 'ephemeral', parents: true }));
    const zk = await t.client();
    const patient = new PersistentNode(zk, path, 'patient');
    await t.pass(3000);
    expect(patient.state).toBe('absent');
    await t.until(other.delete(path));
    await t.until(patient.ready());
    expect(await text()).toBe('patient');
    const bold = new PersistentNode(other, path, 'bold', { takeOver: true });
    await t.until(bold.ready());
    expect(await text()).toBe('bold');
    await t.settle();
    expect(patient.state).toBe('absent');
    await t.until(patient.close());
    expect(await text()).toBe('bold');
  });

  it('does not take a znode for its own that another client has created in its place', async () => {
    const node = new PersistentNode(await t.client(), path, 'mine');
    await t.until(node.ready());
    const other = await t.client();
    const replaced = Promise.all([other.delete(path), other.create(path, 'theirs')]);
    await t.until(replaced);
    await t.settle();
    expect(node.state).toBe('absent');
    await t.until(node.close());
    expect(await text()).toBe('theirs');
  });

  it.each([0, 1])(
    'B23: reports written data when its own znode has them, not one that was created in its place: at version %i',
    async (version) => {
      const zk = await t.client();
      const node = new PersistentNode(zk, path, '0');
      await t.until(node.ready());
      for (let count = 0; count < version; count++) await t.until(node.setData(`${count + 1}`));
      const other = await t.client();
      const replaced = Promise.all([other.delete(path), other.create(path, 'theirs')]);
      let isWritten = false;
      const writing = node.setData('mine').then(() => (isWritten = true));
      await t.until(replaced);
      await t.settle();
      expect(isWritten).toBe(false);
      // A write cannot distinguish two znodes with the same version.
      if (version > 0) expect(await text()).toBe('theirs');
      await t.until(other.delete(path));
      await t.until(writing);
      expect(await text()).toBe('mine');
      expect((await t.until(t.zk.exists(path)))!.ephemeralOwner).toBe(zk.sessionId);
    },
  );

  it('B23: writes its data although another client has written meanwhile', async () => {
    const node = new PersistentNode(await t.client(), path, '0');
    await t.until(node.ready());
    for (const data of ['1', '2']) {
      await t.until(t.zk.setData(path, 'by hand'));
      await t.until(node.setData(data));
      expect(await text()).toBe(data);
    }
  });

  it('B23, C1-3: exists once in every mode when the reply to its creation is lost, and is deleted when it is closed meanwhile', async () => {
    for (const mode of ['ephemeral', 'ephemeralSequential', 'persistent'] as const) {
      const { zk, lose } = await forgetful(t);
      await t.until(t.zk.ensurePath(`/${mode}`));
      lose('create2');
      const node = new PersistentNode(zk, `/${mode}/a`, 'x', { mode });
      await t.until(node.ready());
      expect(await t.childrenOf(`/${mode}`)).toEqual([node.path.slice(mode.length + 2)]);
      await t.until(node.close());
      expect(await t.childrenOf(`/${mode}`)).toEqual([]);
      lose('create2');
      const unwanted = new PersistentNode(zk, `/${mode}/b`, 'x', { mode });
      await t.settle();
      expect(await t.childrenOf(`/${mode}`)).toHaveLength(1);
      await t.until(unwanted.close());
      await t.pass(2000);
      expect(await t.childrenOf(`/${mode}`)).toEqual([]);
    }
  });

  it('has the data that were set last, though replies are lost and it is deleted meanwhile', async () => {
    const { zk, lose } = await forgetful(t);
    const node = new PersistentNode(zk, path, '0');
    const early = node.setData('1');
    await t.until(early);
    expect(await text()).toBe('1');
    lose('setData');
    const both = [node.setData('2'), node.setData('3')];
    await t.until(Promise.all(both));
    expect(await text()).toBe('3');
    await t.until(t.zk.delete(path));
    await t.until(node.setData('4'));
    expect(await text()).toBe('4');
    expect(node.data).toBe('4');
  });

  it('CURATOR-53, CURATOR-97: exists after the reconnect when it was started or deleted without a connection', async () => {
    const zk = await t.client();
    const cut = async () => {
      t.world.wire.name('server', []);
      for (const cnxn of [...t.world.wire.cnxns].filter(({ dialer }) => dialer.address === '10.1.0.2')) t.world.break(cnxn);
      await t.settle();
    };
    const mend = () => t.world.wire.name('server', [t.world.address]);
    await cut();
    expect(zk.state).toBe('suspended');
    const node = new PersistentNode(zk, path);
    await t.settle();
    mend();
    await t.until(node.ready());
    await cut();
    await t.until(t.zk.delete(path));
    mend();
    await t.world.untilSo(() => node.state === 'present');
    await t.pass(100);
    expect((await t.until(t.zk.exists(path)))!.ephemeralOwner).toBe(zk.sessionId);
  });

  it('CURATOR-190, CURATOR-258, CURATOR-483: is created again under a name with one guid, also when it was written to before it was deleted', async () => {
    const sessions = await start();
    const plain = new PersistentNode(sessions, '/p/plain');
    const guarded = new PersistentNode(sessions, '/p/x', null, { protection: true });
    const numbered = new PersistentNode(sessions, '/p/n-', null, { mode: 'ephemeralSequential' });
    const nodes = [plain, guarded, numbered];
    const areThere = () => t.world.untilSo(() => nodes.every(({ state }) => state === 'present'));
    const expected = [/^plain$/, /^_c_[-\da-f]{36}-x$/, /^_c_[-\da-f]{36}-n-\d{10}$/];
    await areThere();
    for (const { path: each } of nodes) {
      await t.until(t.zk.setData(each, 'theirs'));
      await t.settle();
      await t.until(t.zk.delete(each));
      await t.settle();
    }
    await expire(t, sessions.client);
    await areThere();
    await t.settle();
    const names = await t.childrenOf('/p');
    expect(names).toHaveLength(3);
    for (const each of expected) expect(names.filter((name) => each.test(name))).toHaveLength(1);
    await t.until(sessions.close());
  });

  it('writes its initial data again when they are set again, also text and no data', async () => {
    const node = new PersistentNode(await t.client(), path, 'one');
    await t.until(node.ready());
    for (const data of ['two', 'one', null, 'one']) {
      await t.until(node.setData(data));
      expect(await text()).toBe(data ?? '');
    }
    await t.until(node.close());
  });

  it.each(['persistent', 'persistentWithTtl'] as const)(
    'B23: is deleted in the next session when it is %s and closed while its session ends',
    async (mode) => {
      const sessions = await start();
      const options = { mode, ttlMs: mode === 'persistent' ? undefined : 600_000 };
      const node = new PersistentNode(sessions, path, 'x', options);
      await t.until(node.ready());
      const { client } = sessions;
      t.world.wire.name('server', []);
      t.world.break();
      await t.settle();
      await t.until(node.close());
      t.world.wire.name('server', [t.world.address]);
      await expire(t, client);
      await t.world.untilSo(() => sessions.client !== client);
      await t.pass(500);
      expect(await t.until(t.zk.exists(path))).toBe(null);
      await t.until(sessions.close());
    },
  );

  it('B23: is deleted in the next session when it is persistent and closed between two, and a later one creates it after that', async () => {
    let admit!: () => void;
    const admitted = new Promise<void>((resolve) => (admit = resolve));
    let isFirst = true;
    const sessions = await t.until(
      Sessions.start(async (signal) => {
        if (!isFirst) await admitted;
        isFirst = false;
        return await connect('server:2181', t.world.options({ signal }));
      }),
    );
    const node = new PersistentNode(sessions, path, 'x', { mode: 'persistent' });
    await t.until(node.ready());
    await expire(t, sessions.client);
    await t.until(node.close());
    const next = new PersistentNode(sessions, path, 'y', { mode: 'persistent' });
    const states: string[] = [];
    next.onStateChange((state) => states.push(state));
    admit();
    await t.until(next.ready());
    await t.pass(500);
    expect(states).toEqual(['present']);
    expect(await text()).toBe('y');
    await t.until(next.close());
    expect(await t.until(t.zk.exists(path))).toBe(null);
    await t.until(sessions.close());
  });

  it.each(['ephemeral', 'persistent'] as const)('is created again by one of two %s nodes when the other is closed', async (mode) => {
    const view = t.zk.chroot('/p');
    const outer = `/p${path}`;
    const one = new PersistentNode(t.zk, outer, 'one', { mode });
    await t.until(one.ready());
    const two = new PersistentNode(view, path, 'two', { mode });
    await t.until(two.ready());
    const states: string[] = [];
    two.onStateChange((state) => states.push(state));
    await t.until(one.close());
    await t.pass(500);
    expect(states).toEqual(['absent', 'present']);
    expect(new TextDecoder().decode((await t.until(view.getData(path))).data)).toBe('two');
    await t.until(two.close());
    expect(await t.until(view.exists(path))).toBe(null);
  });

  it('reports its states to each listener in their order, also when one of them closes it', async () => {
    const node = new PersistentNode(await t.client(), path);
    const one: string[] = [];
    const two: string[] = [];
    node.onStateChange((state) => {
      one.push(state);
      if (state === 'present') void node.close();
    });
    node.onStateChange((state) => two.push(state));
    await t.pass(100);
    expect([one, two]).toEqual([
      ['present', 'closed'],
      ['present', 'closed'],
    ]);
  });

  it('sets data within the given time, also after a change that waits forever, and the last data win', async () => {
    const { zk } = await t.recorded();
    const node = new PersistentNode(zk, path, 'first');
    await t.until(node.ready());
    t.world.wire.name('server', []);
    t.world.break(t.world.cnxn);
    const patient = node.setData('second');
    const hurried = failureOf(node.setData('third', { timeoutMs: 100 }));
    expect(await t.until(hurried, 500)).toMatchObject({ code: 'TimedOut' });
    const last = node.setData('fourth');
    t.world.wire.name('server', [t.world.address]);
    await t.until(Promise.all([patient, last]));
    expect(await text()).toBe('fourth');
  });

  it('B23: outlives its program by its TTL, and writes only to its child', async () => {
    const zk = await t.client();
    const node = new PersistentNode(zk, '/t/a', 'x', { mode: 'persistentWithTtl', ttlMs: 60_000 });
    await t.until(node.ready());
    await t.world.pass(600_000, 1000);
    expect(await t.childrenOf('/t/a')).toEqual(['touch']);
    expect(await t.until(t.zk.exists('/t/a'))).toMatchObject({ version: 0 });
    expect(node.state).toBe('present');
    const other = new PersistentNode(t.zk, '/t/b', 'x', { mode: 'persistentWithTtl', ttlMs: 60_000 });
    await t.until(other.ready());
    await t.world.pass(40_000, 1000);
    await t.until(other.close());
    expect(await t.childrenOf('/t')).toEqual(['a']);
    await expire(t, zk);
    expect(await t.childrenOf('/t')).toEqual(['a']);
    await t.world.pass(300_000, 1000);
    expect(await t.until(t.zk.exists('/t/a'))).toBe(null);
  });

  it('continues with a znode that outlived another program', async () => {
    await t.until(t.zk.create('/b', 'old'));
    const node = new PersistentNode(t.zk, '/b', 'new', { mode: 'persistent' });
    await t.until(node.ready());
    expect(await text('/b')).toBe('new');
    await t.until(node.close());
    expect(await t.until(t.zk.exists('/b'))).toBe(null);
  });

  it('reports why it cannot be kept', async () => {
    await t.until(t.zk.create('/e', null, { mode: 'ephemeral' }));
    const below = new PersistentNode(t.zk, '/e/a');
    expect(await t.until(failureOf(below.ready()))).toMatchObject({ code: 'NoChildrenForEphemerals' });
    expect(below.signal.reason).toMatchObject({ code: 'NoChildrenForEphemerals' });
    expect(() => new PersistentNode(t.zk, '/a', null, { ttlMs: 1000 })).toThrow('ttlMs and the mode persistentWithTtl need each other');
    expect(() => new PersistentNode(t.zk, '/a', null, { mode: 'persistent', protection: true })).toThrow('leave protection out');
    const waiting = new PersistentNode(await t.client(), '/e', null);
    expect(await t.until(failureOf(waiting.ready({ timeoutMs: 500 })))).toMatchObject({ code: 'TimedOut' });
    await t.until(waiting.close());
  });

  it('keeps the reason of its end, though a listener closes it', async () => {
    await t.until(t.zk.create('/e', null, { mode: 'ephemeral' }));
    const node = new PersistentNode(t.zk, '/e/a');
    node.onStateChange((state) => {
      if (state === 'closed') void node.close();
    });
    expect(await t.until(failureOf(node.ready()))).toMatchObject({ code: 'NoChildrenForEphemerals' });
    expect(await failureOf(node.ready())).toMatchObject({ code: 'NoChildrenForEphemerals' });
  });

  it('closes at once when no server can be reached, and is deleted in the background', async () => {
    const zk: Client = await t.client();
    const node = new PersistentNode(zk, path);
    await t.until(node.ready());
    const { address } = t.world;
    t.world.wire.name('server', []);
    t.world.break();
    await t.settle();
    const closing = node.close();
    await t.settle();
    await closing;
    t.world.wire.name('server', [address]);
    await t.pass(3000);
    expect(zk.endReason).toBe(undefined);
    expect(await t.until(t.zk.exists(path))).toBe(null);
  });
});
