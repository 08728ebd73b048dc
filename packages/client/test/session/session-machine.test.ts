import { EventType, OpCode, operations, writeSetWatchesRequest, Xid } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { RequestFailure } from '../../src/keeper-error.ts';
import { credentials, failure, MachineRig, NamedRequest } from '../support/machine-rig.ts';
import { connectResponse, frame, notification, pong, refusal, reply } from '../support/server-frames.ts';

const emptySetWatches = { relativeZxid: 3, dataWatches: [], existWatches: [], childWatches: [] };

function connected(options: ConstructorParameters<typeof MachineRig>[0] = {}, hosts?: string[]): MachineRig {
  const rig = new MachineRig(options, hosts);
  rig.connect();
  return rig;
}

describe('the handshake', () => {
  it('C2-1: dials, requests a new session, and the client is connected when a server grants one', () => {
    const rig = new MachineRig();
    expect(rig.pass(0)).toEqual(['dial a']);
    rig.machine.cnxnOpened(rig.nowMs);
    expect(rig.take()).toEqual(['send connect zxid=0 timeout=9000 session=0x0 password=zeros']);
    expect(rig.machine.isConnected).toBe(false);
    expect(rig.receive(connectResponse({ session: 0x123n, timeoutMs: 6000 }))).toEqual(['SyncConnected']);
    expect(rig.machine.sessionId).toBe(0x123n);
    expect(rig.machine.timeoutMs).toBe(6000);
  });

  it('C2-8: sends id, password and the last zxid to the next server after a lost connection', () => {
    const rig = connected();
    rig.submit('x');
    rig.take();
    rig.receive(reply(1, 42));
    expect(rig.drop('ECONNRESET')).toEqual(['Disconnected: a:2181: the connection broke: ECONNRESET']);
    expect(rig.pass(1000)).toEqual(['dial b']);
    rig.machine.cnxnOpened(rig.nowMs);
    expect(rig.take()).toEqual(['send connect zxid=42 timeout=9000 session=0x100 password=0707']);
    expect(rig.receive(connectResponse())).toEqual(['SyncConnected']);
  });

  it('resumes a given session', () => {
    const rig = new MachineRig({ session: { id: 0x777n, password: Buffer.alloc(16, 1) } });
    rig.pass(0);
    rig.machine.cnxnOpened(rig.nowMs);
    expect(rig.take()).toEqual(['send connect zxid=0 timeout=9000 session=0x777 password=0101']);
    expect(rig.receive(connectResponse({ session: 0x777n }))).toEqual(['SyncConnected']);
  });

  it('ends with the session expired if a server rejects it', () => {
    const rig = connected();
    rig.drop();
    rig.pass(1000);
    rig.machine.cnxnOpened(rig.nowMs);
    rig.submit('x');
    rig.take();
    expect(rig.receive(refusal)).toEqual([
      'hang up gently',
      'x: SessionExpired, notSent (b:2181 no longer knows session 0x100)',
      'Expired: b:2181 no longer knows session 0x100',
    ]);
    expect(rig.machine.endReason).toBe('expired');
    expect(rig.machine.deadline()).toBe(undefined);
  });

  it('expires the session if the server opens one with another id', () => {
    const rig = connected();
    rig.drop();
    rig.pass(1000);
    rig.machine.cnxnOpened(rig.nowMs);
    rig.take();
    expect(rig.receive(connectResponse({ session: 0x200n })).at(-1)).toBe('Expired: b:2181 opened session 0x200 instead of 0x100');
  });

  it.each([
    ['a rejection of a session that was not sent', refusal, 'the server refused to open a session'],
    ['a session without an id', connectResponse({ session: 0n, timeoutMs: 100 }), 'the server opened a session without an id'],
    [
      'B39: the error of a read-only server',
      reply(0, 5, -119),
      'the server did not open a session (it is read-only, and ZooKeeper then requires localSessionsEnabled=true)',
    ],
    ['a bare error', reply(0, 5, -1), 'the server did not open a session (error -1)'],
    ['an empty frame', frame(() => {}), 'the server sent invalid data: expected an int at byte 4'],
    [
      'a frame that is too long',
      Buffer.from([0x7f, 0, 0, 0]),
      'the server sent invalid data: expected a frame of 0 to 2024 bytes, not 2130706432 at byte 0',
    ],
  ])('moves to the next server after %s', (_what, bytes, reason) => {
    const rig = new MachineRig({}, ['a']);
    rig.pass(0);
    rig.machine.cnxnOpened(rig.nowMs);
    rig.submit('x');
    rig.take();
    expect(rig.receive(bytes)).toEqual(['hang up', `x: ConnectionLoss, notSent (a:2181: ${reason})`]);
    expect(rig.pass(1000)).toEqual(['dial a']);
  });

  it('limits a server to its share of the session time-out, from the first packet to the answer', () => {
    const rig = new MachineRig();
    rig.pass(0);
    rig.pass(2000);
    rig.machine.cnxnOpened(rig.nowMs);
    rig.take();
    expect(rig.pass(999)).toEqual([]);
    expect(rig.pass(1)).toEqual(['hang up']);
    expect(rig.pass(1000)).toEqual(['dial b']);
  });

  it('B39: resumes a session of a read-only server on no other server, and has no session while it looks for a server', () => {
    const rig = new MachineRig({ readOnly: true });
    rig.pass(0);
    rig.machine.cnxnOpened(rig.nowMs);
    expect(rig.take()).toEqual(['send connect zxid=0 timeout=9000 session=0x0 password=zeros readOnly']);
    expect(rig.receive(connectResponse({ readOnly: true }))).toEqual(['ConnectedReadOnly']);
    rig.drop();
    expect(rig.machine.isSuspended).toBe(false);
    rig.pass(1000);
    rig.machine.cnxnOpened(rig.nowMs);
    expect(rig.take().at(-1)).toBe('send connect zxid=0 timeout=9000 session=0x0 password=zeros readOnly');
  });
});

