/** B39: a client that makes do with servers that have lost their quorum, and looks for one that has not. */
import { ErrorCode, OpCode } from '@tskeeper/protocol';
import { ManualClock, SeededRandom } from '@tskeeper/runtime';
import { describe, expect, it } from 'vitest';
import { type Client, connect, type ConnectOptions, type WatchedEvent } from '../src/index.ts';
import { settle } from './support/outcomes.ts';
import { type ScriptedCnxn, ScriptedTransport } from './support/scripted-transport.ts';
import { connectResponse, describeFrames, reply } from './support/server-frames.ts';

type Mode = 'rw' | 'ro' | 'silent' | 'down';

/** Servers without a tree: nothing is there to be read, writes are NoNode where there is a quorum and NotReadOnly where there is none. */
class Ensemble {
  readonly clock = new ManualClock(1_000_000);
  readonly transport = new ScriptedTransport();
  readonly modes: Record<string, Mode>;
  /** Handshakes, requests and questions, as `a: connect ...`. */
  readonly asked: string[] = [];
  readonly probedAtMs: number[] = [];
  #sessions = 0x100n;
  #served = 0;
  readonly #answered = new Map<ScriptedCnxn, number>();

  constructor(modes: Record<string, Mode>) {
    this.modes = modes;
  }

  options(options: ConnectOptions = {}): ConnectOptions {
    const random = new SeededRandom(1);
    return { sessionTimeoutMs: 9000, readOnly: true, transport: this.transport, clock: this.clock, random, ...options };
  }

  connect(options: ConnectOptions = {}, servers = Object.keys(this.modes).join()): Promise<Client> {
    return this.until(connect(servers, this.options(options)));
  }

  /** The connection of the session, which is the youngest that has not been given up. */
  get cnxn(): ScriptedCnxn {
    return this.transport.cnxns.findLast((cnxn) => !cnxn.over)!;
  }

