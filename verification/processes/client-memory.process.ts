/**
 * A client that runs for long keeps no more than it needs: its memory is flat over any number of
 * reconnects and events. Each proof has a canary, a program with a leak, which must fail the same
 * measurement.
 */
import { getEventListeners } from 'node:events';
import { type Client, connect, KeeperError, type NodeEvent, NodeTransport, type Transport } from '@tskeeper/client';
import { EventType } from '@tskeeper/protocol';
import { ManualClock, SeededRandom } from '@tskeeper/runtime';
import { describe, expect, it } from 'vitest';
import { keptBytes } from './heap.ts';
import { inFolder, kind, start } from './servers.ts';
import { WakefulServer } from './wakeful-server.ts';

const reconnects = Number(process.env['TSKEEPER_RECONNECTS'] ?? 100_000);
const socketReconnects = Number(process.env['TSKEEPER_SOCKET_RECONNECTS'] ?? 2_000);
const events = Number(process.env['TSKEEPER_WATCH_EVENTS'] ?? 1_000_000);

/**
 * Bytes allowed at the end beyond those after the first tenth: tables that have grown to their
 * size. Independent of the length of the run, so a leak of a few bytes per reconnect exceeds it.
 */
const slackBytes = 600_000;

/** Reconnects of a program with a leak: enough to show it, if each leaves an error. */
const leakyReconnects = 10_000;
const leakySocketReconnects = 100;

/** The growth is measured in this many parts: an odd number, so that the median is one of them. */
const parts = 5;
const sessionTimeoutMs = 30_000;
/** More than any pause before an attempt. */
const pauseMsMax = 1000;
const watchedPaths = 20;
/** Microtasks after which a reconnect in memory is complete; far more than it needs. */
const turnsMax = 1000;

async function until(what: string, condition: () => boolean, turns = turnsMax): Promise<void> {
  for (let turn = 0; !condition(); turn++) {
    if (turn === turns) throw new Error(`after ${turns} turns not ${what}`);
    await Promise.resolve();
  }
}

/**
 * Growth from the end of the first tenth to the end. A leak grows in each part of the rest; the
 * engine, which compiles functions or drops compiled ones, grows or shrinks by half a megabyte in
 * one part. So the median of the parts represents all of them.
 */
async function growthOver(times: number, once: (turn: number) => Promise<void>): Promise<number> {
  const growths: number[] = [];
  let before = 0;
  for (let part = 0, turn = 0; part <= parts; part++) {
    const end = Math.floor(times / 10 + (part * times * 9) / (10 * parts));
    for (; turn < end; turn++) await once(turn);
    const after = await keptBytes();
    if (part > 0) growths.push(after - before);
    before = after;
  }
  growths.sort((a, b) => a - b);
  return growths[(parts - 1) / 2]! * parts;
}

/**
 * A client of a server in memory. The clock advances only while the client searches for the server.
 */
async function connectTo(server: WakefulServer, clock: ManualClock): Promise<Client> {
  const connecting = connect('server', { transport: server, clock, random: new SeededRandom(1), sessionTimeoutMs });
  await Promise.resolve();
  clock.advance(0);
  return connecting;
}

/**
 * A client with everything that it must set up again on each connection: an identity, watches, a
 * loop. And with calls that have a time limit.
 */
async function setUp(zk: Client): Promise<() => Promise<void>> {
  const over = new AbortController();
  await zk.addAuth('digest', 'bob:secret');
  for (let i = 0; i < watchedPaths; i++) await zk.getData(`/watched/${i}`, { watch: () => undefined });
  const loop = zk.watch('/looped', { recursive: true, signal: over.signal });
  const done = (async () => {
    for await (const event of loop) void event.type;
  })().catch(() => undefined);
  return async () => {
    over.abort();
    await done;
  };
}

interface MemoryRun {
  readonly growth: number;
  readonly timers: readonly [before: number, after: number];
  readonly signalListeners: number;
}

/** `leak` receives the error of the call that fails with each broken connection. */
async function reconnectInMemory(times: number, leak: (error: unknown) => void = () => undefined): Promise<MemoryRun> {
  const clock = new ManualClock();
  const server = new WakefulServer(sessionTimeoutMs);
  const zk = await connectTo(server, clock);
  const tearDown = await setUp(zk);
  const { signal } = new AbortController();
  const timersBefore = clock.timerCount;
  const growth = await growthOver(times, async () => {
    await zk.getData('/answered', { timeoutMs: 60_000, signal });
    const lost = zk.getData('/silent', { timeoutMs: 60_000, signal }).catch((error: unknown) => error);
    await Promise.resolve();
    server.reset();
    const error = await lost;
    if (!KeeperError.is(error, 'ConnectionLoss')) throw error;
    leak(error);
    clock.advance(pauseMsMax);
    await until('connected', () => zk.state === 'connected');
  });
  const timers = [timersBefore, clock.timerCount] as const;
  const signalListeners = getEventListeners(signal, 'abort').length;
  await tearDown();
  await zk.close();
  return { growth, timers, signalListeners };
}

