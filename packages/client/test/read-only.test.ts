/** B39: a client that accepts servers without a quorum, and looks for one with a quorum. */
import { ErrorCode, OpCode } from '@tskeeper/protocol';
import { ManualClock, SeededRandom } from '@tskeeper/runtime';
import { describe, expect, it } from 'vitest';
import { type Client, connect, type ConnectOptions, type WatchedEvent } from '../src/index.ts';
import { settle } from './support/outcomes.ts';
import { type ScriptedCnxn, ScriptedTransport } from './support/scripted-transport.ts';
import { connectResponse, describeFrames, reply } from './support/server-frames.ts';

type Mode = 'rw' | 'ro' | 'silent' | 'down';

/**
 * Servers without a tree: nothing can be read; writes are NoNode with a quorum and NotReadOnly
 * without.
 */
class Ensemble {
  readonly clock = new ManualClock(1_000_000);
  readonly transport = new ScriptedTransport();
  readonly modes: Record<string, Mode>;
  /** Handshakes, requests and probes, as `a: connect ...`. */
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

  /** The connection of the session: the newest that was not closed. */
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
      // As ZooKeeper does with clients that do not accept read-only servers.
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

describe('B39: a client that accepts read-only servers', () => {
  it('is connected read-only, reads, and its writes fail with NotReadOnly, which is retryable', async () => {
    const ensemble = new Ensemble({ a: 'ro' });
    const heard: string[] = [];
    const zk = await ensemble.connect({ onState: ({ state }) => void heard.push(state) });
    expect([zk.state, heard]).toEqual(['connectedReadOnly', ['ConnectedReadOnly']]);
    expect(await ensemble.until(zk.exists('/a'))).toBe(null);
    const { outcome, error } = await ensemble.until(settle(zk.setData('/a', 'x')));
    expect([outcome, error!.retryable]).toEqual(['NotReadOnly refused', true]);
  });

  it('connects to no read-only server without the option', async () => {
    const ensemble = new Ensemble({ a: 'ro' });
    const { outcome } = await settle(ensemble.connect({ readOnly: false, connectTimeoutMs: 5000 }));
    expect(outcome).toBe('ConnectionLoss notSent');
    expect(new Set(ensemble.asked)).toEqual(new Set(['a: connect zxid=0 timeout=9000 session=0x0 password=zeros']));
  });

  it('probes the other servers and its own in turn for a quorum, less and less often, each for at most a second', async () => {
    const ensemble = new Ensemble({ a: 'ro', b: 'silent', c: 'down' });
    const zk = await ensemble.connect();
    const begun = ensemble.clock.now().elapsedMs;
    await ensemble.pass(30_000);
    expect(zk.state).toBe('connectedReadOnly');
    const probes = ensemble.asked.filter((line) => line.endsWith('isro'));
    expect(new Set(probes)).toEqual(new Set(['a: isro', 'b: isro']));
    const pauses = ensemble.probedAtMs.map((ms, at) => ms - (ensemble.probedAtMs[at - 1] ?? begun));
    expect(pauses.length).toBeLessThan(10);
    // No unanswered probe is left.
    expect(ensemble.transport.cnxns.filter((cnxn) => !cnxn.over && cnxn !== ensemble.cnxn && cnxn.address.host !== 'c')).toHaveLength(0);
  });

  it('A89: moves to a server with a quorum as soon as one answers; no call is lost, and the session moves if it is known there', async () => {
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
    expect([zk.state, zk.connectedServer, zk.sessionId]).toEqual(['connected', 'b:2181', sessionId]);
    expect(new Set(await ensemble.until(Promise.all(calls)))).toEqual(new Set(['absent']));
    expect(heard).toEqual(['SyncConnected', 'Disconnected', 'ConnectedReadOnly', 'Disconnected', 'SyncConnected']);
    const [hello, watches] = ensemble.asked.filter((line) => line.startsWith('b: ') && !line.endsWith('isro'));
    expect(hello).toBe('b: connect zxid=7 timeout=9000 session=0x101 password=0707 readOnly');
    expect(watches).toContain('"/w"');
    expect(events).toEqual(['Disconnected', 'ConnectedReadOnly', 'Disconnected', 'SyncConnected']);
    expect((await ensemble.until(settle(zk.setData('/a', 'x')))).outcome).toBe('NoNode refused');
  });

  it('gets a new session with the same watches when it moves, if a read-only server had opened its session', async () => {
    const ensemble = new Ensemble({ a: 'ro', b: 'down' });
    const zk = await ensemble.connect();
    const { sessionId } = zk;
    await ensemble.until(zk.exists('/w', { watch: watcher().watch }));
    ensemble.cnxn.sink.closed(undefined);
    // No server knows its session, so it cannot be suspended.
    expect(zk.state).toBe('connecting');
    await ensemble.pass(2000);
    expect(zk.state).toBe('connectedReadOnly');
    ensemble.modes['b'] = 'rw';
    ensemble.asked.length = 0;
    for (let round = 0; round < 1000 && zk.state !== 'connected'; round++) await ensemble.pass(50);
    expect([zk.state, zk.connectedServer]).toEqual(['connected', 'b:2181']);
    expect(zk.sessionId).not.toBe(sessionId);
    expect(ensemble.asked.find((line) => line.startsWith('b: connect'))).toContain('session=0x0');
    expect(ensemble.asked.find((line) => line.startsWith('b: setWatches'))).toContain('"/w"');
  });

  it('B53: continues a rejected guaranteed delete in the background until there is a quorum again', async () => {
    const ensemble = new Ensemble({ a: 'rw' });
    const zk = await ensemble.connect();
    ensemble.modes['a'] = 'ro';
    ensemble.cnxn.sink.closed(undefined);
    await ensemble.pass(1000);
    const { outcome, error } = await ensemble.until(settle(zk.delete('/lock', { guaranteed: true })));
    expect([outcome, error!.reason]).toEqual(['NotReadOnly refused', 'the delete continues in the background']);
    ensemble.modes['a'] = 'rw';
    ensemble.asked.length = 0;
    ensemble.cnxn.sink.closed(undefined);
    await ensemble.pass(10_000);
    // A server that accepts writes has answered NoNode, which is final.
    expect(ensemble.asked.filter((line) => line.startsWith('a: delete'))).toHaveLength(1);
  });

  it('repeats a write until there is a quorum', async () => {
    const ensemble = new Ensemble({ a: 'ro' });
    const zk = await ensemble.connect({ retry: { baseDelayMs: 100, maxDelayMs: 200, maxAttempts: 100 } });
    const write = settle(zk.setData('/a', 'x'));
    await ensemble.pass(2000);
    ensemble.modes['a'] = 'rw';
    ensemble.cnxn.sink.closed(undefined);
    // A server that accepts writes has answered NoNode.
    expect((await ensemble.until(write)).outcome).toBe('NoNode refused');
    expect(zk.state).toBe('connected');
  });
});

function watcher(): { readonly events: string[]; readonly watch: (event: WatchedEvent) => void } {
  const events: string[] = [];
  return { events, watch: ({ state }) => void events.push(state) };
}