describe('the rest of the time-out', () => {
  const left = (rig: MachineRig) => rig.machine.remainingMs(rig.nowMs);

  it('counts from the sending of an answered request, not from its answer', () => {
    const rig = connected();
    rig.pass(1000);
    rig.submit('x');
    rig.pass(500);
    expect(left(rig)).toBe(7500);
    rig.receive(reply(1, 1));
    expect(left(rig)).toBe(8500);
  });

  it('counts from the first of several requests, so that a late answer proves only its own request', () => {
    const rig = connected();
    rig.submit('x');
    rig.pass(500);
    rig.submit('y');
    rig.pass(500);
    rig.receive(reply(1, 1));
    expect(left(rig)).toBe(8000);
    rig.submit('z');
    rig.receive(reply(2, 2));
    expect(left(rig)).toBe(8000);
    rig.pass(100);
    rig.receive(reply(3, 3));
    expect(left(rig)).toBe(8900);
  });

  it('counts from an answered ping', () => {
    const rig = connected();
    rig.pass(2000);
    rig.take();
    rig.pass(300);
    rig.receive(pong);
    expect(left(rig)).toBe(8700);
  });

  it('decreases without a connection, and starts again with the next', () => {
    const rig = connected();
    rig.submit('x');
    rig.pass(100);
    rig.drop();
    expect(left(rig)).toBe(8900);
    rig.pass(600);
    expect(left(rig)).toBe(8300);
    rig.machine.cnxnOpened(rig.nowMs);
    rig.pass(200);
    rig.receive(connectResponse());
    expect(left(rig)).toBe(8800);
  });

  it('is not extended by a server without a quorum, which contacts no leader', () => {
    const rig = connected({ readOnly: true });
    rig.drop();
    rig.pass(1000);
    rig.machine.cnxnOpened(rig.nowMs);
    rig.receive(connectResponse({ readOnly: true }));
    rig.submit('x');
    rig.receive(reply(1, 1));
    expect(left(rig)).toBe(8000);
  });

  it('is 0 before there is a session, and after its end', () => {
    const rig = new MachineRig();
    expect(left(rig)).toBe(0);
    rig.connect();
    expect(left(rig)).toBe(9000);
    rig.close();
    rig.receive(reply(1, 1));
    expect(left(rig)).toBe(0);
  });
});