  async pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 10) {
      await this.#settle();
      this.clock.advance(Math.min(10, left));
    }
    await this.#settle();
  }

  async until<T>(promise: Promise<T>): Promise<T> {
    const progress = { done: false };
    const note = () => {
      progress.done = true;
    };
    promise.then(note, note);
    for (let step = 0; step < 10_000 && !progress.done; step++) await this.pass(10);
    if (!progress.done) throw new Error('not settled');
    return promise;
  }

  async #settle(): Promise<void> {
    for (let round = 0; round < 5; round++) {
      this.#serve();
      for (let turn = 0; turn < 10; turn++) await Promise.resolve();
    }
  }

  #serve(): void {
    const { cnxns } = this.transport;
    for (; this.#served < cnxns.length; this.#served++) {
      const cnxn = cnxns[this.#served]!;
      if (this.modes[cnxn.address.host] === 'down') cnxn.sink.closed('ECONNREFUSED');
      else cnxn.sink.connected();
    }
    for (const cnxn of cnxns) {
      for (let at = this.#answered.get(cnxn) ?? 0; at < cnxn.sent.length; at++) {
        this.#answered.set(cnxn, at + 1);
        this.#hear(cnxn, cnxn.sent[at]!, at === 0);
      }
    }
  }

  #hear(cnxn: ScriptedCnxn, bytes: Buffer, isFirst: boolean): void {
    const { host } = cnxn.address;
    const mode = this.modes[host];
    if (bytes.toString() === 'isro') {
      this.asked.push(`${host}: isro`);
      this.probedAtMs.push(this.clock.now().elapsedMs);
      if (mode === 'silent') return;
      cnxn.sink.received(Buffer.from(mode === 'rw' ? 'r' : 'ro\n'));
      if (mode === 'rw') cnxn.sink.received(Buffer.from('w\n'));
      return;
    }
    for (const line of describeFrames(bytes, isFirst)) this.asked.push(`${host}: ${line}`);
    if (mode === 'silent') return;
    if (isFirst) {
      // As ZooKeeper does with those that have not said that they would take it.
      if (mode === 'ro' && !this.asked.at(-1)!.endsWith('readOnly')) return cnxn.sink.closed(undefined);
      const shown = bytes.readBigInt64BE(4 + 4 + 8 + 4);
      cnxn.sink.received(connectResponse({ session: shown === 0n ? ++this.#sessions : shown, readOnly: mode === 'ro' }));
      return;
    }
    for (let at = 0; at < bytes.length; at += 4 + bytes.readInt32BE(at)) {
      const [xid, type] = [bytes.readInt32BE(at + 4), bytes.readInt32BE(at + 8)];
      const isWrite = type === OpCode.setData || type === OpCode.delete;
      const err = xid < 0 ? ErrorCode.Ok : isWrite && mode === 'ro' ? ErrorCode.NotReadOnly : ErrorCode.NoNode;
      cnxn.sink.received(reply(xid, 7, err));
    }
  }
}

describe('B39: a client that takes read-only servers', () => {
  it('is connected read-only, reads, and is told that writes are not taken, which may pass', async () => {
    const ensemble = new Ensemble({ a: 'ro' });
    const heard: string[] = [];
    const zk = await ensemble.connect({ onState: ({ state }) => void heard.push(state) });
    expect([zk.state, heard]).toEqual(['connectedReadOnly', ['ConnectedReadOnly']]);
    expect(await ensemble.until(zk.exists('/a'))).toBe(null);
    const { outcome, error } = await ensemble.until(settle(zk.setData('/a', 'x')));
    expect([outcome, error!.retryable]).toEqual(['NotReadOnly refused', true]);
  });

  it('one that does not take them is never connected to one', async () => {
    const ensemble = new Ensemble({ a: 'ro' });
    const { outcome } = await settle(ensemble.connect({ readOnly: false, connectTimeoutMs: 5000 }));
    expect(outcome).toBe('ConnectionLoss notSent');
    expect(new Set(ensemble.asked)).toEqual(new Set(['a: connect zxid=0 timeout=9000 session=0x0 password=zeros']));
  });

  it('asks the others in turn, ever less often and for a second at most, and itself as well, which may be in a quorum again', async () => {
    const ensemble = new Ensemble({ a: 'ro', b: 'silent', c: 'down' });
    const zk = await ensemble.connect();
    const begun = ensemble.clock.now().elapsedMs;
    await ensemble.pass(30_000);
    expect(zk.state).toBe('connectedReadOnly');
    const probes = ensemble.asked.filter((line) => line.endsWith('isro'));
    expect(new Set(probes)).toEqual(new Set(['a: isro', 'b: isro']));
    const pauses = ensemble.probedAtMs.map((ms, at) => ms - (ensemble.probedAtMs[at - 1] ?? begun));
    expect(pauses.length).toBeLessThan(10);
    // Nothing is left of those that were not answered.
    expect(ensemble.transport.cnxns.filter((cnxn) => !cnxn.over && cnxn !== ensemble.cnxn && cnxn.address.host !== 'c')).toHaveLength(0);
  });

  it('A89: moves to a server with a quorum as soon as one answers; no call is lost, and the session goes with it if it is known there', async () => {
    const ensemble = new Ensemble({ a: 'rw', b: 'down' });
    const heard: string[] = [];
    const zk = await ensemble.connect({ onState: ({ state }) => void heard.push(state) });
    const { sessionId } = zk;
    const { watch, events } = watcher();
    await ensemble.until(zk.exists('/w', { watch }));
    // The server loses its quorum, and with it its clients.
    ensemble.modes['a'] = 'ro';
    ensemble.cnxn.sink.closed(undefined);
    await ensemble.pass(1000);
    expect([zk.state, zk.sessionId]).toEqual(['connectedReadOnly', sessionId]);
    ensemble.modes['b'] = 'rw';
    ensemble.asked.length = 0;
    const calls: Promise<string>[] = [];
    for (let round = 0; round < 200 && zk.state !== 'connected'; round++) {
      calls.push(settle(zk.exists('/x')).then(({ outcome, result }) => (result === null ? 'absent' : outcome)));
      await ensemble.pass(50);
    }
    expect([zk.state, zk.connectedTo, zk.sessionId]).toEqual(['connected', 'b:2181', sessionId]);
    expect(new Set(await ensemble.until(Promise.all(calls)))).toEqual(new Set(['absent']));
    expect(heard).toEqual(['SyncConnected', 'Disconnected', 'ConnectedReadOnly', 'Disconnected', 'SyncConnected']);
    const [hello, watches] = ensemble.asked.filter((line) => line.startsWith('b: ') && !line.endsWith('isro'));
    expect(hello).toBe('b: connect zxid=7 timeout=9000 session=0x101 password=0707 readOnly');
    expect(watches).toContain('"/w"');
    expect(events).toEqual(['Disconnected', 'ConnectedReadOnly', 'Disconnected', 'SyncConnected']);
    expect((await ensemble.until(settle(zk.setData('/a', 'x')))).outcome).toBe('NoNode refused');
  });

  it('a session that a read-only server has opened ends with the move: there is another, with the same watches', async () => {
    const ensemble = new Ensemble({ a: 'ro', b: 'down' });
    const zk = await ensemble.connect();
    const { sessionId } = zk;
    await ensemble.until(zk.exists('/w', { watch: watcher().watch }));
    ensemble.cnxn.sink.closed(undefined);
    // Nobody knows its session, so it has none that could be suspended.
    expect(zk.state).toBe('connecting');
    await ensemble.pass(2000);
    expect(zk.state).toBe('connectedReadOnly');
    ensemble.modes['b'] = 'rw';
    ensemble.asked.length = 0;
    for (let round = 0; round < 1000 && zk.state !== 'connected'; round++) await ensemble.pass(50);
    expect([zk.state, zk.connectedTo]).toEqual(['connected', 'b:2181']);
    expect(zk.sessionId).not.toBe(sessionId);
    expect(ensemble.asked.find((line) => line.startsWith('b: connect'))).toContain('session=0x0');
    expect(ensemble.asked.find((line) => line.startsWith('b: setWatches'))).toContain('"/w"');
  });

  it('B53: a guaranteed delete that is not taken goes on in the background, until there is a quorum again', async () => {
    const ensemble = new Ensemble({ a: 'rw' });
    const zk = await ensemble.connect();
    ensemble.modes['a'] = 'ro';
    ensemble.cnxn.sink.closed(undefined);
    await ensemble.pass(1000);
    const { outcome, error } = await ensemble.until(settle(zk.delete('/lock', { guaranteed: true })));
    expect([outcome, error!.reason]).toEqual(['NotReadOnly refused', 'the delete goes on in the background']);
    ensemble.modes['a'] = 'rw';
    ensemble.asked.length = 0;
    ensemble.cnxn.sink.closed(undefined);
    await ensemble.pass(10_000);
    // Judged by a server that takes writes: there is no such znode, and that is the end of it.
    expect(ensemble.asked.filter((line) => line.startsWith('a: delete'))).toHaveLength(1);
  });

  it('a write that is made again until it is taken waits for the quorum', async () => {
    const ensemble = new Ensemble({ a: 'ro' });
    const zk = await ensemble.connect({ retry: { pauseMs: 100, pauseMsMax: 200, attempts: 100 } });
    const write = settle(zk.setData('/a', 'x'));
    await ensemble.pass(2000);
    ensemble.modes['a'] = 'rw';
    ensemble.cnxn.sink.closed(undefined);
    // Judged by a server that takes writes: there is no such znode.
    expect((await ensemble.until(write)).outcome).toBe('NoNode refused');
    expect(zk.state).toBe('connected');
  });
});

function watcher(): { readonly events: string[]; readonly watch: (event: WatchedEvent) => void } {
  const events: string[] = [];
  return { events, watch: ({ state }) => void events.push(state) };
}
