/**
 * Loops over watches, end to end in virtual time: with our server, lost connections and every kind
 * of end.
 */
import { ErrorCode, EventType, operations, type Writer } from '@tskeeper/protocol';
import { ManualClock, SeededRandom } from '@tskeeper/runtime';
import type { VirtualCnxn } from '@tskeeper/runtime/internal';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { breadth } from '../../../test/breadth.ts';
import {
  type Client,
  connect,
  type KeeperError,
  op,
  type RecursiveWatchLoopEvent,
  type WatchLoop,
  type WatchLoopEvent,
  type WatchLoopOptions,
} from '../src/index.ts';
import { ClientWorld } from './support/client-world.ts';
import { ScriptedTransport } from './support/scripted-transport.ts';
import { connectResponse, describeFrames, notification, refusal, reply } from './support/server-frames.ts';

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

function lineOf(event: WatchLoopEvent): string {
  return event.type === 'Reread' ? `Reread ${event.cause}` : `${event.type} ${event.path}`;
}

interface Reports {
  readonly lines: string[];
  readonly events: WatchLoopEvent[];
  /** `done`, or what the loop threw. */
  end: unknown;
  readonly loop: WatchLoop;
}

/** Loops in the background and records everything. */
function loopOver(path: string, options: WatchLoopOptions = {}, client = zk): Reports {
  const reports: Reports = { lines: [], events: [], end: undefined, loop: client.watch(path, options) };
  const run = async () => {
    try {
      for await (const event of reports.loop) {
        reports.events.push(event);
        reports.lines.push(lineOf(event));
      }
      reports.end = 'done';
    } catch (error) {
      reports.end = error;
    }
  };
  void run();
  return reports;
}

/** Asks the server itself, by a removal of the watch. */
async function serverHasWatch(path: string, client = zk): Promise<boolean> {
  const [result] = await world.until(Promise.allSettled([client.removeWatches(path)]));
  if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'NoWatcher', outcome: 'refused' });
  return result.status === 'fulfilled';
}

function cnxnOfFirst(): VirtualCnxn {
  return [...world.wire.cnxns].findLast(({ dialer }) => dialer.address === '10.1.0.1')!;
}

async function whileGone(happens: () => Promise<void>): Promise<void> {
  const { dialer, listener } = cnxnOfFirst();
  world.wire.cut(dialer.address, listener.address);
  await world.untilSo(() => zk.state === 'suspended');
  await happens();
  world.wire.heal(dialer.address, listener.address);
  await world.untilSo(() => zk.state === 'connected');
  await world.settle();
}