describe('pings and silence', () => {
  it('C2-19: the client pings after sending nothing for a third of the time-out less a second, and at most 10 s', () => {
    const cases: [timeoutMs: number, pingMs: number][] = [
      [400, 133],
      [3000, 1000],
      [4500, 1000],
      [9000, 2000],
      [30_000, 9000],
      [90_000, 10_000],
    ];
    for (const [timeoutMs, pingMs] of cases) {
      const rig = new MachineRig();
      rig.connect({ timeoutMs });
      expect(rig.pass(pingMs - 1)).toEqual([]);
      expect(rig.pass(1)).toEqual(['send ping xid=-2']);
    }
  });

  it('C2-19: the client sends no ping while it sends requests', () => {
    const rig = connected();
    for (let round = 1; round <= 20; round++) {
      rig.pass(1500);
      rig.submit('x');
      expect(rig.take()).toEqual([`send exists xid=${round} {"path":"x","watch":false}`]);
      rig.receive(reply(round, round));
    }
  });

  it('C2-19: the client leaves a server that is silent for two thirds of the time-out', () => {
    const rig = connected();
    rig.pass(1000);
    expect(rig.receive(notification(EventType.nodeCreated, '/a'))).toHaveLength(1);
    const pings = rig.pass(5999);
    expect(new Set(pings)).toEqual(new Set(['send ping xid=-2']));
    expect(rig.pass(1)).toEqual(['hang up', 'Disconnected: a:2181: received nothing for 6000 ms']);
  });

  it('the client keeps a connection while pings are answered', () => {
    const rig = connected();
    for (let round = 0; round < 100; round++) {
      expect(rig.pass(2000)).toEqual(['send ping xid=-2']);
      rig.receive(pong);
    }
    expect(rig.machine.isConnected).toBe(true);
  });

  it('the client reads waiting input before it takes its own pause for silence of the server', () => {
    const rig = connected();
    // The process is paused for eight seconds; timers run first when it resumes.
    rig.nowMs += 8000;
    rig.machine.wake(rig.nowMs);
    expect(rig.take()).toEqual(['send ping xid=-2']);
    rig.receive(pong);
    expect(rig.pass(1900)).toEqual([]);
    const other = connected();
    other.nowMs += 8000;
    other.machine.wake(other.nowMs);
    other.take();
    expect(other.pass(500)).toEqual(['hang up', 'Disconnected: a:2181: received nothing for 6000 ms']);
  });
});

describe('requests', () => {
  it('B31: are answered in order, and an event between them keeps its place', () => {
    const rig = connected();
    rig.submit('x', 'y');
    expect(rig.take()).toEqual(['send exists xid=1 {"path":"x","watch":false}', 'send exists xid=2 {"path":"y","watch":false}']);
    expect(rig.receive(reply(1, 5), notification(EventType.nodeDataChanged, '/a', 6), reply(2, 6, -101))).toEqual([
      'x: ok',
      'event 3 /a zxid=6',
      'y: NoNode',
    ]);
    expect(rig.machine.lastZxid).toBe(6);
  });

  it('of one turn are sent together', () => {
    const rig = connected();
    rig.machine.submit(new NamedRequest('x'));
    rig.machine.submit(new NamedRequest('y'));
    expect(rig.take()).toEqual([]);
    rig.machine.flush(rig.nowMs);
    expect(rig.take()).toHaveLength(2);
  });

  it('wait for a connection, and are sent in order after the handshake', () => {
    const rig = new MachineRig();
    rig.submit('x', 'y');
    rig.pass(0);
    rig.machine.cnxnOpened(rig.nowMs);
    rig.take();
    expect(rig.receive(connectResponse())).toEqual([
      'SyncConnected',
      'send exists xid=1 {"path":"x","watch":false}',
      'send exists xid=2 {"path":"y","watch":false}',
    ]);
    expect(rig.receive(reply(1, 1), reply(2, 1))).toEqual(['x: ok', 'y: ok']);
  });

  it('C2-20: fail with the connection: sent ones with the outcome unknown, others with notSent', () => {
    const rig = connected();
    rig.submit('sent');
    rig.machine.submit(new NamedRequest('written'));
    rig.take();
    expect(rig.drop()).toEqual([
      'sent: ConnectionLoss, unknown (a:2181: the connection was closed by the server)',
      'written: ConnectionLoss, notSent (a:2181: the connection was closed by the server)',
      'Disconnected: a:2181: the connection was closed by the server',
    ]);
    // No request is sent again.
    expect(rig.connect()).toEqual(['SyncConnected']);
  });

  it('that wait fail after every server has failed, and not before', () => {
    const rig = connected();
    rig.drop();
    rig.submit('x');
    expect(rig.pass(1000)).toEqual(['dial b']);
    expect(rig.drop('ECONNREFUSED')).toEqual([]);
    expect(rig.pass(1000)).toEqual(['dial c']);
    expect(rig.drop('ECONNREFUSED')).toEqual([]);
    expect(rig.pass(1000)).toEqual(['dial a']);
    expect(rig.drop('ECONNREFUSED')).toEqual(['x: ConnectionLoss, notSent (a:2181: connection failed: ECONNREFUSED)']);
  });

  it('whose caller no longer waits keep their position if they were sent, and are not sent otherwise', () => {
    const rig = connected();
    const [x] = rig.submit('x', 'y');
    expect(rig.machine.cancel(x!)).toBe(false);
    rig.take();
    expect(rig.receive(reply(1, 1), reply(2, 2))).toEqual(['y: ok']);
    rig.drop();
    const [z] = rig.submit('z', 'w');
    expect(rig.machine.cancel(z!)).toBe(true);
    expect(rig.connect()).toEqual(['SyncConnected', 'send exists xid=3 {"path":"w","watch":false}']);
  });

  it('that are too large are rejected by the client, and later requests are not affected', () => {
    const rig = connected();
    const start = () => rig.machine.submit(new NamedRequest('x'.repeat(2000)));
    expect(start).toThrow(RequestFailure);
    rig.submit('y');
    expect(rig.take()).toEqual(['send exists xid=1 {"path":"y","watch":false}']);
  });
});

