/** Watches, end to end in virtual time: with our server and lost connections. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Client, Transport, WatchedEvent, WatchListener } from '../src/index.ts';
import { ClientWorld } from './support/client-world.ts';
import { describeFrames } from './support/server-frames.ts';

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

interface Heard {
  readonly lines: string[];
  readonly events: WatchedEvent[];
  readonly watch: WatchListener;
}

/** The events of a watch, as `NodeCreated /a`; states as `None SyncConnected`. */
function heard(): Heard {
  const lines: string[] = [];
  const events: WatchedEvent[] = [];
  const watch: WatchListener = (event) => {
    events.push(event);
    lines.push(`${event.type} ${event.path ?? event.state}`);
  };
  return { lines, events, watch };
}

const go = <T>(promise: Promise<T>): Promise<T> => world.until(promise);

/** The first client loses its connection and finds the server again; `happens` runs meanwhile. */
async function whileGone(happens: () => Promise<void>): Promise<void> {
  const { dialer, listener } = [...world.wire.cnxns].find(({ dialer: from }) => from.address === '10.1.0.1')!;
  world.wire.cut(dialer.address, listener.address);
  await world.untilSo(() => zk.state === 'suspended');
  await happens();
  world.wire.heal(dialer.address, listener.address);
  await world.untilSo(() => zk.state === 'connected');
  await world.settle();
}

describe('a watch', () => {
  it('B45: delivers one change of a znode, with its zxid, and no second one', async () => {
    await go(zk.create('/a', '1'));
    const { lines, events, watch } = heard();
    await go(zk.getData('/a', { watch }));
    const { mzxid } = await go(other.setData('/a', '2'));
    await go(other.setData('/a', '3'));
    await world.settle();
    expect(lines).toEqual(['NodeDataChanged /a']);
    expect(events[0]!.zxid).toBe(mzxid);
  });

  it('delivers creates and deletes of children, and of the znode', async () => {
    await go(zk.create('/a'));
    const { lines, watch } = heard();
    await go(zk.getChildren('/a', { watch }));
    await go(zk.exists('/a/b', { watch }));
    await go(other.create('/a/b'));
    await world.settle();
    expect(lines).toEqual(['NodeCreated /a/b', 'NodeChildrenChanged /a']);
    await go(zk.getData('/a/b', { watch }));
    await go(zk.getChildren('/a/b', { watch }));
    await go(other.delete('/a/b'));
    await world.settle();
    expect(lines.slice(2)).toEqual(['NodeDeleted /a/b']);
  });

  it('set twice for one znode with one listener delivers once; two listeners receive one event each', async () => {
    await go(zk.create('/a', '1'));
    const first = heard();
    const second = heard();
    await go(
      Promise.all([
        zk.getData('/a', { watch: first.watch }),
        zk.exists('/a', { watch: first.watch }),
        zk.getData('/a', { watch: second.watch }),
      ]),
    );
    await go(other.setData('/a', '2'));
    await world.settle();
    expect(first.lines).toEqual(['NodeDataChanged /a']);
    expect(second.lines).toEqual(['NodeDataChanged /a']);
  });

  it('is not set by a read that fails', async () => {
    const { lines, watch } = heard();
    await world.until(Promise.allSettled([zk.getData('/a', { watch }), zk.getChildren('/a', { watch })]));
    await go(other.create('/a'));
    await world.settle();
    expect(lines).toEqual([]);
  });

  it('set with true is delivered only to listeners of events, which receive every event', async () => {
    const lines: string[] = [];
    const off = zk.on('event', ({ type, path }) => void lines.push(`${type} ${path}`));
    await go(zk.exists('/a', { watch: true }));
    await go(other.create('/a'));
    await world.settle();
    off();
    await go(zk.exists('/a', { watch: true }));
    await go(other.delete('/a'));
    await world.settle();
    expect(lines).toEqual(['NodeCreated /a']);
  });

  it('is delivered before an answer that shows the change, and after an earlier answer', async () => {
    await go(zk.create('/a', '1'));
    const order: string[] = [];
    await go(zk.getData('/a', { watch: ({ type }) => void order.push(type) }));
    const before = zk.exists('/').then(() => void order.push('before'));
    const write = zk.setData('/a', '2').then(() => void order.push('answer'));
    await go(Promise.all([before, write]));
    expect(order).toEqual(['before', 'NodeDataChanged', 'answer']);
  });

  it('B44: that is persistent delivers every change; a recursive one also changes below', async () => {
    await go(zk.create('/a'));
    const persistent = heard();
    const recursive = heard();
    await go(zk.addWatch('/a', { watch: persistent.watch }));
    await go(zk.addWatch('/', { mode: 'persistentRecursive', watch: recursive.watch }));
    await go(other.create('/a/b'));
    await go(other.create('/a/b/c'));
    await go(other.setData('/a', 'x'));
    await go(other.setData('/a', 'y'));
    await world.settle();
    expect(persistent.lines).toEqual(['NodeChildrenChanged /a', 'NodeDataChanged /a', 'NodeDataChanged /a']);
    expect(recursive.lines).toEqual(['NodeCreated /a/b', 'NodeCreated /a/b/c', 'NodeDataChanged /a', 'NodeDataChanged /a']);
  });

  it('with an unknown mode is rejected with the known modes', async () => {
    const [result] = await Promise.allSettled([zk.addWatch('/a', { mode: 'recursive' as never, watch: true })]);
    expect((result as PromiseRejectedResult).reason).toEqual(
      new TypeError('addWatch: mode must be "persistent" or "persistentRecursive", not "recursive"'),
    );
  });

  it('whose listener throws does not affect others', async () => {
    const thrown: unknown[] = [];
    const note = (error: unknown) => void thrown.push(error);
    process.on('unhandledRejection', note);
    const { lines, watch } = heard();
    await go(
      zk.exists('/a', {
        watch: () => {
          throw new Error('the listener is broken');
        },
      }),
    );
    await go(zk.exists('/a', { watch }));
    await go(other.create('/a'));
    await world.settle();
    process.off('unhandledRejection', note);
    expect(lines).toEqual(['NodeCreated /a']);
    expect(thrown).toMatchObject([{ message: 'the listener is broken' }]);
    expect(zk.state).toBe('connected');
  });
});

