import { AsyncLocalStorage } from 'node:async_hooks';
import diagnostics, { tracingChannel } from 'node:diagnostics_channel';
import { operations } from '@tskeeper/protocol';
import { ManualClock, SeededRandom } from '@tskeeper/runtime';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { connect, type ConnectOptions, KeeperError, type TracedCall, type TracedSessionEvent, type Tracer } from '../../src/index.ts';
import { ClientWorld } from '../support/client-world.ts';
import { ScriptedTransport } from '../support/scripted-transport.ts';
import { connectResponse, notification, reply } from '../support/server-frames.ts';
import { spans } from './open-telemetry-api.ts';
import { traceZooKeeper } from './open-telemetry.ts';

type Step = 'start' | 'end' | 'asyncStart' | 'asyncEnd' | 'error';

let world: ClientWorld;
const undo: (() => void)[] = [];

beforeEach(async () => {
  world = await ClientWorld.start();
});
afterEach(async () => {
  for (const each of undo.splice(0)) each();
  await world.close();
});

/** The reports of calls, in order. */
function listenToCalls(): { readonly step: Step; readonly call: TracedCall; readonly seen: TracedCall }[] {
  const delivered: { step: Step; call: TracedCall; seen: TracedCall }[] = [];
  const hear = (step: Step) => (call: TracedCall) => void delivered.push({ step, call, seen: { ...call } });
  const listeners = {
    start: hear('start'),
    end: hear('end'),
    asyncStart: hear('asyncStart'),
    asyncEnd: hear('asyncEnd'),
    error: hear('error'),
  };
  const channel = tracingChannel<unknown, TracedCall>('tskeeper:request');
  channel.subscribe(listeners);
  undo.push(() => channel.unsubscribe(listeners));
  return delivered;
}

function listenToSessions(): TracedSessionEvent[] {
  const delivered: TracedSessionEvent[] = [];
  const hear = (event: unknown) => void delivered.push(event as TracedSessionEvent);
  diagnostics.subscribe('tskeeper:session', hear);
  undo.push(() => diagnostics.unsubscribe('tskeeper:session', hear));
  return delivered;
}

const stepsOf = (delivered: readonly { readonly step: Step; readonly call: TracedCall }[]) =>
  delivered.map(({ step, call }) => `${call.op} ${step}`);

