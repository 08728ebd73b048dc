import { describe, expect, test } from 'vitest';
import type { FourLetterWord } from '../../src/internal.ts';
import { FakeCore, testFacts } from './fake-core.ts';
import { frame, handshake, PortRig } from './port-rig.ts';

describe('frames', () => {
  test('a handshake and a request reach the core, and the replies reach the client', async () => {
    const rig = await PortRig.open();
    const client = rig.join();
    client.send(frame('hello'));
    rig.settle();
    expect(client.frames()).toEqual(['welcome', 'hello']);
    expect(rig.core.contexts.get(0)).toMatchObject({ remoteAddress: '10.0.9.1', localPort: 2181, secure: false });
  });

  test('input that arrives byte by byte makes the same frames', async () => {
    const rig = await PortRig.open();
    rig.wire.conditionsOf = () => ({ pieceBytes: 1 });
    const client = rig.join();
    client.send(Buffer.concat([frame('one'), frame(''), frame('three')]));
    rig.settle();
    expect(rig.core.bodies).toEqual(['one', '', 'three']);
    expect(client.frames()).toEqual(['welcome', 'one', '', 'three']);
    expect(rig.port.retainedInputBytes).toBe(0);
  });

  test('requests sent right after the handshake are served after it', async () => {
    const rig = await PortRig.open();
    const client = rig.dial();
    client.send(Buffer.concat([handshake(), frame('a'), frame('b')]));
    rig.settle();
    expect(client.frames()).toEqual(['welcome', 'a', 'b']);
  });

  test('all replies of a turn are sent in one write per connection', async () => {
    const rig = await PortRig.open();
    const client = rig.join();
    const before = rig.network.sendCalls;
    client.send(Buffer.concat(Array.from({ length: 100 }, (_, index) => frame(`request ${index}`))));
    rig.settle();
    expect(client.frames()).toHaveLength(101);
    expect(rig.network.sendCalls - before).toBe(1);
  });

  test('a long pipeline is served over several turns, in order, while others are served', async () => {
    const rig = await PortRig.open();
    const [greedy, modest] = [rig.join(), rig.join()];
    const turns = rig.turns;
    const sent = Array.from({ length: 5000 }, (_, index) => `${index}`);
    greedy.send(Buffer.concat(sent.map((body) => frame(body))));
    modest.send(frame('modest'));
    rig.settle();
    expect(greedy.frames().slice(1)).toEqual(sent);
    expect(rig.turns - turns).toBeGreaterThan(2);
    // At most 256 frames of the greedy client were served before it.
    expect(rig.core.bodies.indexOf('modest')).toBeLessThan(300);
  });

  test('F15: a reset at any byte of a frame drops the whole frame and leaves no state', async () => {
    const bytes = Buffer.concat([handshake(), frame('first'), frame('second')]);
    for (let cut = 0; cut <= bytes.length; cut++) {
      const rig = await PortRig.open();
      const client = rig.dial();
      client.cnxn.forward.resetAfter(cut);
      client.send(bytes);
      rig.settle();
      const expected = cut < 58 ? [] : cut < bytes.length ? ['first'] : ['first', 'second'];
      expect(rig.core.bodies, `cut after ${cut} bytes`).toEqual(expected);
      expect(rig.core.openCount).toBe(0);
      expect([rig.port.cnxnCount, rig.port.inFlightBytes, rig.network.streamCount]).toEqual([0, 0, 0]);
    }
  });

  test.each([
    ['a length above jute.maxbuffer', 0x100000],
    ['a negative length', -2],
    ['an HTTP request', Buffer.from('GET / HTTP/1.1').readInt32BE(0)],
  ])('F30, F31: %s closes that connection without a reply and with one log line, and no other', async (_what, length) => {
    const rig = await PortRig.open();
    const other = rig.join();
    const client = rig.join();
    const bad = Buffer.alloc(10);
    bad.writeInt32BE(length);
    client.send(bad);
    rig.settle();
    expect(client.closed).toBe('end');
    expect(client.frames()).toEqual(['welcome']);
    expect(rig.lines).toHaveLength(1);
    expect(rig.lines[0]).toMatch(/10\.0\.9\.1:\d+ was closed: expected a frame of 0 to 1048575 bytes/);
    other.send(frame('still here'));
    rig.settle();
    expect(other.frames()).toEqual(['welcome', 'still here']);
  });

  test('A3, C3-14: a frame of exactly jute.maxbuffer bytes is served, one byte more is not', async () => {
    const rig = await PortRig.open({ options: { juteMaxBuffer: 1000 } });
    const client = rig.join();
    client.send(frame('x'.repeat(1000)));
    rig.settle();
    expect(rig.core.frames).toHaveLength(1);
    client.send(frame('x'.repeat(1001)));
    rig.settle();
    expect(rig.core.frames).toHaveLength(1);
    expect(client.closed).toBe('end');
  });

  test('E20: frames after one that made the core close the connection are never processed', async () => {
    const rig = await PortRig.open();
    const client = rig.join();
    rig.core.answer = (cnxn, body) => {
      rig.core.write(cnxn, body);
      if (body.toString() === 'bye') rig.core.close(cnxn);
    };
    client.send(Buffer.concat([frame('bye'), frame('ghost')]));
    client.send(frame('ghost'));
    rig.settle();
    expect(rig.core.bodies).toEqual(['bye']);
    expect(client.frames()).toEqual(['welcome', 'bye']);
    expect(client.closed).toBe('end');
    expect(rig.core.log.filter((line) => line.startsWith('disconnected'))).toHaveLength(1);
  });

  test('a write to a closed connection has no effect, and is counted', async () => {
    const rig = await PortRig.open();
    rig.join().reset();
    rig.settle();
    rig.core.write(0, Buffer.from('late'));
    rig.core.write(77, Buffer.alloc(200_000));
    rig.runTurn(() => undefined);
    expect(counterOf(rig, 'stale_replies')).toBe(2);
  });

  test('a cnxn is reported as disconnected before its number is used again', async () => {
    const rig = await PortRig.open();
    for (let round = 0; round < 5; round++) {
      const client = rig.join();
      client.send(frame('x'));
      rig.settle();
      client.reset();
      rig.settle();
    }
    expect(rig.core.log).toEqual(Array.from({ length: 5 }, () => ['connect 0', 'disconnected 0']).flat());
    expect(counterOf(rig, 'connection_drop_count')).toBe(5);
  });
});

