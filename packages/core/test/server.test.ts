import { OpCode, operations, Reader, Writer, writeConnectRequest } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { coreDefaults, type CoreOptions, type ClientOutput, type TxnLog, silentObserver, Server } from '../src/index.ts';
import { Script } from './support/script.ts';
import { standaloneSequencer } from '../src/request/local-sequencer.ts';

const now = { elapsedMs: 1000, wallMs: 1_700_000_000_000 };
const context = { remoteAddress: '127.0.0.1', remotePort: 1, localPort: 2181, secure: false, peerCertificate: undefined };

/** An output that counts frames and can be declared full. */
class CountingOut implements ClientOutput, TxnLog {
  readonly writer = new Writer();
  full = false;
  lastAppended = 0;
  reply(): Writer {
    return this.writer;
  }
  isFull(): boolean {
    return this.full;
  }
  close(): void {}
  append(zxid: number): void {
    this.lastAppended = zxid;
  }
  /** Frames written since the last call. */
  frames(): number {
    const reader = new Reader(this.writer.written());
    let count = 0;
    for (; reader.remaining > 0; count++) {
      const length = reader.int32();
      reader.offset += length;
    }
    this.writer.clear();
    return count;
  }
}

function frame(write: (writer: Writer) => void): Reader {
  const writer = new Writer();
  write(writer);
  return new Reader(Buffer.from(writer.written()));
}

function request(xid: number, opCode: number, body: (writer: Writer) => void): Reader {
  return frame((writer) => {
    writer.int32(xid);
    writer.int32(opCode);
    body(writer);
  });
}

function connectRequest(): Reader {
  const hello = { protocolVersion: 0, lastZxidSeen: 0, timeOut: 10_000, sessionId: 0n, passwd: Buffer.alloc(16), readOnly: false };
  return frame((writer) => writeConnectRequest(writer, hello));
}

function connected(options: Partial<CoreOptions> = {}): { out: CountingOut; core: Server } {
  const out = new CountingOut();
  const core = new Server({ ...coreDefaults, ...options }, out, { uint32: () => 7 }, silentObserver, now, standaloneSequencer(out));
  core.connect(1, context, now);
  core.frame(1, connectRequest(), now);
  core.appended(out.lastAppended, now);
  out.frames();
  return { out, core };
}

const setRoot = (xid: number): Reader =>
  request(xid, OpCode.setData, (writer) => operations.setData.request.write(writer, { path: '/', data: Buffer.alloc(1), version: -1 }));
const getRoot = (xid: number): Reader =>
  request(xid, OpCode.getData, (writer) => operations.getData.request.write(writer, { path: '/', watch: false }));

const setWatches = (xid: number, paths: number): Reader =>
  request(xid, OpCode.setWatches, (writer) =>
    operations.setWatches.request.write(writer, {
      relativeZxid: 0,
      dataWatches: [],
      existWatches: Array.from({ length: paths }, (_, at) => `/${at}`),
      childWatches: [],
    }),
  );

describe('replies to reads that wait for a write', () => {
  it('are held back while the output of their connection is full, and are sent when it has drained', () => {
    const { out, core } = connected();
    core.frame(1, setRoot(1), now);
    for (let xid = 2; xid <= 11; xid++) core.frame(1, getRoot(xid), now);
    out.full = true;
    core.appended(out.lastAppended, now);
    expect(out.frames()).toBe(1);
    core.drained(1, now);
    expect(out.frames()).toBe(0);
    out.full = false;
    core.drained(1, now);
    expect(out.frames()).toBe(10);
  });

  it('are sent when their connection has drained while a long request of another one is running', () => {
    const { out, core } = connected({ stepUnits: 1000 });
    core.connect(2, context, now);
    core.frame(2, connectRequest(), now);
    core.appended(out.lastAppended, now);
    core.frame(1, setRoot(1), now);
    for (let xid = 2; xid <= 11; xid++) core.frame(1, getRoot(xid), now);
    out.full = true;
    core.appended(out.lastAppended, now);
    out.frames();
    out.full = false;
    core.frame(2, setWatches(1, 2000), now);
    expect(core.isBusy).toBe(true);
    core.drained(1, now);
    for (let turns = 0; turns < 1000 && core.deadline() === 0; turns++) core.wake(now);
    expect([core.isBusy, out.frames()]).toEqual([false, 11]);
  });

  it('are not written to a closed connection', () => {
    const { out, core } = connected();
    core.frame(1, setRoot(1), now);
    core.frame(1, getRoot(2), now);
    core.disconnected(1, now);
    core.connect(1, context, now);
    core.appended(out.lastAppended, now);
    expect(out.frames()).toBe(0);
    expect(core.inspect.outstandingRequests()).toBe(0);
  });
});