describe('a watch loop', () => {
  it('D7, B22, B33: starts with a Reread when the watch is set, and delivers each change of the znode and its children', async () => {
    const reports = loopOver('/a');
    await world.settle();
    expect(reports.events).toEqual([{ type: 'Reread', cause: 'started', since: undefined, dropped: 0 }]);
    await go(other.create('/a'));
    await go(other.setData('/a', '1'));
    await go(other.create('/a/b'));
    await go(other.create('/a/b/c'));
    await go(other.delete('/a/b/c'));
    await go(other.delete('/a/b'));
    await go(other.delete('/a'));
    await world.settle();
    expect(reports.lines.slice(1)).toEqual([
      'NodeCreated /a',
      'NodeDataChanged /a',
      'NodeChildrenChanged /a',
      'NodeChildrenChanged /a',
      'NodeDeleted /a',
    ]);
  });

  it('D7: that is recursive delivers changes of everything below, with paths without the chroot', async () => {
    await go(zk.create('/app'));
    const inside = await world.connect({}, '/app');
    const reports = loopOver('/a', { recursive: true }, inside);
    await world.settle();
    await go(other.create('/app/a'));
    await go(other.create('/app/a/b'));
    await go(other.setData('/app/a/b', '1'));
    await go(other.create('/app/ab'));
    await go(other.create('/a'));
    await world.settle();
    expect(reports.lines.slice(1)).toEqual(['NodeCreated /a', 'NodeCreated /a/b', 'NodeDataChanged /a/b']);
  });

  it('B45: delivers the zxid of each change as a bigint, one for all of a multi', async () => {
    const reports = loopOver('/', { recursive: true });
    await world.settle();
    const { stat } = await go(other.create('/a'));
    const [b, c] = await go(other.multi([op.create('/b'), op.create('/c')]));
    await world.settle();
    const zxids = reports.events.map((event) => (event.type === 'Reread' ? undefined : event.zxid));
    expect(zxids).toEqual([undefined, stat.czxid, b.stat?.czxid, c.stat?.czxid]);
    expect(b.stat?.czxid).toBe(c.stat?.czxid);
  });

  it('sets nothing before its first next', async () => {
    const loop = zk.watch('/a');
    await world.settle();
    expect(await serverHasWatch('/a')).toBe(false);
    const first = loop.next();
    await go(first);
    expect(await serverHasWatch('/a')).toBe(true);
  });

  it('answers early calls of next in order, and ends all of them', async () => {
    const loop = zk.watch('/a');
    const asked = Array.from({ length: 4 }, () => loop.next());
    await world.settle();
    await go(other.create('/a'));
    await world.settle();
    await loop.return();
    const results = await go(Promise.all(asked));
    expect(results.map(({ value }) => (value === undefined ? 'done' : lineOf(value)))).toEqual([
      'Reread started',
      'NodeCreated /a',
      'done',
      'done',
    ]);
    expect(await loop.next()).toEqual({ done: true, value: undefined });
  });

  it('is rejected at once for an invalid path, and for a queue of size 0', () => {
    let thrown: unknown;
    try {
      zk.watch('a');
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toMatchObject({ name: 'KeeperError', code: 'BadArguments', op: 'watch', path: 'a' });
    for (const maxQueuedEvents of [0, -1, 1.5, Number.NaN]) {
      expect(() => zk.watch('/a', { maxQueuedEvents })).toThrow(
        new RangeError(`watch: maxQueuedEvents must be a whole number >= 1, not ${maxQueuedEvents}`),
      );
    }
  });

  it('waits for a server without a limit', async () => {
    world.kill();
    await world.untilSo(() => zk.state === 'suspended');
    const reports = loopOver('/a');
    // Every server has failed by now, again and again.
    await world.pass(5000);
    expect(reports).toMatchObject({ lines: [], end: undefined });
    await world.boot();
    await world.untilSo(() => reports.lines.length > 0);
    expect(reports.lines).toEqual(['Reread started']);
  });
});

describe('leaving a watch loop', () => {
  const leave: Record<string, (zk: Client, controller: AbortController) => Promise<unknown>> = {
    break: async (client) => {
      for await (const _ of client.watch('/a')) break;
    },
    return: async (client) => {
      const run = async () => {
        for await (const { type } of client.watch('/a')) return type;
        return 'nothing';
      };
      return run();
    },
    throw: async (client) => {
      for await (const _ of client.watch('/a')) throw new Error('enough');
    },
    abort: async (client, controller) => {
      for await (const _ of client.watch('/a', { signal: controller.signal })) controller.abort(new Error('enough'));
    },
    'abort while waiting': async (client, controller) => {
      for await (const _ of client.watch('/a', { signal: controller.signal })) {
        void Promise.resolve().then(() => controller.abort(new Error('enough')));
      }
    },
    dispose: async (client) => {
      const loop = client.watch('/a');
      await loop.next();
      await loop[Symbol.asyncDispose]();
    },
  };

  it.each(Object.keys(leave))('B44: by %s removes the watch, in the client and on the server', async (how) => {
    const [result] = await world.until(Promise.allSettled([leave[how]!(zk, new AbortController())]));
    if (how === 'throw' || how.startsWith('abort')) {
      expect(result).toMatchObject({ status: 'rejected', reason: new Error('enough') });
    } else {
      expect(result.status).toBe('fulfilled');
    }
    expect(await serverHasWatch('/a')).toBe(false);
    await whileGone(async () => {});
    expect(await serverHasWatch('/a')).toBe(false);
  });

  it('with a signal that was aborted before sets nothing', async () => {
    const reports = loopOver('/a', { signal: AbortSignal.abort('no') });
    await world.settle();
    expect(reports).toMatchObject({ lines: [], end: 'no' });
    expect(await serverHasWatch('/a')).toBe(false);
  });

  it('while the watch is being set removes it as soon as it is set', async () => {
    const loop = zk.watch('/a');
    const first = loop.next();
    await loop.return();
    expect(await go(first)).toEqual({ done: true, value: undefined });
    await world.settle();
    expect(await serverHasWatch('/a')).toBe(false);
  });

  it('while the watch is being set is final, whatever the result of that', async () => {
    const { client, transport, clock } = await scripted();
    transport.latest.sink.closed(undefined);
    const loop = client.watch('/a');
    const first = loop.next();
    await loop.return();
    clock.advance(1000);
    transport.latest.sink.connected();
    transport.latest.sink.received(refusal);
    expect(client.endReason).toBe('expired');
    expect(await first).toEqual({ done: true, value: undefined });
    expect(await loop.next()).toEqual({ done: true, value: undefined });
  });

  it('leaves the watch to the other loops of the path; the last one removes it', async () => {
    const [one, two] = [loopOver('/a'), loopOver('/a')];
    await world.settle();
    await one.loop.return();
    await go(other.create('/a'));
    await world.settle();
    expect(one).toMatchObject({ lines: ['Reread started'], end: 'done' });
    expect(two.lines).toEqual(['Reread started', 'NodeCreated /a']);
    await two.loop.return();
    expect(await serverHasWatch('/a')).toBe(false);
  });

  it('leaves the watch to a loop that is just starting, in whatever order requests are sent', async () => {
    for (const order of ['leave first', 'begin first']) {
      const one = loopOver('/a');
      await world.settle();
      const begin = () => loopOver('/a');
      let two: Reports;
      if (order === 'leave first') {
        await one.loop.return();
        two = begin();
      } else {
        two = begin();
        await one.loop.return();
      }
      await world.settle();
      await go(other.create('/a'));
      await go(other.delete('/a'));
      await world.settle();
      expect([order, ...two.lines]).toEqual([order, 'Reread started', 'NodeCreated /a', 'NodeDeleted /a']);
      await two.loop.return();
      expect(await serverHasWatch('/a')).toBe(false);
    }
  });

  it("leaves listeners' watches on the path, of every kind", async () => {
    await go(zk.create('/a'));
    const heard: string[] = [];
    const reports = loopOver('/a');
    await world.settle();
    await go(zk.getData('/a', { watch: ({ type }) => void heard.push(`data ${type}`) }));
    await go(zk.getChildren('/a', { watch: ({ type }) => void heard.push(`child ${type}`) }));
    await go(zk.addWatch('/a', { watch: ({ type }) => void heard.push(`stays ${type}`) }));
    await reports.loop.return();
    await go(other.setData('/a', '1'));
    await go(other.create('/a/b'));
    await world.settle();
    expect(heard).toEqual(['data NodeDataChanged', 'stays NodeDataChanged', 'child NodeChildrenChanged', 'stays NodeChildrenChanged']);
  });

  it('by one signal ends any number of loops, without a warning of a leak', async () => {
    const warnings: string[] = [];
    const note = (warning: Error) => void warnings.push(warning.name);
    process.on('warning', note);
    const controller = new AbortController();
    const reports = Array.from({ length: 20 }, (_, index) => loopOver(`/${index}`, { signal: controller.signal }));
    await world.settle();
    controller.abort('enough');
    await world.settle();
    process.off('warning', note);
    expect(reports.map(({ end }) => end)).toEqual(reports.map(() => 'enough'));
    expect(warnings).toEqual([]);
  });
});

describe('after a lost connection', () => {
  it('D7, E3: a loop reports once what may be missing, and continues', async () => {
    await go(zk.create('/a', '1'));
    await go(zk.create('/same', '1'));
    const reports = loopOver('/', { recursive: true });
    const idle = loopOver('/a');
    await world.settle();
    await go(other.setData('/a', '2'));
    await go(zk.sync());
    const since = zk.lastZxid;
    await whileGone(async () => {
      await go(other.setData('/a', '3'));
      await go(other.create('/b'));
    });
    await go(other.setData('/a', '4'));
    await world.settle();
    const rest = ['NodeDataChanged /a', 'Reread reconnected', 'NodeDataChanged /a'];
    expect(reports.lines).toEqual(['Reread started', ...rest]);
    expect(idle.lines).toEqual(['Reread started', ...rest]);
    expect(reports.events[2]).toEqual({ type: 'Reread', cause: 'reconnected', since, dropped: 0 });
    // It distinguishes unchanged znodes from changed ones.
    expect((await go(zk.exists('/same')))!.mzxid <= since).toBe(true);
    expect((await go(zk.exists('/b')))!.mzxid > since).toBe(true);
  });

  it('several lost connections are one Reread for a loop that has not called next, with the state known at the first', async () => {
    const loop = zk.watch('/a');
    await go(loop.next());
    await go(zk.sync());
    const since = zk.lastZxid;
    await whileGone(async () => void (await go(other.create('/a'))));
    await go(zk.sync());
    await whileGone(async () => {});
    expect(await go(loop.next())).toEqual({ done: false, value: { type: 'Reread', cause: 'reconnected', since, dropped: 0 } });
    await go(other.delete('/a'));
    expect((await go(loop.next())).value).toMatchObject({ type: 'NodeDeleted' });
  });

  it('a read that fails with ConnectionLoss after a Reread is followed by another Reread', async () => {
    const reports: string[] = [];
    let breaks = 2;
    const run = async () => {
      for await (const event of zk.watch('/a')) {
        const reading = zk.exists('/a');
        if (event.type === 'Reread' && breaks-- > 0) world.break(cnxnOfFirst());
        const read = await reading.then(
          () => 'read',
          (error: unknown) => (error as KeeperError).code,
        );
        reports.push(`${lineOf(event)}: ${read}`);
      }
    };
    void run();
    await world.untilSo(() => reports.length === 3);
    await go(other.create('/a'));
    await world.settle();
    expect(reports).toEqual([
      'Reread started: ConnectionLoss',
      'Reread reconnected: ConnectionLoss',
      'Reread reconnected: read',
      'NodeCreated /a: read',
    ]);
  });
});

describe('the end of a watch loop', () => {
  it('is caused by close, for every loop, whatever it was doing (nats.js issue 134)', async () => {
    const waiting = loopOver('/a');
    const slow = zk.watch('/a');
    await go(slow.next());
    await go(other.create('/a'));
    await world.settle();
    const closing = zk.close();
    await go(closing);
    await world.settle();
    expect(waiting).toMatchObject({ lines: ['Reread started', 'NodeCreated /a'], end: 'done' });
    // Queued events are useless now: every call of the program would fail.
    expect(await slow.next()).toEqual({ done: true, value: undefined });
  });

  it('is caused by close without a connection, and before the watch is set', async () => {
    const waiting = loopOver('/a');
    await world.settle();
    world.kill();
    await world.untilSo(() => zk.state === 'suspended');
    const unset = loopOver('/b');
    await world.settle();
    await go(zk.close());
    await world.settle();
    expect([waiting.end, unset.end]).toEqual(['done', 'done']);
    const late = loopOver('/c');
    await world.settle();
    expect(late.end).toMatchObject({ code: 'SessionExpired', op: 'watch', path: '/c' });
    await world.boot();
  });

  it('C2-12: is SessionExpired when the session expires, after earlier events', async () => {
    const reports = loopOver('/a');
    const slow = zk.watch('/a');
    await go(slow.next());
    await go(other.create('/a'));
    await world.settle();
    await whileGoneFor(15_000);
    expect(zk.endReason).toBe('expired');
    expect(reports.lines).toEqual(['Reread started', 'NodeCreated /a']);
    expect(reports.end).toMatchObject({ name: 'KeeperError', code: 'SessionExpired', op: 'watch', path: '/a', retryable: false });
    expect((reports.end as Error).message).toMatch(/SessionExpired|expired/);
    expect((await slow.next()).value).toMatchObject({ type: 'NodeCreated' });
    await expect(slow.next()).rejects.toMatchObject({ code: 'SessionExpired' });
    expect(await slow.next()).toEqual({ done: true, value: undefined });
  });

  it('is immediate with the signal, even if the session has ended and events are queued', async () => {
    const controller = new AbortController();
    const slow = zk.watch('/a', { signal: controller.signal });
    await go(slow.next());
    await go(other.create('/a'));
    await whileGoneFor(15_000);
    controller.abort('enough');
    await expect(slow.next()).rejects.toBe('enough');
    expect(await slow.next()).toEqual({ done: true, value: undefined });
  });

  it('is AuthFailed when the credentials are rejected', async () => {
    const reports = loopOver('/a');
    await world.settle();
    await world.until(Promise.allSettled([zk.addAuth('nonsense', 'x')]));
    await world.settle();
    expect(reports.end).toMatchObject({ code: 'AuthFailed', op: 'watch' });
  });

  it('C2-23: is SessionMoved when another client uses the session', async () => {
    const yielding = await world.connect({ yieldSession: true });
    const reports = loopOver('/a', {}, yielding);
    await world.settle();
    const taker = await world.connect({ session: { id: yielding.sessionId, password: yielding.sessionPassword } });
    await world.untilSo(() => yielding.endReason !== undefined);
    await world.settle();
    expect(yielding.endReason).toBe('moved');
    expect(reports.end).toMatchObject({ code: 'SessionMoved', op: 'watch', path: '/a' });
    await go(taker.close());
  });

  it('is caused by removeWatches of the path, after earlier events', async () => {
    const reports = loopOver('/a');
    await world.settle();
    await go(other.create('/a'));
    await go(zk.removeWatches('/a'));
    await go(other.delete('/a'));
    await world.settle();
    expect(reports).toMatchObject({ lines: ['Reread started', 'NodeCreated /a'], end: 'done' });
  });
});

/** Long enough for the session to expire. */
async function whileGoneFor(ms: number): Promise<void> {
  const { dialer, listener } = cnxnOfFirst();
  world.wire.cut(dialer.address, listener.address);
  await world.pass(ms, 500);
  world.wire.heal(dialer.address, listener.address);
  await world.untilSo(() => zk.state === 'connected' || zk.endReason !== undefined);
  await world.settle();
}

describe('a loop that is too slow', () => {
  it('D7: gets one Reread for everything it has not taken, with the number of dropped events', async () => {
    const loop = zk.watch('/', { recursive: true, maxQueuedEvents: 3 });
    await go(loop.next());
    const { stat } = await go(other.create('/a'));
    for (let step = 0; step < 9; step++) await go(other.setData('/a', String(step)));
    await world.settle();
    const value = { type: 'Reread', cause: 'overflowed', since: stat.czxid - 1n, dropped: 10 };
    expect(await go(loop.next())).toEqual({ done: false, value });
    await go(other.setData('/a', 'x'));
    expect((await go(loop.next())).value).toMatchObject({ type: 'NodeDataChanged', path: '/a' });
  });
});

/** A scripted server. */
async function scripted(): Promise<{ client: Client; transport: ScriptedTransport; clock: ManualClock; sent: () => string[] }> {
  const transport = new ScriptedTransport();
  const clock = new ManualClock(0);
  const connecting = connect('server', { transport, clock, random: new SeededRandom(1) });
  clock.advance(0);
  transport.latest.sink.connected();
  transport.latest.sink.received(connectResponse());
  const client = await connecting;
  transport.latest.sent.length = 0;
  const sent = () => {
    const lines = describeFrames(Buffer.concat(transport.latest.sent), false);
    transport.latest.sent.length = 0;
    return lines;
  };
  return { client, transport, clock, sent };
}

const turn = () =>
  new Promise<void>((resolve) => {
    setImmediate(resolve);
  });
const watchSet = (xid: number) => reply(xid, 1, 0, (writer: Writer) => operations.addWatch.reply.write(writer, { err: 0 }));

describe('with scripted servers', () => {
  it('D7: a loop that takes one of a thousand events delivers or counts every event, and bounds its queue', async () => {
    const { client, transport } = await scripted();
    const maxQueuedEvents = 500;
    const loop = client.watch('/', { recursive: true, maxQueuedEvents });
    const first = loop.next();
    await turn();
    transport.latest.sink.received(watchSet(1));
    await first;
    const random = new SeededRandom(1);
    const taken = { changes: 0, rereads: 0 };
    /**
     * `upTo`: the txn up to which the loop has delivered everything, or has reported it as dropped.
     */
    const seen = { arrived: 0, upTo: 0 };
    const take = async (): Promise<void> => {
      const { value } = (await loop.next()) as { value: RecursiveWatchLoopEvent };
      if (value.type === 'Reread') {
        taken.rereads++;
        expect(value).toMatchObject({ cause: 'overflowed', since: BigInt(seen.upTo) });
        seen.upTo += value.dropped;
      } else {
        taken.changes++;
        expect(value.zxid).toBe(BigInt(++seen.upTo));
      }
    };
    const count = breadth(50_000, 1_000_000);
    while (seen.arrived < count) {
      const batch = Math.min(1 + random.below(2000), count - seen.arrived);
      const frames = Array.from({ length: batch }, () => notification(EventType.nodeDataChanged, '/a', ++seen.arrived));
      transport.latest.sink.received(Buffer.concat(frames));
      await turn();
      for (let takes = random.below(3); takes > 0 && seen.upTo < seen.arrived; takes--) await take();
    }
    let kept = 0;
    for (; seen.upTo < seen.arrived; kept++) await take();
    expect(kept).toBeLessThanOrEqual(maxQueuedEvents);
    expect(taken.rereads).toBeGreaterThan(breadth(5, 100));
    expect(taken.changes).toBeGreaterThan(breadth(5, 100));
  });

  it('B44: before 3.9 everything on the path is removed if there are no other listeners, and nothing of others otherwise', async () => {
    const { client, transport, sent } = await scripted();
    const loop = client.watch('/a');
    const first = loop.next();
    await turn();
    transport.latest.sink.received(watchSet(1));
    await first;
    const reading = client.exists('/a', { watch: true });
    await turn();
    await loop.return();
    await turn();
    expect(sent()).toEqual([
      'addWatch xid=1 {"path":"/a","mode":0}',
      'exists xid=2 {"path":"/a","watch":true}',
      'removeWatches xid=3 {"path":"/a","type":4}',
    ]);
    transport.latest.sink.received(Buffer.concat([reply(2, 1, ErrorCode.NoNode), reply(3, 1, ErrorCode.MarshallingError)]));
    await reading;
    // Such a server continues to send events, and no listener is left.
    transport.latest.sink.received(notification(EventType.nodeCreated, '/a'));
    await turn();
    expect(await loop.next()).toMatchObject({ done: true });
    expect(client.state).toBe('connected');

    const alone = client.watch('/b');
    const begun = alone.next();
    await turn();
    transport.latest.sink.received(watchSet(4));
    await begun;
    transport.latest.sink.received(notification(EventType.nodeCreated, '/b'));
    expect((await alone.next()).value).toEqual({ type: 'NodeCreated', path: '/b', zxid: undefined });
    sent();
    await alone.return();
    await turn();
    expect(sent()).toEqual(['removeWatches xid=5 {"path":"/b","type":3}']);
  });

  it('before 3.6 a loop ends with Unimplemented', async () => {
    const { client, transport } = await scripted();
    const first = client.watch('/a').next();
    await turn();
    transport.latest.sink.received(reply(1, 1, ErrorCode.Unimplemented));
    await expect(first).rejects.toMatchObject({
      code: 'Unimplemented',
      op: 'watch',
      message: expect.stringContaining('servers before ZooKeeper 3.6 do not support persistent watches') as string,
    });
  });
});