describe('the memory of a client', () => {
  it(`is flat over ${reconnects} reconnects, and so are timers and listeners`, async () => {
    const { growth, timers, signalListeners } = await reconnectInMemory(reconnects);
    console.log(`${reconnects} reconnects in memory: ${growth} bytes more`);
    expect(growth).toBeLessThan(slackBytes);
    expect(timers[1]).toBe(timers[0]);
    expect(signalListeners).toBe(0);
  });

  it('grows when a program retains an object of each reconnect', async () => {
    const kept: unknown[] = [];
    const { growth } = await reconnectInMemory(leakyReconnects, (error) => kept.push(error));
    expect(growth).toBeGreaterThan(slackBytes);
    expect(kept).toHaveLength(leakyReconnects);
  });

  it(`is flat over ${events} events, to a listener and to a loop`, async () => {
    const server = new WakefulServer(sessionTimeoutMs);
    const zk = await connectTo(server, new ManualClock());
    const batch = 1000;
    const run = async (leak: (event: NodeEvent) => void) => {
      let heard = 0;
      let looped = 0;
      const over = new AbortController();
      const listener = (event: NodeEvent | { readonly type: 'None' }) => {
        if (event.type === 'None') return;
        heard++;
        leak(event);
      };
      await zk.addWatch('/busy', { mode: 'persistentRecursive', watch: listener });
      const loop = zk.watch('/busy', { recursive: true, signal: over.signal });
      const done = (async () => {
        for await (const event of loop) if (event.type !== 'Reread') looped++;
      })().catch(() => undefined);
      await until('connected', () => zk.state === 'connected');
      await zk.getData('/answered');
      const growth = await growthOver(events / batch, async (turn) => {
        server.notify(EventType.nodeDataChanged, `/busy/${turn % 10}`, batch);
        const wanted = (turn + 1) * batch;
        await until('all events received', () => heard === wanted && looped === wanted, batch * turnsMax);
      });
      over.abort();
      await done;
      await zk.removeWatches('/busy');
      return growth;
    };
    const growth = await run(() => undefined);
    console.log(`${events} events: ${growth} bytes more`);
    expect(growth).toBeLessThan(slackBytes);
    const kept: NodeEvent[] = [];
    expect(await run((event) => kept.push(event))).toBeGreaterThan(slackBytes);
    await zk.close();
  });

  it(`is flat over ${socketReconnects} reconnects over real sockets, to a server of kind ${kind}`, async () => {
    await inFolder(async (folder) => {
      const server = await start(folder);
      let reset = () => {};
      const tcp = new NodeTransport();
      const transport: Transport = {
        resolve: (host) => tcp.resolve(host),
        connect: (address, sink) => {
          const cnxn = tcp.connect(address, sink);
          reset = () => {
            cnxn.destroy();
            sink.closed('ECONNRESET');
          };
          return cnxn;
        },
      };
      // The smallest random number: no pause before an attempt.
      const zk = await connect(server.connectString, { transport, random: { uint32: () => 0 }, sessionTimeoutMs });
      await zk.ensurePath('/watched');
      await zk.create('/answered');
      await zk.create('/looped');
      for (let i = 0; i < watchedPaths; i++) await zk.create(`/watched/${i}`);
      const tearDown = await setUp(zk);
      const { signal } = new AbortController();
      const run = (times: number, leak: (error: unknown) => void) =>
        growthOver(times, async () => {
          const lost = zk.getData('/answered', { timeoutMs: 60_000, signal }).catch((error: unknown) => error);
          await Promise.resolve();
          reset();
          leak(await lost);
          // Waits for the next connection.
          await zk.getData('/answered', { timeoutMs: 60_000, signal });
        });
      const growth = await run(socketReconnects, () => undefined);
      console.log(`${socketReconnects} reconnects over sockets: ${growth} bytes more`);
      expect(growth).toBeLessThan(slackBytes);
      expect(getEventListeners(signal, 'abort')).toHaveLength(0);
      const kept: Buffer[] = [];
      const leftBehind = (slackBytes * 2) / leakySocketReconnects;
      expect(await run(leakySocketReconnects, () => kept.push(Buffer.alloc(leftBehind)))).toBeGreaterThan(slackBytes);
      await tearDown();
      await zk.close();
      await server.stop();
    });
  });
});
