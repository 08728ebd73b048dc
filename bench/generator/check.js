/**
 * Checks the generator before its numbers are used: it must complete its modes with a correct
 * server, and must reject one that is wrong in any of the ways below. Takes a second or two; `npm
 * run bench` does it first.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

import { GeneratorError, runGenerator, startGenerator } from './generator.js';

const statBytes = 68;

/**
 * A small server that knows paths and data, and answers wrongly on request. `lie` receives each
 * reply before it is sent and may return another.
 */
async function startFake(lie = (reply) => reply) {
  const data = new Map();
  const watchers = new Map();
  let zxid = 0;
  let sessions = 0;
  let pings = 0;

  function frame(...parts) {
    const body = Buffer.concat(parts);
    const head = Buffer.alloc(4);
    head.writeInt32BE(body.length);
    return Buffer.concat([head, body]);
  }
  function header(xid, error, at = zxid) {
    const bytes = Buffer.alloc(16);
    bytes.writeInt32BE(xid);
    bytes.writeBigInt64BE(BigInt(at), 4);
    bytes.writeInt32BE(error, 12);
    return bytes;
  }
  function withLength(bytes) {
    const head = Buffer.alloc(4);
    head.writeInt32BE(bytes.length);
    return Buffer.concat([head, bytes]);
  }
  function event(path) {
    const kind = Buffer.alloc(8);
    kind.writeInt32BE(3);
    kind.writeInt32BE(3, 4);
    return frame(header(-1, 0), kind, withLength(Buffer.from(path)));
  }
  function answer(socket, request) {
    const xid = request.readInt32BE(0);
    const type = request.readInt32BE(4);
    if (type === -11) {
      socket.end(frame(header(xid, 0)));
      return;
    }
    if (type === 11) {
      pings++;
      socket.write(frame(header(-2, 0)));
      return;
    }
    const pathEnd = 12 + request.readInt32BE(8);
    const path = request.toString('utf8', 12, pathEnd);
    const rest = request.subarray(pathEnd);
    const stat = Buffer.alloc(statBytes);
    const reply = { xid, error: 0, zxid, body: stat };
    if (type === 1 && data.has(path)) reply.error = -110;
    else if (type !== 1 && !data.has(path)) reply.error = -101;
    else if (type === 4) reply.body = Buffer.concat([withLength(data.get(path)), stat]);
    else if (type === 3) watchers.set(path, [...(watchers.get(path) ?? []), socket]);
    else {
      reply.zxid = ++zxid;
      data.set(path, rest.subarray(4, 4 + rest.readInt32BE(0)));
      if (type === 1) reply.body = withLength(Buffer.from(path));
    }
    for (const watcher of type === 5 ? (watchers.get(path) ?? []) : []) watcher.write(event(path));
    watchers.delete(type === 5 ? path : '');
    const sent = lie(reply, { type, path });
    if (sent !== undefined) socket.write(frame(header(sent.xid, sent.error, sent.zxid), sent.error === 0 ? sent.body : Buffer.alloc(0)));
  }

  const server = createServer({ noDelay: true }, (socket) => {
    let input = Buffer.alloc(0);
    let greeted = false;
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      input = Buffer.concat([input, chunk]);
      while (input.length >= 4 && input.length >= 4 + input.readInt32BE(0)) {
        const request = input.subarray(4, 4 + input.readInt32BE(0));
        input = input.subarray(4 + request.length);
        if (greeted) answer(socket, request);
        else {
          greeted = true;
          const response = Buffer.alloc(37);
          response.writeInt32BE(4000, 4);
          response.writeInt32BE(++sessions, 8);
          response.writeInt32BE(16, 16);
          socket.write(frame(response));
        }
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { port: server.address().port, data, pings: () => pings, sessions: () => sessions, close: () => server.close() };
}

const znodes = 50;
const short = { seconds: 0.05, znodes };

const truths = [
  {
    title: 'makes znodes',
    check: async (program, fake) => {
      const { znodes: made } = await runGenerator(program, 'preload', { port: fake.port, znodes: 20, first: 995 });
      assert.equal(made, 20);
      assert.deepEqual([fake.data.has('/bench/d0000/n0000999'), fake.data.has('/bench/d0001/n0001014')], [true, true]);
    },
  },
  ...['getData', 'setData', 'create', 'mixed'].flatMap((op) =>
    [1, 7].map((inFlight) => ({
      title: `${op}, ${inFlight} in flight`,
      check: async (program, fake) => {
        const options = { ...short, port: fake.port, op, connections: 5, inFlight, warmUp: 0.01, serverPid: process.pid };
        const { operations, latencyUs, readLatencyUs, writeLatencyUs, errors } = await runGenerator(program, 'load', options);
        assert.ok(operations > 0);
        assert.deepEqual(errors, {});
        assert.equal(readLatencyUs.count + writeLatencyUs.count, operations);
        assert.equal(readLatencyUs.count > 0, op === 'getData' || op === 'mixed');
        assert.ok(latencyUs.p50 > 0 && latencyUs.p50 <= latencyUs.p99 && latencyUs.p99 <= latencyUs.max);
      },
    })),
  ),
  {
    title: 'spreads its connections over several servers, and adds up their CPU',
    check: async (program, fake) => {
      const other = await startFake();
      try {
        await runGenerator(program, 'preload', { port: other.port, znodes });
        const port = `${fake.port},${other.port}`;
        const before = [fake.sessions(), other.sessions()];
        const serverPid = `${process.pid},${process.ppid}`;
        const { operations } = await runGenerator(program, 'load', { ...short, port, op: 'setData', connections: 5, serverPid });
        assert.ok(operations > 0);
        assert.deepEqual([fake.sessions() - before[0], other.sessions() - before[1]], [3, 2]);
      } finally {
        other.close();
      }
    },
  },
  {
    title: 'counts errors and continues',
    check: async (program, fake) => {
      const { operations, errors } = await runGenerator(program, 'load', { ...short, port: fake.port, znodes: 2 * znodes, inFlight: 3 });
      assert.deepEqual(Object.keys(errors), ['-101']);
      assert.ok(operations > 0);
    },
  },
  {
    title: 'probes until it is stopped',
    check: async (program, fake) => {
      const probe = startGenerator(program, 'probe', { port: fake.port, interval: 1 });
      await delay(60);
      const { operations } = await probe.stop();
      assert.ok(operations > 0 && operations <= 200, `${operations} reads in 60 ms`);
    },
  },
  {
    title: 'keeps an idle session alive',
    check: async (program, fake) => {
      const { operations } = await runGenerator(program, 'load', { ...short, port: fake.port, interval: 1000, sessionTimeout: 40 });
      assert.equal(operations, 1);
      assert.ok(fake.pings() > 0);
    },
  },
  {
    title: 'sets watches and receives each event once',
    check: async (program, fake) => {
      const { watches } = await runGenerator(program, 'watches', { port: fake.port, connections: 4, znodes });
      assert.equal(watches, 4 * znodes);
    },
  },
  {
    title: 'leaves sessions without closing them',
    check: async (program, fake) => {
      const { sessions } = await runGenerator(program, 'expire', { port: fake.port, connections: 9, sessionTimeout: 4000 });
      assert.equal(sessions, 9);
      assert.ok(fake.data.has('/bench/e000008'));
    },
  },
];

let held;
const lies = [
  { title: 'a wrong xid', lie: (reply) => ({ ...reply, xid: reply.xid + 1 }), complaint: /reply with xid 2 where 1 was next/ },
  {
    title: 'two replies in the wrong order',
    lie: (reply) => {
      if (reply.xid !== 1) return { ...held, xid: reply.xid };
      held = reply;
      return undefined;
    },
    complaint: /reply with xid 2 where 1 was next/,
  },
  {
    title: 'a zxid that decreases',
    lie: (reply) => ({ ...reply, zxid: 1000 - reply.xid }),
    complaint: /zxid 0x3e6 after 0x3e7/,
  },
  {
    title: 'a body that is too short',
    lie: (reply) => ({ ...reply, body: reply.body.subarray(1) }),
    complaint: /the body of a reply to opcode 4 has 171 bytes, not 172/,
  },
  {
    title: 'other data',
    lie: (reply) => ({ ...reply, body: Buffer.concat([reply.body.subarray(0, 4), Buffer.alloc(reply.body.length - 4, 7)]) }),
    complaint: /getData did not give the data that was written/,
  },
  { title: 'an unknown error code', lie: (reply) => ({ ...reply, error: 3 }), complaint: /error code 3/ },
];

export async function checkGenerator(program) {
  for (const { title, check } of truths) {
    const fake = await startFake();
    try {
      await runGenerator(program, 'preload', { port: fake.port, znodes });
      await check(program, fake);
    } catch (error) {
      throw new Error(`the load generator does not pass its own check "${title}"`, { cause: error });
    } finally {
      fake.close();
    }
  }
  for (const { title, lie, complaint } of lies) {
    let lying = false;
    const fake = await startFake((reply, request) => (lying ? lie(reply, request) : reply));
    await runGenerator(program, 'preload', { port: fake.port, znodes });
    lying = true;
    await assert.rejects(runGenerator(program, 'load', { ...short, port: fake.port, inFlight: 2 }), (error) => {
      assert.ok(error instanceof GeneratorError, `${title}: ${String(error)}`);
      assert.equal(error.exitCode, 2, title);
      assert.match(error.message, complaint, title);
      return true;
    });
    fake.close();
  }
  return truths.length + lies.length;
}