describe('input of a server', () => {
  it.each([
    ['an answer out of order', reply(2, 1), 'the server answered request 2, expected an answer to 1'],
    ['a pong without a ping', pong, 'the server answered a ping that was not sent'],
    ['restored watches without a request', reply(Xid.setWatches, 0), 'the server answered a setWatches that was not sent'],
    ['an answer to credentials that were not sent', reply(Xid.auth, 0), 'the server answered credentials that were not sent'],
    ['half a header', frame((writer) => writer.int32(1)), 'the server sent invalid data: expected a long at byte 8'],
    ['an empty notification', reply(Xid.notification, 1), 'the server sent invalid data: expected an int at byte 20'],
    [
      'a negative length',
      Buffer.from([0xff, 0xff, 0xff, 0xff]),
      'the server sent invalid data: expected a frame of 0 to 2024 bytes, not -1 at byte 0',
    ],
    ['a zxid above all valid ones', reply(1, 2 ** 60), 'the server sent a zxid above 0x1fffffffffffff, which this client cannot represent'],
  ])('with %s makes the client close the connection', (_what, bytes, reason) => {
    const rig = connected();
    rig.submit('x', 'y');
    rig.take();
    expect(rig.receive(bytes)).toEqual([
      'hang up',
      `x: ConnectionLoss, unknown (a:2181: ${reason})`,
      `y: ConnectionLoss, unknown (a:2181: ${reason})`,
      `Disconnected: a:2181: ${reason}`,
    ]);
    expect(rig.pass(1000)).toEqual(['dial b']);
    expect(rig.machine.lastZxid).toBe(0);
  });

  it('E5: with an answer above the limit fails pending requests with both lengths in the reason, and no request is sent again', () => {
    const rig = connected();
    rig.submit('x');
    rig.take();
    const reason = 'a:2181: the server sent invalid data: expected a frame of 0 to 2024 bytes, not 2025 at byte 0';
    const announced = Buffer.alloc(4);
    announced.writeInt32BE(2025);
    expect(rig.receive(announced)).toEqual(['hang up', `x: ConnectionLoss, unknown (${reason})`, `Disconnected: ${reason}`]);
    rig.connect();
    expect(rig.take()).toEqual([]);
  });

  it('with an answer without a request makes the client close the connection', () => {
    const rig = connected();
    expect(rig.receive(reply(9, 1)).at(-1)).toBe('Disconnected: a:2181: the server answered request 9, which was not sent');
  });

  it('with an invalid frame makes the client close the connection and ignore later input', () => {
    const rig = connected();
    rig.submit('x');
    rig.take();
    expect(rig.receive(pong, reply(1, 1))).not.toContain('x: ok');
  });

  it('cut within a frame fails pending requests, and the next connection does not await the rest of the frame', () => {
    const rig = connected();
    rig.submit('x');
    rig.take();
    expect(rig.receive(reply(1, 1).subarray(0, 11))).toEqual([]);
    expect(rig.drop().slice(0, 1)).toEqual(['x: ConnectionLoss, unknown (a:2181: the connection was closed by the server)']);
    rig.connect();
    rig.submit('y');
    rig.take();
    expect(rig.receive(reply(2, 1))).toEqual(['y: ok']);
  });
});