describe('after a lost connection', () => {
  it('B43: watches deliver missed changes once', async () => {
    await go(zk.create('/data', '1'));
    await go(zk.create('/gone'));
    await go(zk.create('/parent'));
    await go(zk.create('/same', '1'));
    const watches = { data: heard(), gone: heard(), parent: heard(), born: heard(), same: heard(), unborn: heard() };
    await go(zk.getData('/data', { watch: watches.data.watch }));
    await go(zk.exists('/gone', { watch: watches.gone.watch }));
    await go(zk.getChildren('/parent', { watch: watches.parent.watch }));
    await go(zk.exists('/born', { watch: watches.born.watch }));
    await go(zk.getData('/same', { watch: watches.same.watch }));
    await go(zk.exists('/unborn', { watch: watches.unborn.watch }));
    await whileGone(async () => {
      await go(other.setData('/data', '2'));
      await go(other.delete('/gone'));
      await go(other.create('/parent/child'));
      await go(other.create('/born'));
    });
    const moved = ['None Disconnected', 'None SyncConnected'];
    expect(watches.data.lines).toEqual([...moved, 'NodeDataChanged /data']);
    expect(watches.gone.lines).toEqual([...moved, 'NodeDeleted /gone']);
    expect(watches.parent.lines).toEqual([...moved, 'NodeChildrenChanged /parent']);
    expect(watches.born.lines).toEqual([...moved, 'NodeCreated /born']);
    expect(watches.data.events[2]!.zxid).toBe(undefined);
    await go(other.setData('/data', '3'));
    await go(other.setData('/same', '2'));
    await go(other.create('/unborn'));
    await world.settle();
    expect(watches.data.lines).toHaveLength(3);
    expect(watches.same.lines).toEqual([...moved, 'NodeDataChanged /same']);
    expect(watches.unborn.lines).toEqual([...moved, 'NodeCreated /unborn']);
  });

  it('B43: persistent watches are set again', async () => {
    const persistent = heard();
    const recursive = heard();
    await go(zk.addWatch('/a', { watch: persistent.watch }));
    await go(zk.addWatch('/a', { mode: 'persistentRecursive', watch: recursive.watch }));
    await whileGone(async () => {});
    await go(other.create('/a'));
    await go(other.create('/a/b'));
    await world.settle();
    expect(persistent.lines.slice(2)).toEqual(['NodeCreated /a', 'NodeChildrenChanged /a']);
    expect(recursive.lines.slice(2)).toEqual(['NodeCreated /a', 'NodeCreated /a/b']);
  });

  it('C2-11: ten thousand watches are set again (B43), in pieces below every packet limit', async () => {
    const paths = Array.from({ length: 10_000 }, (_, index) => `/${'x'.repeat(100)}-${index}`);
    let received = 0;
    const watch: WatchListener = ({ type }) => {
      if (type === 'NodeCreated') received++;
    };
    await go(Promise.all(paths.map((path) => zk.exists(path, { watch }))));
    await whileGone(async () => {});
    await go(other.multi(paths.slice(0, 1000).map((path) => ({ op: 'create' as const, path }))));
    await world.settle();
    expect(received).toBe(1000);
  });
});