describe('back-pressure', () => {
  test('a connection is not read, and delivers no frame, while the core does not accept its input', async () => {
    const rig = await PortRig.open();
    const client = rig.join();
    rig.core.answer = (cnxn, body) => {
      rig.core.write(cnxn, body);
      if (body.toString() === '1') rig.core.throttled.add(cnxn);
    };
    client.send(Buffer.concat([frame('1'), frame('2'), frame('3')]));
    rig.settle();
    expect(rig.core.bodies).toEqual(['1']);
    // It is not read: further bytes stay in the network.
    const received = rig.network.receivedBytes;
    client.send(frame('4'));
    rig.settle();
    expect(rig.network.receivedBytes).toBe(received);
    rig.core.throttled.clear();
    rig.runTurn(() => undefined);
    rig.settle();
    expect(client.frames()).toEqual(['welcome', '1', '2', '3', '4']);
  });

  test('while the core is busy no connection delivers frames, and afterwards all do', async () => {
    const rig = await PortRig.open();
    const clients = [rig.join(), rig.join(), rig.dial()];
    rig.core.busyTurns = 50;
    const turns = rig.turns;
    clients[0]!.send(frame('a'));
    clients[1]!.send(frame('b'));
    clients[2]!.send(handshake());
    rig.settle();
    expect(rig.turns - turns).toBeGreaterThanOrEqual(50);
    expect(rig.core.bodies).toEqual(['a', 'b']);
    expect(clients[2]!.frames()).toEqual(['welcome']);
  });

  test('all frames that a client sent before it closed its connection are served, however long that takes', async () => {
    const rig = await PortRig.open();
    const client = rig.join();
    rig.core.busyTurns = 50;
    client.send(Buffer.concat(Array.from({ length: 600 }, (_, index) => frame(`${index}`))));
    client.end();
    rig.settle();
    expect(rig.core.bodies).toHaveLength(600);
    expect(rig.core.log).toEqual(['connect 0', 'disconnected 0']);
    expect(client.frames()).toHaveLength(601);
    expect(client.closed).toBe('end');
  });

  test('when a connection breaks, the core first receives the frames that have arrived', async () => {
    const rig = await PortRig.open();
    rig.join();
    rig.core.busyTurns = 50;
    // In one turn: no later turn could process it.
    rig.runTurn((now) => {
      const bytes = Buffer.concat([frame('a'), frame('b'), frame('cut off').subarray(0, 8)]);
      rig.port.received({ count: 1, streams: [0], buffers: [bytes], starts: [0], ends: [bytes.length] }, now);
      rig.port.closed(0, 'ECONNRESET', now);
    });
    expect(rig.core.log).toEqual(['connect 0', 'last frame of 0: a', 'last frame of 0: b', 'disconnected 0']);
    expect(rig.port.inFlightBytes).toBe(0);
  });

  test('a wake at a deadline leaves no deadline at the same moment, whatever the fraction of a millisecond', async () => {
    const rig = await PortRig.open();
    // At this time, sums exceed 2^20, where there is one bit less for the fraction.
    rig.clock.advance(2 ** 20 - 5000 - rig.clock.now().elapsedMs);
    for (let count = 1; count <= 200; count++) {
      rig.clock.advance(1 / 7);
      rig.dial();
      const due = rig.port.deadline()!;
      const now = { elapsedMs: due, wallMs: 0 };
      rig.port.wake(now);
      rig.port.endTurn(now);
      // Another wake for the same moment would be the first of endlessly many.
      expect(rig.port.deadline() ?? Infinity).toBeGreaterThan(due);
    }
  });

  test('F32: above 1 MiB of waiting output a connection is not read', async () => {
    const rig = await PortRig.open();
    rig.wire.conditionsOf = (from) => (from === '10.0.0.1' ? { windowBytes: 64 * 1024 } : {});
    const client = rig.join();
    client.network.pause(client.stream);
    rig.core.answer = (cnxn) => rig.core.write(cnxn, Buffer.alloc(300_000));
    for (let index = 0; index < 50; index++) client.send(frame(`${index}`));
    rig.settle();
    expect(rig.core.frames.length).toBeLessThan(6);
    expect(rig.port.waitingOutputBytes).toBeLessThan(1.6 * 1024 * 1024);
    client.network.resume(client.stream);
    rig.settle();
    expect(rig.core.frames).toHaveLength(50);
    expect(client.frames()).toHaveLength(51);
    expect(rig.port.inFlightBytes).toBe(0);
  });

  test('large replies that are sent at once do not delay the requests after them', async () => {
    const rig = await PortRig.open();
    rig.wire.conditionsOf = () => ({ windowBytes: Infinity });
    const client = rig.join();
    rig.core.answer = (cnxn) => rig.core.write(cnxn, Buffer.alloc(1_500_000));
    client.send(Buffer.concat(Array.from({ length: 10 }, () => frame('x'))));
    rig.settle();
    expect(client.frames()).toHaveLength(11);
  });

  test('F32: a client that reads nothing for 10 seconds while more than 4 MiB wait after the reply in progress is closed', async () => {
    const core = new FakeCore();
    core.sessionTimeoutMs = 60_000;
    const rig = await PortRig.open({ core });
    rig.wire.conditionsOf = (from) => (from === '10.0.0.1' ? { windowBytes: 64 * 1024 } : {});
    const [slow, other] = [rig.join(), rig.join()];
    slow.network.pause(slow.stream);
    // Watch events arrive whether the client reads or not.
    rig.runTurn(() => core.write(0, Buffer.alloc(5_000_000)));
    rig.runTurn(() => core.write(0, Buffer.alloc(5_000_000)));
    rig.clock.advance(9_999);
    expect(core.openCount).toBe(2);
    rig.clock.advance(1);
    rig.settle();
    expect(core.log).toContain('disconnected 0');
    expect(slow.closed).toBe('ECONNRESET');
    expect(rig.port.inFlightBytes).toBe(0);
    expect(rig.lines.join()).toContain('has taken none of');
    other.send(frame('fine'));
    rig.settle();
    expect(other.frames()).toEqual(['welcome', 'fine']);
  });

  test('a client that reads one huge reply slowly is not closed', async () => {
    const core = new FakeCore();
    core.sessionTimeoutMs = 60_000;
    const rig = await PortRig.open({ core });
    rig.wire.conditionsOf = (from) => (from === '10.0.0.1' ? { windowBytes: 64 * 1024, pieceBytes: 64 * 1024, pieceIntervalMs: 200 } : {});
    const client = rig.join();
    rig.runTurn(() => core.write(0, Buffer.alloc(10_000_000)));
    rig.runTurn(() => core.write(0, Buffer.alloc(5_000_000)));
    rig.clock.advance(40_000);
    expect(core.openCount).toBe(1);
    rig.clock.advance(10_000);
    expect(client.received.length).toBe(11 + 15_000_008);
  });

  test('output that the network has not sent yet is not overwritten', async () => {
    const rig = await PortRig.open();
    rig.wire.conditionsOf = (from) => (from === '10.0.0.1' ? { windowBytes: 10 } : {});
    const client = rig.join();
    client.network.pause(client.stream);
    rig.settle();
    const other = rig.join();
    client.send(frame('a'.repeat(100)));
    rig.settle();
    for (let index = 0; index < 20; index++) {
      other.send(frame('b'.repeat(100)));
      rig.settle();
    }
    client.network.resume(client.stream);
    rig.settle();
    expect(client.frames()).toEqual(['welcome', 'a'.repeat(100)]);
  });

  test('output written before a close is sent to a slow reader before the connection ends', async () => {
    const rig = await PortRig.open();
    rig.wire.conditionsOf = (from) => (from === '10.0.0.1' ? { windowBytes: 1000 } : {});
    const client = rig.join();
    client.network.pause(client.stream);
    rig.core.answer = (cnxn) => {
      rig.core.write(cnxn, Buffer.alloc(100_000));
      rig.core.close(cnxn);
    };
    client.send(frame('x'));
    rig.settle();
    rig.clock.advance(5_000);
    client.network.resume(client.stream);
    rig.settle();
    expect(client.received.length).toBe(11 + 100_004);
    expect(client.closed).toBe('end');
  });
});