describe('lost connections', () => {
  it('C2-6: the client iterates over the list until a server answers', () => {
    const rig = connected();
    rig.drop();
    const dialled: string[] = [];
    for (let round = 0; round < 7; round++) {
      dialled.push(...rig.pass(1000));
      rig.drop('ECONNREFUSED');
    }
    expect(dialled).toEqual(['dial b', 'dial c', 'dial a', 'dial b', 'dial c', 'dial a', 'dial b']);
  });

  it('C2-13: pauses grow with each failure up to a second, and start again after a connection that held', () => {
    const rig = connected();
    rig.pass(1000);
    const pauses: number[] = [];
    rig.drop();
    for (let round = 0; round < 5; round++) {
      pauses.push(rig.machine.deadline()! - rig.nowMs);
      rig.pass(1000);
      rig.drop('ECONNREFUSED');
    }
    expect(pauses).toEqual([125, 250, 500, 500, 500]);
    rig.connect();
    rig.pass(1000);
    rig.drop();
    expect(rig.machine.deadline()! - rig.nowMs).toBe(125);
  });

  it('C2-23: two clients with one session take it from each other more and more slowly', () => {
    const rig = connected();
    const pauses: number[] = [];
    for (let round = 0; round < 5; round++) {
      // The other client reconnected to the server, which closed this connection.
      rig.pass(20);
      rig.drop();
      pauses.push(rig.machine.deadline()! - rig.nowMs);
      rig.connect();
    }
    expect(pauses).toEqual([125, 250, 500, 500, 500]);
    expect(rig.machine.isConnected).toBe(true);
  });

  it('C2-23: a client with yieldSession leaves its session to the other, and does not end it', () => {
    const rig = connected({ yieldSession: true });
    for (let round = 0; round < 4; round++) {
      rig.pass(20);
      rig.drop();
      rig.connect();
    }
    rig.pass(20);
    rig.take();
    const said = rig.drop();
    expect(rig.machine.endReason).toBe('moved');
    expect(said.filter((line) => line.startsWith('send'))).toEqual([]);
    expect(said.at(-1)).toContain('Closed');
    expect(rig.machine.deadline()).toBeUndefined();
  });

  it('C2-23: a client with yieldSession keeps its session while servers fail now and then', () => {
    const rig = connected({ yieldSession: true });
    for (let round = 0; round < 20; round++) {
      rig.pass(round % 4 === 0 ? 1500 : 20);
      rig.drop();
      rig.connect();
    }
    expect(rig.machine.isConnected).toBe(true);
  });

  it.each([1, 2, 3, 20])('an absurd time-out of %i ms neither keeps the client busy nor locks it out', (timeoutMs) => {
    const rig = new MachineRig();
    rig.connect({ timeoutMs });
    const said = rig.pass(1000);
    expect(said.length).toBeLessThan(60);
    expect(said).toContain('dial b');
    rig.connect({ timeoutMs: 9000 });
    expect(rig.machine.isConnected).toBe(true);
    const slow = new MachineRig();
    slow.connect({ timeoutMs });
    while (!slow.pass(1).includes('dial b')) expect(slow.nowMs).toBeLessThan(1000);
    slow.pass(200);
    slow.machine.cnxnOpened(slow.nowMs);
    expect(slow.receive(connectResponse()).at(-1)).toBe('SyncConnected');
  });

  it('an absurd time-out of many days does not keep the client waiting', () => {
    const rig = new MachineRig();
    rig.connect({ timeoutMs: 0x7fffffff });
    expect(rig.machine.timeoutMs).toBe(0x7fffffff);
    // Silent, and after it a server that accepts connections and sends nothing.
    while (!rig.pass(1000).includes('dial b')) expect(rig.nowMs).toBeLessThan(600_000);
    rig.machine.cnxnOpened(rig.nowMs);
    const startMs = rig.nowMs;
    while (!rig.pass(1000).includes('dial c')) expect(rig.nowMs - startMs).toBeLessThan(600_000);
    // And one that does not answer the close.
    rig.machine.cnxnOpened(rig.nowMs);
    rig.receive(connectResponse({ timeoutMs: 0x7fffffff }));
    rig.close();
    const closeMs = rig.nowMs;
    while (rig.machine.endReason === undefined) {
      rig.pass(1000);
      rig.receive(notification(EventType.nodeDataChanged, '/a', 7));
      expect(rig.nowMs - closeMs).toBeLessThan(700_000);
    }
    // The client uses the time-out that it asked for, however long.
    const long = new MachineRig({ sessionTimeoutMs: 3_600_000 });
    long.connect({ timeoutMs: 3_600_000 });
    long.pass(2_000_000);
    expect(long.machine.isConnected).toBe(true);
  });

  it('pauses are short in a short session', () => {
    const rig = connected({ sessionTimeoutMs: 400 });
    rig.machine.received(Buffer.alloc(0), rig.nowMs);
    rig.drop();
    expect(rig.machine.deadline()! - rig.nowMs).toBe(125);
    const short = new MachineRig({ sessionTimeoutMs: 400 });
    short.connect({ timeoutMs: 400 });
    short.drop();
    expect(short.machine.deadline()! - short.nowMs).toBe(50);
  });

  it('C2-15, C2-17: without a server a session does not end by itself; it ends when a server says so', () => {
    const rig = connected();
    rig.drop();
    for (let round = 0; round < 100; round++) {
      rig.pass(1000);
      rig.drop('EHOSTUNREACH');
    }
    expect(rig.machine.endReason).toBe(undefined);
    rig.pass(1000);
    rig.machine.cnxnOpened(rig.nowMs);
    rig.take();
    expect(rig.receive(refusal).at(-1)).toMatch(/^Expired/);
  });

  it('a session with expireLocally expires by itself after 4/3 of its time-out', () => {
    const rig = connected({ expireLocally: true });
    rig.drop();
    rig.submit('x');
    const said: string[] = [];
    for (let round = 0; round < 13; round++) {
      said.push(...rig.pass(999));
      said.push(...rig.drop('EHOSTUNREACH'));
    }
    expect(said.at(-1)).toBe('Expired: no server was reached for 12000 ms');
  });
});