describe('with a small packet limit', () => {
  it('B43: watches are set again in packets below the limit, each path once', async () => {
    const maxPacketBytes = 2000;
    const options = world.options({ maxPacketBytes });
    const wire = options.transport!;
    const frames: number[] = [];
    const restored: string[] = [];
    const transport: Transport = {
      resolve: (host) => wire.resolve!(host),
      connect(address, sink) {
        const cnxn = wire.connect(address, sink);
        const send = cnxn.send.bind(cnxn);
        let first = true;
        cnxn.send = (bytes) => {
          const sent = Buffer.from(bytes);
          for (let at = 0; at < sent.length; at += 4 + sent.readInt32BE(at)) frames.push(sent.readInt32BE(at));
          for (const line of describeFrames(sent, first)) {
            if (line.startsWith('setWatches')) restored.push(...[...line.matchAll(/"(\/[^"]*)"/g)].map(([, path]) => path!));
          }
          first = false;
          send(bytes);
        };
        return cnxn;
      },
    };
    const small = await world.connect({ ...options, transport });
    const paths = Array.from({ length: 100 }, (_, index) => `/${'x'.repeat(50)}-${index}`);
    const { lines, watch } = heard();
    await go(Promise.all(paths.map((path, index) => (index % 2 === 0 ? small.exists(path, { watch }) : small.addWatch(path, { watch })))));
    world.break();
    await world.untilSo(() => small.state === 'suspended');
    await world.untilSo(() => small.state === 'connected');
    await go(small.sync());
    expect(restored.toSorted()).toEqual(paths.toSorted());
    expect(Math.max(...frames)).toBeLessThanOrEqual(maxPacketBytes);
    await go(other.multi(paths.map((path) => ({ op: 'create' as const, path }))));
    await world.settle();
    expect(lines.filter((line) => line.startsWith('NodeCreated'))).toHaveLength(100);
  });
});

describe('removeWatches', () => {
  it('B44: removes all watches of a path, and each listener receives an event', async () => {
    const first = heard();
    const second = heard();
    await go(zk.create('/a'));
    await go(zk.getData('/a', { watch: first.watch }));
    await go(zk.getChildren('/a', { watch: first.watch }));
    await go(zk.addWatch('/a', { watch: second.watch }));
    await go(zk.removeWatches('/a'));
    await world.settle();
    expect(first.lines).toEqual(['DataWatchRemoved /a', 'ChildWatchRemoved /a']);
    expect(second.lines).toEqual(['PersistentWatchRemoved /a']);
    await go(other.setData('/a', 'x'));
    await world.settle();
    expect(second.lines).toHaveLength(1);
  });

  it('leaves a watch that is set after it, while both are pending', async () => {
    const first = heard();
    const second = heard();
    await go(zk.create('/a'));
    await go(zk.addWatch('/a', { watch: first.watch }));
    await go(Promise.all([zk.removeWatches('/a'), zk.addWatch('/a', { watch: second.watch })]));
    await go(other.setData('/a', 'x'));
    await world.settle();
    expect(first.lines).toEqual(['PersistentWatchRemoved /a']);
    expect(second.lines).toEqual(['NodeDataChanged /a']);
  });

  it('B44: of one listener leaves the watch to earlier pending requests, of every kind', async () => {
    await go(zk.create('/a', '1'));
    const first = heard();
    await go(zk.addWatch('/a', { watch: first.watch }));
    await go(zk.addWatch('/a', { mode: 'persistentRecursive', watch: first.watch }));
    await go(zk.getData('/a', { watch: first.watch }));
    await go(zk.getChildren('/a', { watch: first.watch }));
    await go(zk.exists('/b', { watch: first.watch }));
    const next = [heard(), heard(), heard(), heard(), heard()] as const;
    const setting = [
      zk.addWatch('/a', { watch: next[0].watch }),
      zk.addWatch('/a', { mode: 'persistentRecursive', watch: next[1].watch }),
      zk.getData('/a', { watch: next[2].watch, linearizable: true }),
      zk.getChildren('/a', { watch: next[3].watch }),
      zk.exists('/b', { watch: next[4].watch }),
    ];
    const removals = [zk.removeWatches('/a', { watch: first.watch }), zk.removeWatches('/b', { watch: first.watch })];
    await go(Promise.all([...setting, ...removals]));
    await go(other.setData('/a', '2'));
    await go(other.create('/a/c'));
    await go(other.create('/b'));
    await world.settle();
    expect(next.map(({ lines }) => lines)).toEqual([
      ['NodeDataChanged /a', 'NodeChildrenChanged /a'],
      ['NodeDataChanged /a', 'NodeCreated /a/c'],
      ['NodeDataChanged /a'],
      ['NodeChildrenChanged /a'],
      ['NodeCreated /b'],
    ]);
  });

  it('B44: of one listener asks the server after a request that would have set the watch has failed, or its caller no longer waits', async () => {
    const first = heard();
    await go(zk.exists('/a', { watch: first.watch }));
    const controller = new AbortController();
    const setting = [
      zk.getData('/a', { watch: heard().watch }),
      zk.exists('/a', { watch: heard().watch, signal: controller.signal }),
      zk.exists('/a', { watch: heard().watch, timeoutMs: 0 }),
    ];
    controller.abort();
    await world.until(Promise.allSettled(setting));
    await go(zk.removeWatches('/a', { watch: first.watch }));
    const [result] = await world.until(Promise.allSettled([zk.removeWatches('/a')]));
    expect((result as PromiseRejectedResult).reason).toMatchObject({ code: 'NoWatcher', outcome: 'refused' });
  });

  it('B44: removes one listener and leaves the watch to the others', async () => {
    const first = heard();
    const second = heard();
    await go(zk.addWatch('/a', { watch: first.watch }));
    await go(zk.addWatch('/a', { watch: second.watch }));
    await go(zk.removeWatches('/a', { type: 'persistent', watch: first.watch }));
    await go(other.create('/a'));
    await world.settle();
    expect(first.lines).toEqual(['PersistentWatchRemoved /a']);
    expect(second.lines).toEqual(['NodeCreated /a']);
    await go(zk.removeWatches('/a', { watch: second.watch }));
    // Now the server has no watch left either.
    const [result] = await world.until(Promise.allSettled([zk.removeWatches('/a')]));
    expect((result as PromiseRejectedResult).reason).toMatchObject({ code: 'NoWatcher', errno: -121, outcome: 'refused' });
  });

  it('of one listener with several kinds asks the server for those that no other listener needs', async () => {
    const first = heard();
    const second = heard();
    await go(zk.create('/a'));
    await go(zk.getData('/a', { watch: first.watch }));
    await go(zk.getChildren('/a', { watch: first.watch }));
    await go(zk.getChildren('/a', { watch: second.watch }));
    await go(zk.removeWatches('/a', { watch: first.watch }));
    await go(other.create('/a/b'));
    await world.settle();
    expect(first.lines).toEqual(['DataWatchRemoved /a', 'ChildWatchRemoved /a']);
    expect(second.lines).toEqual(['NodeChildrenChanged /a']);
    const [result] = await world.until(Promise.allSettled([zk.removeWatches('/a', { type: 'data' })]));
    expect((result as PromiseRejectedResult).reason).toMatchObject({ code: 'NoWatcher' });
  });

  it('fails for a listener that was never added', async () => {
    const [result] = await world.until(Promise.allSettled([zk.removeWatches('/a', { watch: () => {} })]));
    expect((result as PromiseRejectedResult).reason).toMatchObject({
      code: 'NoWatcher',
      outcome: 'notSent',
      path: '/a',
      op: 'removeWatches',
    });
  });

  it('with local works without a server, and the watch is not set again', async () => {
    const { lines, watch } = heard();
    await go(zk.addWatch('/a', { watch }));
    await whileGone(async () => {
      const removal = zk.removeWatches('/a', { local: true });
      await go(removal);
    });
    await go(other.create('/a'));
    await world.settle();
    expect(lines).toEqual(['None Disconnected', 'PersistentWatchRemoved /a']);
  });
});