describe('D18: a traced call', () => {
  it('is reported from start to asyncEnd by one object, which is filled in over time', async () => {
    const zk = await world.connect({}, '/app');
    await world.until(zk.ensurePath('/'));
    const delivered = listenToCalls();
    const result = await world.until(zk.create('/a', 'x'));
    expect(stepsOf(delivered)).toEqual(['create start', 'create end', 'create asyncStart', 'create asyncEnd']);
    expect(new Set(delivered.map(({ call }) => call)).size).toBe(1);
    const known = { op: 'create', path: '/a', chroot: '/app', isCompound: false, sessionId: zk.sessionId, attempt: 1 };
    expect(delivered[0]!.seen).toEqual({ ...known, server: undefined, xid: undefined, zxid: undefined });
    expect(delivered[3]!.seen).toEqual({ ...known, server: 'server:2181', xid: expect.any(Number), zxid: result.stat.czxid, result });
    expect(delivered[3]!.call.result).toBe(result);
    await world.until(zk.close());
  });

  it('that fails reports the same error as the program gets, before asyncStart', async () => {
    const zk = await world.connect();
    const delivered = listenToCalls();
    const error: unknown = await world.until(zk.delete('/none').catch((reason: unknown) => reason));
    expect(stepsOf(delivered)).toEqual(['delete start', 'delete end', 'delete error', 'delete asyncStart', 'delete asyncEnd']);
    expect(KeeperError.is(error, 'NoNode')).toBe(true);
    expect(delivered[2]!.call.error).toBe(error);
    expect('result' in delivered[4]!.call).toBe(false);
    expect(delivered[4]!.call.zxid).toBeGreaterThan(0n);
    await world.until(zk.close());
  });

  it('that is rejected before it is sent has neither xid nor server', async () => {
    const zk = await world.connect();
    const delivered = listenToCalls();
    await expect(world.until(zk.getData('no/path'))).rejects.toMatchObject({ code: 'BadArguments' });
    await expect(world.until(zk.getData('/a', { signal: AbortSignal.abort('enough') }))).rejects.toBe('enough');
    const ends = delivered.filter(({ step }) => step === 'asyncEnd').map(({ seen }) => seen);
    expect(ends).toMatchObject([
      { path: 'no/path', server: undefined, xid: undefined, zxid: undefined },
      { path: '/a', error: 'enough', server: undefined, xid: undefined, zxid: undefined },
    ]);
    await world.until(zk.close());
  });

  it('reports the number of its last attempt', async () => {
    const zk = await world.connect({ retry: true });
    const delivered = listenToCalls();
    const lost = zk.exists('/zookeeper');
    world.break();
    await world.until(lost);
    expect(delivered.map(({ step, seen }) => [step, seen.attempt])).toEqual([
      ['start', 1],
      ['end', 1],
      ['asyncStart', 2],
      ['asyncEnd', 2],
    ]);
    await world.until(zk.close());
  });

  it('without an answer reports the server it was sent to, and its xid', async () => {
    const zk = await world.connect();
    const delivered = listenToCalls();
    const asked = zk.exists('/a').catch(() => undefined);
    // It is sent at the end of the turn.
    await Promise.resolve();
    world.kill();
    await world.until(asked);
    await world.until(zk.exists('/a', { timeoutMs: 50 }).catch(() => undefined));
    const [first, second] = delivered.filter(({ step }) => step === 'error').map(({ seen }) => seen);
    expect(first).toMatchObject({ error: { outcome: 'unknown' }, xid: expect.any(Number), server: 'server:2181', zxid: undefined });
    expect(second).toMatchObject({ error: { outcome: 'notSent' }, xid: undefined, server: undefined });
  });

  it('of several steps is reported as one call around its steps', async () => {
    const zk = await world.connect();
    await world.until(zk.create('/a/b', 'x', { parents: true }));
    const channel = tracingChannel<TracedCall, TracedCall>('tskeeper:request');
    const around = new AsyncLocalStorage<TracedCall>();
    const parents = new Map<TracedCall, TracedCall | undefined>();
    channel.start.bindStore(around, (call) => {
      parents.set(call, around.getStore());
      return call;
    });
    undo.push(() => channel.start.unbindStore(around));
    await world.until(zk.deleteRecursive('/a'));
    const [whole, ...steps] = [...parents.keys()];
    expect(whole).toMatchObject({ op: 'deleteRecursive', path: '/a', isCompound: true, xid: undefined, result: { deleted: 2 } });
    expect(steps.map(({ op }) => op)).toContain('children');
    expect(steps.map(({ op }) => op)).toContain('delete');
    expect(steps.every((step) => parents.get(step) === whole && !step.isCompound && step.xid !== undefined)).toBe(true);
    expect(around.getStore()).toBeUndefined();
    await world.until(zk.close());
  });

  it('of the ensemble has no chroot, whatever that of the client', async () => {
    const zk = await world.connect({}, '/app');
    const delivered = listenToCalls();
    await world.until(zk.getConfig());
    expect(delivered[0]!.seen).toMatchObject({ op: 'getConfig', path: '/zookeeper/config', chroot: '' });
    await world.until(zk.close());
  });

  it('is answered without an extra turn: after earlier and before later input of the server', async () => {
    const clock = new ManualClock();
    const transport = new ScriptedTransport();
    const connecting = connect('a', { transport, clock, random: new SeededRandom(1) });
    for (clock.advance(1000); transport.cnxns.length === 0; clock.advance(1000)) await world.settle();
    const { sink, sent } = transport.latest;
    sink.connected();
    sink.received(connectResponse());
    const zk = await connecting;
    const story = async (xid: number): Promise<string[]> => {
      const order: string[] = [];
      const off = zk.on('event', ({ path }) => order.push(path));
      const sync = (async () => {
        await zk.sync('/');
        order.push('answer');
      })();
      for (sent.length = 0; sent.length === 0;) await world.settle();
      const answer = reply(xid, 5, 0, (writer) => operations.sync.reply.write(writer, { path: '/' }));
      sink.received(Buffer.concat([notification(3, '/before'), answer, notification(3, '/after')]));
      await sync;
      await world.settle();
      off();
      return order;
    };
    expect(await story(1)).toEqual(['/before', 'answer', '/after']);
    const delivered = listenToCalls();
    expect(await story(2)).toEqual(['/before', 'answer', '/after']);
    expect(delivered).toHaveLength(4);
    void zk.close();
    transport.latest.sink.closed(undefined);
  });
});

describe('connect and close', () => {
  it('are reported like other calls', async () => {
    const delivered = listenToCalls();
    const zk = await world.connect();
    await world.until(zk.close());
    expect(stepsOf(delivered)).toEqual(
      ['connect', 'close'].flatMap((op) => [`${op} start`, `${op} end`, `${op} asyncStart`, `${op} asyncEnd`]),
    );
    expect(delivered[0]!.seen.sessionId).toBe(0n);
    expect(delivered[3]!.seen).toMatchObject({ sessionId: zk.sessionId, server: 'server:2181', result: zk });
    expect(delivered[7]!.seen).toMatchObject({ op: 'close', sessionId: zk.sessionId, result: undefined });
  });

  it('report why there is no session', async () => {
    const delivered = listenToCalls();
    await expect(connect('zk1:notaport', world.options())).rejects.toThrow('port');
    await expect(world.until(connect('nowhere:1', world.options({ connectTimeoutMs: 100 })))).rejects.toMatchObject({ op: 'connect' });
    const errors = delivered.filter(({ step }) => step === 'error').map(({ call }) => (call.error as Error).name);
    expect(errors).toEqual(['ConnectStringError', 'KeeperError']);
  });
});