describe('credentials', () => {
  it('are sent to every server before watches and requests', () => {
    const rig = new MachineRig({ auth: [credentials('digest')] });
    rig.restore = [
      {
        opCode: OpCode.setWatches,
        write: (writer) => writeSetWatchesRequest(writer, { relativeZxid: 3, dataWatches: ['/a'], existWatches: [], childWatches: [] }),
      },
    ];
    rig.submit('x');
    const sent = [
      'SyncConnected',
      'send auth xid=-4 {"type":0,"scheme":"digest","auth":"user:password"}',
      'send setWatches xid=-8 {"relativeZxid":3,"dataWatches":["/a"],"existWatches":[],"childWatches":[]}',
    ];
    expect(rig.connect()).toEqual([...sent, 'send exists xid=1 {"path":"x","watch":false}']);
    expect(rig.receive(reply(Xid.auth, 0), reply(Xid.setWatches, 4), reply(1, 4))).toEqual(['authenticated digest', 'x: ok']);
    rig.drop();
    expect(rig.connect()).toEqual(sent);
    expect(rig.receive(reply(Xid.auth, 0), reply(Xid.setWatches, 4))).toEqual([]);
  });

  it('A89, B40: are sent to every server in order, those added without a connection before requests', () => {
    const rig = connected({ auth: [credentials('digest', 'a:a')] });
    rig.receive(reply(Xid.auth, 0));
    rig.drop();
    rig.submit('x');
    rig.authenticate('digest', 'b:b');
    const sent = (name: string) => `send auth xid=-4 {"type":0,"scheme":"digest","auth":"${name}"}`;
    expect(rig.connect()).toEqual(['SyncConnected', sent('a:a'), sent('b:b'), 'send exists xid=1 {"path":"x","watch":false}']);
    expect(rig.receive(reply(Xid.auth, 0), reply(Xid.auth, 0))).toEqual(['authenticated digest']);
    rig.drop();
    expect(rig.connect()).toEqual(['SyncConnected', sent('a:a'), sent('b:b')]);
  });

  it('C2-2: that are rejected end the session', () => {
    const rig = connected();
    rig.submit('x');
    rig.authenticate('nonsense');
    rig.take();
    expect(rig.receive(reply(Xid.auth, 0, -115))).toEqual([
      'hang up',
      'not authenticated nonsense: AuthFailed, refused (a:2181 rejected the credentials for scheme nonsense)',
      'x: AuthFailed, unknown (a:2181 rejected the credentials for scheme nonsense)',
      'AuthFailed: a:2181 rejected the credentials for scheme nonsense',
    ]);
    expect(() => rig.submit('y')).toThrow(RequestFailure);
    expect(rig.machine.deadline()).toBe(undefined);
  });

  it('that are pending when the connection breaks are answered by the next server', () => {
    const rig = connected();
    rig.authenticate('digest');
    rig.take();
    expect(rig.drop()).toHaveLength(1);
    expect(rig.connect().slice(1)).toEqual(['send auth xid=-4 {"type":0,"scheme":"digest","auth":"user:password"}']);
    expect(rig.receive(reply(Xid.auth, 0))).toEqual(['authenticated digest']);
  });
});

