/**
 * Clients that write without a pause, one request after the other, and resume their session at
 * another server as soon as theirs fails. They measure how long none of them gets a reply.
 */
import { connect } from 'node:net';

const opCreate = 1;
const opSetData = 5;
const opCloseSession = -11;
const nodeExists = -110;
const sessionTimeoutMs = 30_000;
/** Pause between two attempts to connect: short, as of clients in a hurry. */
const pauseMs = 5;
/**
 * Default time after which to leave a server that accepts a connection without opening a session.
 */
const defaultDialTimeoutMs = 250;
const valueBytes = 100;
const path = '/written';

function frame(...parts) {
  const body = Buffer.concat(parts);
  const head = Buffer.alloc(4);
  head.writeInt32BE(body.length);
  return Buffer.concat([head, body]);
}

function withLength(bytes) {
  const head = Buffer.alloc(4);
  head.writeInt32BE(bytes.length);
  return Buffer.concat([head, bytes]);
}

function int(value) {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

class Writer {
  #ports;
  #next;
  #acknowledged;
  #session = Buffer.alloc(8);
  #password = Buffer.alloc(16);
  #zxid = Buffer.alloc(8);
  #xid = 0;
  #socket;
  #input = Buffer.alloc(0);
  #isEstablished = false;
  #dialTimer;
  #dialTimeoutMs;
  #stopped = false;
  #resolveClosed;
  /** The first wrong reply. */
  protocolError;

  constructor(ports, first, patienceMs, acknowledged) {
    this.#ports = ports;
    this.#dialTimeoutMs = patienceMs;
    this.#next = first;
    this.#acknowledged = acknowledged;
  }

  start() {
    this.#stopped = false;
    this.#dial();
  }

  /** Closes its session, if possible. */
  async stop() {
    this.#stopped = true;
    const socket = this.#socket;
    clearTimeout(this.#dialTimer);
    if (socket === undefined) return;
    const gone = new Promise((resolve) => {
      this.#resolveClosed = resolve;
    });
    if (this.#isEstablished) socket.write(frame(int(++this.#xid), int(opCloseSession)));
    else socket.destroy();
    const late = setTimeout(() => socket.destroy(), 1000);
    await gone;
    clearTimeout(late);
    this.#session.fill(0);
    this.#password.fill(0);
  }

  #dial() {
    if (this.#stopped) return;
    const port = this.#ports[this.#next++ % this.#ports.length];
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    this.#socket = socket;
    this.#input = Buffer.alloc(0);
    this.#isEstablished = false;
    this.#dialTimer = setTimeout(() => socket.destroy(), this.#dialTimeoutMs);
    socket.on('connect', () => socket.write(this.#handshake()));
    socket.on('data', (bytes) => this.#received(bytes));
    socket.on('error', () => {});
    socket.on('close', () => this.#closed());
  }

  #handshake() {
    return frame(int(0), this.#zxid, int(sessionTimeoutMs), this.#session, withLength(this.#password), Buffer.from([0]));
  }

  #closed() {
    clearTimeout(this.#dialTimer);
    this.#socket = undefined;
    this.#isEstablished = false;
    this.#resolveClosed?.();
    if (!this.#stopped) setTimeout(() => this.#dial(), pauseMs);
  }

  #received(bytes) {
    this.#input = Buffer.concat([this.#input, bytes]);
    while (this.#input.length >= 4) {
      const end = 4 + this.#input.readInt32BE(0);
      if (this.#input.length < end) return;
      const body = this.#input.subarray(4, end);
      this.#input = this.#input.subarray(end);
      if (this.#isEstablished) this.#answered(body);
      else this.#onConnectResponse(body);
    }
  }

  #onConnectResponse(body) {
    clearTimeout(this.#dialTimer);
    if (body.readInt32BE(4) <= 0) {
      this.protocolError = 'the session of a client that was alive has expired';
      this.#session.fill(0);
      this.#password.fill(0);
      this.#socket.destroy();
      return;
    }
    this.#isEstablished = true;
    this.#session = Buffer.from(body.subarray(8, 16));
    this.#password = Buffer.from(body.subarray(20, 36));
    this.#write();
  }

  #answered(body) {
    const xid = body.readInt32BE(0);
    const error = body.readInt32BE(12);
    if (body.readBigInt64BE(4) > 0n) body.copy(this.#zxid, 0, 4, 12);
    // The reply to its last write, and to its closeSession.
    if (this.#stopped) return;
    if (xid !== this.#xid || error !== 0) this.protocolError = `the answer to write ${this.#xid} was error ${error} for ${xid}`;
    this.#acknowledged();
    this.#write();
  }

  #write() {
    const version = int(-1);
    this.#socket.write(
      frame(int(++this.#xid), int(opSetData), withLength(Buffer.from(path)), withLength(Buffer.alloc(valueBytes, 7)), version),
    );
  }
}

/** Creates the znode that writers write to. */
export function makeZnode(port) {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    const acl = Buffer.concat([int(1), int(31), withLength(Buffer.from('world')), withLength(Buffer.from('anyone'))]);
    let input = Buffer.alloc(0);
    socket.on('connect', () => {
      socket.write(frame(int(0), Buffer.alloc(8), int(sessionTimeoutMs), Buffer.alloc(8), withLength(Buffer.alloc(16)), Buffer.from([0])));
      socket.write(frame(int(1), int(opCreate), withLength(Buffer.from(path)), withLength(Buffer.alloc(valueBytes)), acl, int(0)));
      socket.write(frame(int(2), int(opCloseSession)));
    });
    socket.on('data', (bytes) => {
      input = Buffer.concat([input, bytes]);
    });
    socket.on('error', reject);
    socket.on('close', () => {
      const second = input.length < 4 ? 0 : 4 + input.readInt32BE(0);
      const error = input.length < second + 20 ? undefined : input.readInt32BE(second + 16);
      if (error === 0 || error === nodeExists) resolve();
      else reject(new Error(`cannot create the znode for the writers: ${error ?? 'no answer'}`));
    });
  });
}

/** Three clients, one for each server at the start. */
export class Writers {
  #writers;
  /** Times of replies, in milliseconds. */
  #times = [];
  #waiting = [];

  constructor(ports, { patienceMs = defaultDialTimeoutMs } = {}) {
    this.#writers = ports.map((_, index) => new Writer(ports, index, patienceMs, () => this.#acknowledged()));
  }

  #acknowledged() {
    this.#times.push(performance.now());
    if (this.#waiting.length > 0) this.#waiting = this.#waiting.filter((isOver) => !isOver());
  }

  start() {
    this.#times = [];
    for (const writer of this.#writers) writer.start();
  }

  async stop() {
    await Promise.all(this.#writers.map((writer) => writer.stop()));
    const error = this.#writers.find(({ protocolError }) => protocolError !== undefined)?.protocolError;
    if (error !== undefined) throw new Error(error);
  }

  /** Waits for this many replies that arrive after `sinceMs`. */
  answers(count, sinceMs, timeoutMs) {
    return new Promise((resolve, reject) => {
      const from = this.#times.findIndex((time) => time > sinceMs);
      const begin = from === -1 ? this.#times.length : from;
      const timer = setTimeout(() => reject(new Error(`timed out after ${timeoutMs} ms waiting for ${count} answered writes`)), timeoutMs);
      const isOver = () => {
        if (this.#times.length - begin < count) return false;
        clearTimeout(timer);
        resolve();
        return true;
      };
      if (!isOver()) this.#waiting.push(isOver);
    });
  }

  /** The longest time without a reply, starting with the last reply before `sinceMs`. */
  longestGap(sinceMs) {
    let longest = 0;
    for (let at = 1; at < this.#times.length; at++) {
      if (this.#times[at] > sinceMs) longest = Math.max(longest, this.#times[at] - this.#times[at - 1]);
    }
    return longest;
  }

  /** Time since the last reply. */
  msSinceLastAnswer() {
    return performance.now() - (this.#times.at(-1) ?? performance.now());
  }
}