describe('D18: the session of a traced client', () => {
  it('reports its states, unreachable servers, watched changes, and rereads', async () => {
    const delivered = listenToSessions();
    const zk = await world.connect({}, '/app');
    await world.until(zk.ensurePath('/a'));
    const loop = zk.watch('/a');
    await world.until(loop.next());
    await world.until(zk.setData('/a', 'y'));
    await world.until(loop.next());
    const before = world.address;
    world.kill();
    await world.untilSo(() => delivered.some(({ kind }) => kind === 'attemptFailed'));
    await world.boot();
    expect(world.address).not.toBe(before);
    await world.until(loop.next());
    await world.until(zk.close());
    const kinds = delivered.map((event) => (event.kind === 'state' ? event.state : event.kind));
    expect(kinds.filter((kind, at) => kind !== kinds[at - 1])).toEqual([
      'SyncConnected',
      'reread',
      'watch',
      'Disconnected',
      'attemptFailed',
      'SyncConnected',
      'reread',
      'Closed',
    ]);
    expect(delivered.every(({ sessionId, server }) => sessionId === zk.sessionId && server === 'server:2181')).toBe(true);
    expect(delivered.find(({ kind }) => kind === 'watch')).toMatchObject({
      type: 'NodeDataChanged',
      path: '/app/a',
      zxid: expect.any(BigInt),
    });
    const rereads = delivered.filter(({ kind }) => kind === 'reread');
    expect(rereads).toMatchObject([
      { path: '/app/a', cause: 'started' },
      { path: '/app/a', cause: 'reconnected' },
    ]);
    expect(delivered.find((event) => event.kind === 'state' && event.state === 'Disconnected')).toMatchObject({
      reason: expect.any(String),
    });
  });
});

describe('a custom tracer', () => {
  it('with tracesCalls and tracesSession false receives no calls and no session events', async () => {
    const delivered: string[] = [];
    const tracer: Tracer = {
      tracesCalls: false,
      tracesSession: false,
      run: (call, work) => {
        delivered.push(call.op);
        return work();
      },
      callSettled: ({ op }) => delivered.push(op),
      sessionEvent: ({ kind }) => delivered.push(kind),
    };
    const options: ConnectOptions = { tracer };
    const zk = await world.connect(options);
    await world.until(zk.deleteRecursive('/a'));
    await world.until(zk.close());
    expect(delivered).toEqual([]);
  });

  it('replaces the channels', async () => {
    const delivered = listenToCalls();
    const own: string[] = [];
    const tracer: Tracer = {
      tracesCalls: true,
      tracesSession: true,
      run: (call, work) => {
        own.push(`${call.op} run`);
        return work();
      },
      callSettled: ({ op }) => own.push(`${op} settled`),
      sessionEvent: (event) => own.push(event.kind === 'state' ? event.state : event.kind),
    };
    const zk = await world.connect({ tracer });
    await world.until(zk.exists('/a'));
    await world.until(zk.close());
    expect(own).toEqual([
      'connect run',
      'SyncConnected',
      'connect settled',
      'exists run',
      'exists settled',
      'close run',
      'Closed',
      'close settled',
    ]);
    expect(delivered).toEqual([]);
  });
});

describe('D18: the example for OpenTelemetry', () => {
  it('creates a span of each call, with its steps below it', async () => {
    spans.length = 0;
    const zk = await world.connect();
    await world.until(zk.create('/a', 'x'));
    undo.push(traceZooKeeper());
    await world.until(zk.deleteRecursive('/a'));
    await expect(world.until(zk.getData('/a'))).rejects.toThrow('NoNode');
    await world.until(zk.close());
    const [whole] = spans;
    expect(spans.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['zookeeper deleteRecursive', 'zookeeper delete', 'zookeeper close']),
    );
    expect(spans.filter(({ parent }) => parent === whole).map(({ name }) => name)).toContain('zookeeper delete');
    expect(spans.every(({ isEnded }) => isEnded)).toBe(true);
    const failed = spans.find(({ name, parent }) => name === 'zookeeper getData' && parent === undefined)!;
    expect(failed.status).toEqual({ code: 2, message: 'NoNode' });
    expect(failed.attributes).toMatchObject({ 'zookeeper.path': '/a', 'server.address': 'server:2181', 'zookeeper.attempts': 1 });
  });
});