describe('B42: an identity proved by SASL', () => {
  const token = (text: string) => Buffer.from(text);
  const answer = (xid: number, text: string | null, err = 0) =>
    reply(xid, 0, err, (writer) => operations.sasl.reply.write(writer, { token: text === null ? null : token(text) }));
  const opened = (options: ConstructorParameters<typeof MachineRig>[0] = {}) => {
    const rig = new MachineRig({ sasl: true, ...options });
    rig.pass(0);
    rig.machine.cnxnOpened(rig.nowMs);
    rig.take();
    return rig;
  };
  const say = (rig: MachineRig, text: string | undefined) => {
    rig.machine.saslToken(text === undefined ? undefined : token(text), rig.nowMs);
    return rig.take();
  };

  it('is sent before credentials, watches and requests, which wait for its end', () => {
    const rig = opened({ auth: [credentials('digest')] });
    rig.restore = [{ opCode: OpCode.setWatches, write: (writer) => writeSetWatchesRequest(writer, emptySetWatches) }];
    rig.submit('x');
    expect(rig.receive(connectResponse())).toEqual(['sasl begin a']);
    expect(rig.machine.isConnected).toBe(false);
    rig.submit('y');
    rig.authenticate('other');
    expect(rig.take()).toEqual([]);
    expect(say(rig, '')).toEqual(['send sasl xid=1 {"token":""}']);
    expect(rig.receive(answer(1, 'who?'))).toEqual(['sasl challenge who?']);
    expect(say(rig, 'me')).toEqual(['send sasl xid=2 {"token":"me"}']);
    expect(rig.receive(answer(2, null))).toEqual(['sasl challenge null']);
    expect(say(rig, undefined)).toEqual([
      'SyncConnected',
      'send auth xid=-4 {"type":0,"scheme":"digest","auth":"user:password"}',
      'send auth xid=-4 {"type":0,"scheme":"other","auth":"user:password"}',
      'send setWatches xid=-8 {"relativeZxid":3,"dataWatches":[],"existWatches":[],"childWatches":[]}',
      'send exists xid=3 {"path":"x","watch":false}',
      'send exists xid=4 {"path":"y","watch":false}',
    ]);
    expect(rig.machine.isConnected).toBe(true);
  });

  it('makes the client move to the next server if it is not complete within the session time-out, whatever the server sends meanwhile', () => {
    const rig = opened();
    rig.receive(connectResponse());
    say(rig, '');
    // A frame that is never complete.
    rig.receive(Buffer.from([0, 0, 0, 100]));
    const said: string[] = [];
    while (!said.includes('dial b')) {
      said.push(...rig.receive(Buffer.alloc(1)), ...rig.pass(1000));
      expect(rig.nowMs).toBeLessThan(12_000);
    }
    expect(rig.nowMs).toBeGreaterThanOrEqual(9000);
  });

  it('is proved again on each connection', () => {
    const rig = opened();
    rig.receive(connectResponse());
    expect(say(rig, undefined)).toEqual(['SyncConnected']);
    rig.drop();
    rig.pass(1000);
    rig.machine.cnxnOpened(rig.nowMs);
    rig.take();
    expect(rig.receive(connectResponse())).toEqual(['sasl begin b']);
    expect(say(rig, 'again')).toEqual(['send sasl xid=1 {"token":"again"}']);
  });

  it.each([-115, -124])('ends the session if a server rejects it (%i)', (err) => {
    const rig = opened();
    rig.receive(connectResponse());
    say(rig, '');
    rig.submit('x');
    const reason = `a:2181 rejected the SASL identity (error ${err})`;
    expect(rig.receive(answer(1, null, err))).toEqual(['hang up', `x: AuthFailed, notSent (${reason})`, `AuthFailed: ${reason}`]);
    expect(rig.machine.endReason).toBe('authFailed');
    expect(rig.machine.deadline()).toBe(undefined);
  });

  it('ends the session if the mechanism fails', () => {
    const rig = opened();
    rig.receive(connectResponse());
    rig.machine.saslFailed('SASL X: the server does not know the password');
    expect(rig.take()).toEqual(['hang up', 'AuthFailed: a:2181: SASL X: the server does not know the password']);
  });

  it.each([
    ['the server sends nothing', '', 'the SASL exchange stalled: the server did not answer for 6000 ms'],
    ['there is no token', undefined, 'the SASL exchange stalled: no token was created for 6000 ms'],
  ])('makes the client move to the next server after the read time-out if %s', (_what, first, reason) => {
    const rig = opened();
    rig.receive(connectResponse());
    if (first !== undefined) say(rig, first);
    rig.submit('x');
    expect(rig.pass(5999)).toEqual([]);
    expect(rig.pass(1)).toEqual(['hang up']);
    // Only this server has failed so far, so the request waits.
    expect(rig.pass(1000)).toEqual(['dial b']);
    rig.drop('ECONNREFUSED');
    expect(rig.pass(1000)).toEqual(['dial c']);
    rig.machine.cnxnOpened(rig.nowMs);
    rig.take();
    rig.receive(connectResponse());
    expect(rig.pass(6000)).toEqual([
      'hang up',
      `x: ConnectionLoss, notSent (c:2181: ${first === undefined ? reason : reason.replace('the server did not answer', 'no token was created')})`,
    ]);
  });

  it('survives a connection that breaks meanwhile, and a token that is too late is not sent', () => {
    const rig = opened();
    rig.receive(connectResponse());
    say(rig, '');
    expect(rig.drop('ECONNRESET')).toEqual([]);
    expect(say(rig, 'late')).toEqual([]);
    rig.machine.saslFailed('late');
    expect(rig.take()).toEqual([]);
    expect(rig.pass(1000)).toEqual(['dial b']);
    rig.machine.cnxnOpened(rig.nowMs);
    // The client asks for the granted session.
    expect(rig.take()).toEqual(['send connect zxid=0 timeout=9000 session=0x100 password=0707']);
  });

  it.each([
    ['an answer before a request', [answer(1, 'x')], false, 'the server answered request 1, which was not sent'],
    ['an answer to another request', [answer(7, 'x')], true, 'the server answered request 7, which was not sent'],
    ['two answers', [answer(1, 'x'), answer(1, 'y')], true, 'the server answered request 1, which was not sent'],
    ['an event', [notification(EventType.nodeCreated, '/x')], true, 'the server answered request -1, which was not sent'],
    ['half an answer', [reply(1, 0, 0, (writer) => writer.int32(9))], true, 'the server sent invalid data: '],
  ])('makes the client leave a server that sends %s', (_what, frames, asked, reason) => {
    const rig = new MachineRig({ sasl: true }, ['a']);
    rig.pass(0);
    rig.machine.cnxnOpened(rig.nowMs);
    rig.receive(connectResponse());
    if (asked) say(rig, '');
    rig.submit('x');
    const [, failed] = rig.receive(...frames).filter((line) => !line.startsWith('sasl challenge'));
    expect(failed).toContain(`x: ConnectionLoss, notSent (a:2181: ${reason}`);
    expect(rig.pass(1000)).toEqual(['dial a']);
  });

  it('ends when the client is closed', () => {
    const rig = opened();
    rig.receive(connectResponse());
    expect(rig.close()).toEqual(['hang up', 'Closed']);
    expect(say(rig, 'late')).toEqual([]);
  });
});