describe('limits', () => {
  test('an address may have maxClientCnxns connections, and another one after one has closed', async () => {
    const rig = await PortRig.open({ options: { maxClientCnxns: 2 } });
    const [first, second] = [rig.join(), rig.join()];
    const third = rig.dial();
    expect(third.closed).toBe('ECONNRESET');
    expect(rig.join('10.0.9.2').frames()).toEqual(['welcome']);
    expect(counterOf(rig, 'connection_rejected')).toBe(1);
    expect(rig.lines[0]).toContain('Raise maxClientCnxns');
    first.reset();
    rig.settle();
    expect(rig.join().frames()).toEqual(['welcome']);
    expect(second.closed).toBeUndefined();
  });

  test('all addresses together may have maxCnxns connections', async () => {
    const rig = await PortRig.open({ options: { maxCnxns: 3 } });
    for (let index = 1; index <= 3; index++) rig.join(`10.0.9.${index}`);
    expect(rig.dial('10.0.9.9').closed).toBe('ECONNRESET');
    expect(rig.port.cnxnCount).toBe(3);
  });

  test('F34: unless memory is ample new sessions are refused, and existing ones are resumed', async () => {
    const rig = await PortRig.open();
    for (const state of ['tight', 'full'] as const) {
      rig.port.memoryState = state;
      expect(rig.join().frames()).toEqual([]);
      const again = rig.dial();
      again.send(handshake(0x1234n));
      rig.settle();
      expect(again.frames()).toEqual(['welcome']);
    }
    expect(counterOf(rig, 'connection_rejected')).toBe(2);
    expect(rig.lines[0]).toContain('was refused a new session because memory is tight');
    rig.port.memoryState = 'ample';
    expect(rig.join().frames()).toEqual(['welcome']);
  });

  test('F34: unless memory is ample no more than 250 connections may be without a handshake', async () => {
    const rig = await PortRig.open({ options: { maxClientCnxns: 0 } });
    rig.port.memoryState = 'tight';
    const clients = Array.from({ length: 260 }, () => rig.dial());
    expect(clients.filter(({ closed }) => closed === 'ECONNRESET')).toHaveLength(10);
    rig.clock.advance(1000);
    expect(rig.dial().closed).toBeUndefined();
  });

  test('F27: of 20,000 connections without a handshake none outlives 10 seconds, and an honest client is served throughout', async () => {
    const rig = await PortRig.open({ options: { maxClientCnxns: 0 } });
    let most = 0;
    const answers: string[] = [];
    const honestVisit = (): string[] => {
      const honest = rig.join('10.0.9.9');
      rig.clock.advance(50);
      honest.send(frame('x'));
      rig.settle();
      return honest.frames();
    };
    for (let step = 0; step < 100; step++) {
      for (let index = 0; index < 200; index++) rig.dial(`10.1.0.${step}`);
      if (step % 20 === 10) answers.push(...honestVisit());
      rig.clock.advance(100);
      most = Math.max(most, rig.port.halfOpenCount);
    }
    expect(answers).toEqual(Array.from({ length: 5 }, () => ['welcome', 'x']).flat());
    // Each has a second, so the clients of ten steps and the limit of 250 may exist at a time.
    expect(most).toBeLessThanOrEqual(2250);
    expect(rig.port.halfOpenCount).toBeLessThanOrEqual(2250);
    rig.clock.advance(10_000);
    expect(rig.port.halfOpenCount).toBe(0);
    // There is not a line for each of them.
    expect(rig.lines.length).toBeLessThan(200);
    expect(rig.port.inFlightBytes).toBe(0);
  });

  test('thousands of concurrent, slow handshakes all reach the core', async () => {
    const rig = await PortRig.open({ options: { maxClientCnxns: 0 } });
    rig.wire.conditionsOf = () => ({ delayMs: 200 });
    const clients = Array.from({ length: 3000 }, () => rig.dial());
    rig.clock.advance(400);
    for (const client of clients) client.send(handshake());
    rig.clock.advance(1000);
    expect(clients.every((client) => client.frames()[0] === 'welcome')).toBe(true);
    expect(rig.port.halfOpenCount).toBe(0);
  });

  test('F29: a handshake or word sent at a byte a second is closed after 10 seconds, and a length alone reserves no memory', async () => {
    const rig = await PortRig.open();
    rig.wire.conditionsOf = () => ({ pieceBytes: 1, pieceIntervalMs: 1000 });
    const clients = [rig.dial(), rig.dial(), rig.dial()];
    clients[0]!.send(handshake());
    clients[1]!.send('ru');
    const announced = Buffer.alloc(4);
    announced.writeInt32BE(1_000_000);
    clients[2]!.send(announced);
    rig.clock.advance(9_900);
    expect(rig.port.cnxnCount).toBe(3);
    expect(rig.port.retainedInputBytes).toBeLessThan(1024);
    rig.clock.advance(200);
    expect(rig.port.cnxnCount).toBe(0);
    rig.clock.advance(100);
    // By the end of the stream (FIN), as ZooKeeper closes it, and not by a reset.
    expect(clients.map((client) => client.closed)).toEqual(['end', 'end', 'end']);
    expect(counterOf(rig, 'sessionless_connections_expired')).toBe(3);
    expect(rig.core.log).toEqual([]);
  });

  test('F28: a silent connection without a session is closed by FIN at the time-out, and by a reset where newer ones need its place', async () => {
    const rig = await PortRig.open({ options: { maxCnxns: 2, halfOpenMax: 5 } });
    const silent = rig.dial();
    rig.clock.advance(9_999);
    expect(silent.closed).toBeUndefined();
    rig.clock.advance(1);
    expect(silent.closed).toBe('end');
    expect(rig.network.streamCount).toBe(0);
    const [older, newer] = [rig.dial(), rig.dial()];
    rig.clock.advance(1000);
    expect(rig.join().frames()).toEqual(['welcome']);
    expect(older.closed).toBe('ECONNRESET');
    expect(newer.closed).toBeUndefined();
  });

  test('F28: a connection is closed when nothing arrived from it for its session time-out, rounded up to the next 10 seconds', async () => {
    const rig = await PortRig.open();
    const [silent, alive] = [rig.join(), rig.join()];
    const pingFor = (seconds: number): void => {
      for (let second = 0; second < seconds; second++) {
        alive.send(frame('ping'));
        rig.clock.advance(1000);
      }
    };
    pingFor(5);
    expect(silent.closed).toBeUndefined();
    pingFor(25);
    expect(silent.closed).toBe('end');
    expect(alive.closed).toBeUndefined();
    expect(rig.core.log).toContain('disconnected 0');
    expect(rig.core.log).not.toContain('disconnected 1');
  });

  test('E28: after a suspension of the process clients are read before they count as silent', async () => {
    const rig = await PortRig.open();
    const client = rig.dial();
    // The loop was suspended for a minute. The handshake is in the kernel, but the timer is called
    // first.
    client.send(handshake());
    const now = rig.clock.now();
    const late = { elapsedMs: now.elapsedMs + 60_000, wallMs: now.wallMs + 60_000 };
    rig.port.wake(late);
    rig.port.endTurn(late);
    expect(rig.port.deadline()).toBe(late.elapsedMs + 200);
    rig.settle();
    expect(client.frames()).toEqual(['welcome']);
  });

  test('P21: a client that waits for its turn counts as alive when its bytes arrive, and again from time to time although it is not read', async () => {
    const rig = await PortRig.open();
    const client = rig.join();
    rig.core.throttled.add(0);
    client.send(frame('waits'));
    rig.settle();
    expect(rig.core.heardOf).toEqual([0]);
    rig.clock.advance(500);
    client.send(frame('not read'));
    rig.clock.advance(400);
    expect(rig.core.heardOf).toEqual([0]);
    rig.clock.advance(2000);
    expect(rig.core.heardOf).toEqual([0, 0]);
    rig.clock.advance(10);
    client.send(frame('not read either'));
    rig.settle();
    expect(rig.core.heardOf).toEqual([0, 0]);
    rig.core.throttled.clear();
    rig.runTurn(() => undefined);
    rig.settle();
    expect(rig.core.bodies).toEqual(['waits', 'not read', 'not read either']);
  });

  test('the connection throttle distinguishes a new session from a resumed one', async () => {
    const kinds: string[] = [];
    const throttle = { deficit: 3, admit: (kind: string) => kinds.push(kind) < 3 };
    const rig = await PortRig.open({ throttle });
    expect(rig.join().frames()).toEqual(['welcome']);
    const returning = rig.dial();
    returning.send(handshake(0x100000000000001n));
    rig.settle();
    expect(returning.frames()).toEqual(['welcome']);
    const refused = rig.join();
    expect(refused.closed).toBe('end');
    expect(refused.received).toHaveLength(0);
    expect(kinds).toEqual(['global', 'renew', 'global']);
    expect(counterOf(rig, 'connection_request_count')).toBe(3);
    expect(counterOf(rig, 'sum_connection_token_deficit')).toBe(9);
  });

  test('A33, A48: the connection throttle has a kind of its own for new local sessions', async () => {
    const kinds: string[] = [];
    const throttle = { deficit: 0, admit: (kind: string) => kinds.push(kind) > 0 };
    const rig = await PortRig.open({ throttle, options: { opensLocalSessions: true } });
    rig.join();
    const returning = rig.dial();
    returning.send(handshake(0x100000000000001n));
    rig.settle();
    expect(kinds).toEqual(['local', 'renew']);
  });

  test('A49: large requests in flight may take largeRequestMaxBytes; the connection of the newest one above it is closed', async () => {
    const rig = await PortRig.open({ options: { largeRequestThreshold: 100, largeRequestMaxBytes: 1000 } });
    const [first, second] = [rig.join(), rig.join()];
    rig.core.outstanding = 1;
    first.send(frame('x'.repeat(600)));
    second.send(frame('x'.repeat(100)));
    rig.settle();
    expect(second.closed).toBeUndefined();
    second.send(frame('x'.repeat(500)).subarray(0, 50));
    rig.settle();
    expect(second.closed).toBe('end');
    expect(counterOf(rig, 'large_requests_rejected')).toBe(1);
    // Once it is answered there is room again.
    rig.core.outstanding = 0;
    first.send(frame('answered'));
    rig.settle();
    const third = rig.join();
    third.send(frame('x'.repeat(900)));
    rig.settle();
    expect(third.frames()).toHaveLength(2);
  });

  test('P21: a client whose large request is refused counts as alive, when a whole frame arrives and when one begins', async () => {
    const rig = await PortRig.open({ options: { largeRequestThreshold: 100, largeRequestMaxBytes: 1000 } });
    const [whole, part] = [rig.join(), rig.join()];
    whole.send(frame('x'.repeat(1100)));
    part.send(frame('x'.repeat(1100)).subarray(0, 50));
    rig.settle();
    expect([whole.closed, part.closed]).toEqual(['end', 'end']);
    expect(new Set(rig.core.heardOf)).toEqual(new Set([0, 1]));
  });

  test('F34: above the limit of bytes in flight the connection that holds most is closed; new ones are accepted, small requests served', async () => {
    const rig = await PortRig.open({ options: { inFlightBytesMax: 100_000 } });
    rig.wire.conditionsOf = (from) => (from === '10.0.0.1' ? { windowBytes: 100 } : {});
    const [hog, hoarder, small] = [rig.join('10.0.9.1'), rig.join('10.0.9.2'), rig.join('10.0.9.3')];
    hog.network.pause(hog.stream);
    rig.runTurn(() => rig.core.write(0, Buffer.alloc(70_000)));
    expect(rig.join('10.0.9.4').frames()).toEqual(['welcome']);
    small.send(frame('ping'));
    rig.settle();
    expect(small.frames()).toEqual(['welcome', 'ping']);
    hoarder.send(frame('x'.repeat(50_000)).subarray(0, 49_000));
    rig.settle();
    expect(hog.closed).toBe('ECONNRESET');
    expect(hoarder.closed).toBeUndefined();
    expect(rig.port.inFlightBytes).toBeLessThanOrEqual(100_000);
    expect(rig.core.log).toContain('disconnected 0');
    expect(rig.lines.at(-1)).toContain('that are held for clients');
  });

  test('a closed connection is reset after two seconds when its client does not end its side', async () => {
    const rig = await PortRig.open();
    const client = rig.join();
    rig.core.answer = (cnxn) => rig.core.close(cnxn);
    client.send(frame('x'));
    client.network.pause(client.stream);
    rig.settle();
    rig.clock.advance(1999);
    expect(rig.network.streamCount).toBe(1);
    rig.clock.advance(1);
    rig.settle();
    expect(rig.network.streamCount).toBe(0);
    expect(client.closed).toBe('ECONNRESET');
  });

  test('a closed connection whose client keeps its side open is dropped for a new connection where maxCnxns is reached', async () => {
    const rig = await PortRig.open({ options: { maxCnxns: 1 } });
    const client = rig.join();
    rig.core.answer = (cnxn) => rig.core.close(cnxn);
    client.network.pause(client.stream);
    client.send(frame('x'));
    rig.settle();
    expect(rig.network.streamCount).toBe(1);
    expect(rig.join().frames()).toEqual(['welcome']);
    expect(rig.network.streamCount).toBe(1);
  });

  test('a shutdown ends every connection after its output is sent', async () => {
    const rig = await PortRig.open();
    const client = rig.join();
    rig.core.write(0, Buffer.from('last'));
    await rig.port.shutDown(rig.clock.now());
    rig.port.endTurn(rig.clock.now());
    rig.settle();
    expect(client.frames()).toEqual(['welcome', 'last']);
    expect(client.closed).toBe('end');
    expect(rig.dial().closed).toBe('ECONNREFUSED');
  });
});