describe('a request that waits because too many are outstanding', () => {
  it('keeps its session alive from the time of its arrival', () => {
    const script = new Script({ requestThrottleLimit: 1 });
    for (const line of ['a connects timeout=4000', 'appended', 'b connects timeout=4000', 'appended', 'a create /x "1"']) script.run(line);
    // The log is slow, so requests of b have to wait from now on.
    script.run('after 3000');
    expect([script.run('a ping'), script.run('b ping')]).toEqual([[], []]);
    expect(script.run('after 3000')).toEqual([]);
    expect(script.run('appended')).toEqual(['a <- create 0x3 /x', 'a <- ping 0x3 ok', 'b <- ping 0x3 ok']);
  });

  it('is checked with the credentials sent before it, which had to wait as well', () => {
    const script = new Script({ requestThrottleLimit: 1 });
    for (const line of ['a connects', 'appended', 'b connects', 'appended', 'a create /x "1"']) script.run(line);
    expect([script.run('b auth digest "bob:pw"'), script.run('b create /y "" acl=auth::31')]).toEqual([[], []]);
    expect(script.run('appended')).toEqual(['a <- create 0x3 /x', 'b <- auth 0x0 ok', 'append 0x4 create /y']);
  });

  it('does not prevent a client from resuming its session', () => {
    const script = new Script({ requestThrottleLimit: 1 });
    for (const line of ['a connects', 'appended', 'b connects', 'appended', 'b goes away', 'a create /x "1"']) script.run(line);
    expect(script.run('c connects as b')).toEqual(['c <- session again timeout=10000']);
    expect(script.run('d connects')).toEqual([]);
  });
});

describe('outstanding requests', () => {
  const setMuch = (xid: number): Reader =>
    request(xid, OpCode.setData, (writer) =>
      operations.setData.request.write(writer, { path: '/', data: Buffer.alloc(1_000_000), version: -1 }),
    );

  it('hold a bounded amount of memory: a connection with large waiting writes is not read', () => {
    const { out, core } = connected();
    let xid = 0;
    while (core.wantsInput(1) && xid < 1000) core.frame(1, setMuch(++xid), now);
    expect(xid).toBe(68);
    core.connect(2, context, now);
    expect(core.wantsInput(2)).toBe(true);
    core.appended(out.lastAppended, now);
    while ((core.deadline() ?? 1) <= 0) core.wake(now);
    expect(core.wantsInput(1)).toBe(true);
  });

  it('count while they are held, by number and by size: a connection with held requests is not read above the limits', () => {
    for (const limits of [{ globalOutstandingLimit: 10 }, { inFlightBytesMax: 5_000_000 }]) {
      const { out, core } = connected({ requestThrottleLimit: 1, requestThrottleStallMs: 0, ...limits });
      core.frame(1, setRoot(1), now);
      let held = 0;
      while (core.wantsInput(1) && held < 100) core.frame(1, setMuch(++held + 1), now);
      expect(held).toBeLessThan(12);
      core.connect(3, context, now);
      expect(core.wantsInput(3)).toBe(true);
      for (let round = 0; round < 50; round++) {
        core.appended(out.lastAppended, now);
        core.wake(now);
      }
      expect(core.inspect.lastZxid()).toBe(2 + held);
      for (let again = 0; again < 5; again++) {
        core.frame(1, setRoot(100 + again), now);
        expect(core.wantsInput(1)).toBe(true);
      }
    }
  });

  it('are not processed before a held handshake of their connection', () => {
    const { out, core } = connected({ requestThrottleLimit: 1, requestThrottleStallMs: 0 });
    core.frame(1, setRoot(1), now);
    core.connect(2, context, now);
    core.frame(2, connectRequest(), now);
    expect(core.wantsInput(2)).toBe(false);
    // Frames of a broken connection are still delivered.
    core.lastFrame(2, setMuch(1), now);
    core.frame(2, setMuch(2), now);
    for (let round = 0; round < 10; round++) {
      core.appended(out.lastAppended, now);
      core.wake(now);
    }
    expect(core.inspect.lastZxid()).toBe(5);
  });

  it('leave each address its share: one that exceeds the limits does not prevent others from having several', () => {
    for (const limits of [{ globalOutstandingLimit: 12 }, { inFlightBytesMax: 12_000_000 }]) {
      const { out, core } = connected(limits);
      for (const [id, remoteAddress] of [
        [2, '10.0.6.6'],
        [3, '10.0.6.6'],
        [4, '10.0.9.1'],
      ] as const) {
        core.connect(id, { ...context, remoteAddress }, now);
        core.frame(id, connectRequest(), now);
        core.appended(out.lastAppended, now);
        while ((core.deadline() ?? 1) <= 0) core.wake(now);
      }
      const fill = (id: number): number => {
        let sent = 0;
        while (core.wantsInput(id) && sent < 100) core.frame(id, setMuch(++sent), now);
        return sent;
      };
      const greedy = fill(2);
      expect(greedy).toBeGreaterThan(10);
      expect(fill(3)).toBe(1);
      expect(fill(4)).toBeGreaterThan(5);
      // Two addresses may use half each; the first exceeds that already.
      expect(fill(2) + fill(3)).toBe(0);
      core.appended(out.lastAppended, now);
      while ((core.deadline() ?? 1) <= 0) core.wake(now);
      expect(fill(2)).toBeGreaterThan(10);
      for (const id of [2, 3, 4]) core.disconnected(id, now);
      expect(core.inspect.outstandingRequests()).toBe(0);
    }
  });

  it('are forgotten when their connection closes, except those in the log', () => {
    const { out, core } = connected();
    let xid = 0;
    while (core.wantsInput(1)) core.frame(1, xid++ === 0 ? setRoot(xid) : setMuch(xid), now);
    core.disconnected(1, now);
    expect(core.inspect.outstandingRequests()).toBe(0);
    core.appended(out.lastAppended, now);
    while (core.inspect.lastZxid() < out.lastAppended) core.wake(now);
  });
});