describe('close', () => {
  it('waits for earlier requests, then closes the session, then the connection', () => {
    const rig = connected();
    rig.submit('x');
    rig.take();
    expect(rig.close()).toEqual(['send closeSession xid=2']);
    expect(() => rig.submit('y')).toThrow(RequestFailure);
    expect(rig.receive(reply(1, 7), reply(2, 8))).toEqual(['x: ok', 'hang up gently', 'Closed']);
    expect(rig.machine.deadline()).toBe(undefined);
    expect(rig.close()).toEqual([]);
  });

  it('does not wait for a server that falls silent', () => {
    const rig = connected();
    rig.close();
    expect(rig.pass(6000)).toEqual([...Array<string>(2).fill('send ping xid=-2'), 'hang up', 'Closed']);
  });

  it('completes at once without a server', () => {
    const rig = connected();
    rig.drop();
    rig.submit('x');
    expect(rig.close()).toEqual(['x: SessionExpired, notSent (this client was closed)', 'Closed']);
    const dialling = new MachineRig();
    dialling.pass(0);
    expect(dialling.close()).toEqual(['hang up', 'Closed']);
  });

  it.each([
    ['closed', 'SessionExpired, notSent (this client was closed)'],
    ['expired', 'SessionExpired, notSent (the session of this client has expired; connect again)'],
    ['authFailed', 'AuthFailed, notSent (the credentials of this client were rejected; connect again)'],
  ])('C2-2: every call is rejected after the client has %s', (end, words) => {
    const rig = connected();
    if (end === 'closed') {
      rig.close();
      rig.receive(reply(1, 1));
    } else if (end === 'expired') {
      rig.drop();
      rig.pass(1000);
      rig.machine.cnxnOpened(rig.nowMs);
      rig.receive(refusal);
    } else {
      rig.authenticate('nonsense');
      rig.receive(reply(Xid.auth, 0, -115));
    }
    expect(rig.machine.endReason).toBe(end);
    let thrown: unknown;
    try {
      rig.submit('x');
    } catch (error) {
      thrown = error;
    }
    expect(failure(thrown as RequestFailure)).toBe(words);
  });
});

describe('a read-only server', () => {
  it('B39: is left for one with a quorum, which the client looks for after 0.1 s and then less and less often', () => {
    const rig = new MachineRig({ readOnly: true });
    rig.connect({ readOnly: true });
    const at: number[] = [];
    for (let round = 0; round < 4; round++) {
      while (!rig.pass(10).some((line) => line.startsWith('probe'))) expect(rig.nowMs).toBeLessThan(2000);
      at.push(rig.nowMs);
      rig.machine.probed(false, undefined, rig.nowMs);
      rig.take();
    }
    expect(at).toEqual([100, 200, 400, 800]);
    rig.pass(800);
    rig.machine.probed(true, undefined, rig.nowMs);
    expect(rig.take()).toEqual(['hang up', 'Disconnected: a:2181: moving from this read-only server to c:2181, which has a quorum']);
    expect(rig.pass(0)).toEqual(['dial c']);
  });
});