describe('four letter words on the port', () => {
  test.each(['ruok', 'ruok\n', 'ruok\r\n'])('%j is answered and the connection ended', async (sent) => {
    const rig = await PortRig.open();
    const client = rig.dial();
    client.send(sent);
    rig.settle();
    expect(client.received.toString()).toBe('imok');
    expect(client.closed).toBe('end');
    expect(rig.core.log).toEqual([]);
  });

  test('a word is answered when it arrives byte by byte, and when its sender ends its side at once', async () => {
    const rig = await PortRig.open();
    rig.wire.conditionsOf = (from) => (from === '10.0.0.1' ? {} : { pieceBytes: 1 });
    const client = rig.dial();
    client.send('ruok\n');
    client.end();
    rig.settle();
    expect(client.received.toString()).toBe('imok');
    expect(client.closed).toBe('end');
  });

  test('a four letter word after the handshake is treated as a malformed frame', async () => {
    const rig = await PortRig.open();
    const client = rig.join();
    client.send('ruok');
    rig.settle();
    expect(client.frames()).toEqual(['welcome']);
    expect(client.closed).toBe('end');
  });

  test('a word that is not on the whitelist is refused with a message', async () => {
    const rig = await PortRig.open({ whitelist: new Set<FourLetterWord>(['srvr']) });
    const client = rig.dial();
    client.send('stmk');
    rig.settle();
    expect(client.received.toString()).toBe('stmk is not executed because it is not in the whitelist.\n');
  });

  test('a long answer is made piece by piece while others are served, as fast as its reader reads', async () => {
    const core = new FakeCore();
    core.sessionTimeoutMs = 60_000;
    const paths = Array.from({ length: 100_000 }, (_, index) => `/some/path/of/a/watched/znode/${index}`);
    let visited = 0;
    core.inspect = {
      ...core.inspect,
      *watchesByPath() {
        for (const path of paths) {
          visited++;
          yield { path, sessions: [1n] };
        }
      },
    };
    const rig = await PortRig.open({ core });
    rig.wire.conditionsOf = (from) => (from === '10.0.0.1' ? { windowBytes: 64 * 1024 } : {});
    const [asking, next, other] = [rig.dial(), rig.dial(), rig.join()];
    asking.network.pause(asking.stream);
    asking.send('wchp');
    next.send('cons');
    // As `echo cons | nc` does; it still wants its answer.
    next.end();
    rig.settle();
    expect(visited).toBeLessThan(15_000);
    expect(rig.port.waitingOutputBytes).toBeLessThan(1024 * 1024);
    expect(next.received).toHaveLength(0);
    other.send(frame('x'));
    rig.settle();
    expect(other.frames()).toEqual(['welcome', 'x']);
    asking.network.resume(asking.stream);
    rig.settle();
    expect(asking.received.toString()).toBe(`${paths.map((path) => `${path}\n\t0x1\n`).join('')}\n`);
    expect(next.received.toString()).toContain('sid=');
    expect([asking.closed, next.closed]).toEqual(['end', 'end']);
  });

  test('F29: a client that sends a long word and does not read the answer is closed after 10 seconds, and the next one is answered', async () => {
    const core = new FakeCore();
    core.sessionTimeoutMs = 60_000;
    core.inspect = {
      ...core.inspect,
      watchesByPath: () => Array.from({ length: 50_000 }, () => ({ path: '/x'.repeat(20), sessions: [] })),
    };
    const rig = await PortRig.open({ core });
    rig.wire.conditionsOf = (from) => (from === '10.0.0.1' ? { windowBytes: 1024 } : {});
    const [lazy, next] = [rig.dial(), rig.dial()];
    lazy.network.pause(lazy.stream);
    lazy.send('wchp');
    next.send('wchc');
    rig.settle();
    rig.clock.advance(10_000);
    rig.settle();
    expect(lazy.closed).toBe('ECONNRESET');
    expect(next.received.toString()).toBe('\n');
  });
});

function counterOf(rig: PortRig, key: string): number | undefined {
  const sources = { inspect: rig.core.inspect, facts: testFacts, cnxnCount: rig.port.cnxnCount, now: rig.clock.now() };
  for (const [name, { value }] of rig.metrics.entries(sources)) if (name === key) return value;
  return undefined;
}
