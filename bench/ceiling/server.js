/**
 * The ceiling: how fast a Node server without any logic could be.
 *
 * It reads frames, determines the type of each request, and answers with constant bytes; there is
 * no tree, no session, no ACL and no watch. Writes are appended to a file and answered after
 * fdatasync, in batches: writes that arrive during one sync wait for the next. Output leaves with
 * one write per connection and turn. It uses only the public interface of node:net and node:fs. A
 * real server does strictly more work per request, so its distance from here is the cost of its own
 * code.
 *
 *     node bench/ceiling/server.js zoo.cfg
 */
import { closeSync, fdatasync, ftruncateSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const frameLengthBytes = 4;
const replyHeaderBytes = 16;
const statBytes = 68;
const opCreate = 1;
const opExists = 3;
const opGetData = 4;
const opSetData = 5;
const opPing = 11;
const opCloseSession = -11;
const errUnimplemented = -6;
/** As ZooKeeper preallocates its log, so that a sync writes data and not the file's size. */
const preallocatedBytes = 64 * 1024 * 1024;
/** Size of a log entry without the request: checksum, length, header, end mark. */
const entryOverheadBytes = 56;

/** Bytes to send on one connection, or to write to the file. */
class Output {
  bytes = Buffer.allocUnsafe(16 * 1024);
  length = 0;

  /** Reserves `count` bytes and returns their position. */
  take(count) {
    const start = this.length;
    this.length += count;
    if (this.length > this.bytes.length) {
      const grown = Buffer.allocUnsafe(Math.max(this.length, this.bytes.length * 2));
      this.bytes.copy(grown, 0, 0, start);
      this.bytes = grown;
    }
    return start;
  }
}

class Connection {
  input = Buffer.alloc(0);
  isEstablished = false;
  /** Replies to send at the end of the turn. */
  output = new Output();
  /** Replies that wait for the pending sync, and for the one after it. */
  synced = new Output();
  pending = new Output();

  constructor(ceiling, socket) {
    this.ceiling = ceiling;
    this.socket = socket;
  }

  receive(chunk) {
    let bytes = chunk;
    if (this.input.length > 0) bytes = Buffer.concat([this.input, chunk]);
    let offset = 0;
    while (bytes.length - offset >= frameLengthBytes) {
      const end = offset + frameLengthBytes + bytes.readInt32BE(offset);
      if (end > bytes.length) break;
      if (this.isEstablished) this.answer(bytes, offset + frameLengthBytes, end);
      else this.answerHandshake();
      offset = end;
    }
    this.input = offset === bytes.length ? noBytes : Buffer.from(bytes.subarray(offset));
    this.flush(this.output);
  }

  answerHandshake() {
    this.isEstablished = true;
    const at = this.output.take(41);
    const { bytes } = this.output;
    bytes.fill(0, at, at + 41);
    bytes.writeInt32BE(37, at);
    bytes.writeInt32BE(30_000, at + 8);
    bytes.writeInt32BE(++this.ceiling.sessions, at + 16);
    bytes.writeInt32BE(16, at + 20);
  }

  answer(bytes, start, end) {
    const xid = bytes.readInt32BE(start);
    switch (bytes.readInt32BE(start + 4)) {
      case opGetData:
        this.reply(this.orderedOutput(), xid, 0, this.ceiling.dataAndStat);
        break;
      case opExists:
        this.reply(this.orderedOutput(), xid, 0, this.ceiling.stat);
        break;
      case opPing:
        this.reply(this.orderedOutput(), xid, 0, noBytes);
        break;
      case opSetData:
        this.ceiling.append(this, bytes, start, end);
        this.reply(this.pending, xid, 0, this.ceiling.stat);
        break;
      case opCreate: {
        const pathEnd = start + 12 + bytes.readInt32BE(start + 8);
        this.ceiling.keepData(bytes, pathEnd);
        this.ceiling.append(this, bytes, start, end);
        this.reply(this.pending, xid, 0, bytes.subarray(start + 8, pathEnd));
        break;
      }
      case opCloseSession:
        this.reply(this.output, xid, 0, noBytes);
        this.flush(this.output);
        this.socket.end();
        break;
      default:
        this.reply(this.orderedOutput(), xid, errUnimplemented, noBytes);
    }
  }

  /** The output for a reply that needs no sync itself, but must not overtake one that does. */
  orderedOutput() {
    if (this.pending.length > 0) return this.pending;
    return this.synced.length > 0 ? this.synced : this.output;
  }

  reply(output, xid, error, body) {
    const length = replyHeaderBytes + body.length;
    const at = output.take(frameLengthBytes + length);
    const { bytes } = output;
    bytes.writeInt32BE(length, at);
    bytes.writeInt32BE(xid, at + 4);
    bytes.writeInt32BE(0, at + 8);
    bytes.writeInt32BE(1, at + 12);
    bytes.writeInt32BE(error, at + 16);
    body.copy(bytes, at + frameLengthBytes + replyHeaderBytes);
  }

  /**
   * One write for everything collected. The socket keeps the bytes, so further ones go into a new
   * buffer.
   */
  flush(output) {
    if (output.length === 0) return;
    this.socket.write(Buffer.from(output.bytes.subarray(0, output.length)));
    output.length = 0;
  }
}

const noBytes = Buffer.alloc(0);

export class Ceiling {
  sessions = 0;
  stat = Buffer.alloc(statBytes);
  /** What getData answers: the data of the last create, and a Stat. */
  dataAndStat = Buffer.alloc(4 + statBytes);

  /** The batch being collected, and the connections that wait for it. */
  log = new Output();
  waiting = new Set();
  syncing = false;
  scheduled = false;
  position = 0;

  constructor(dataDir) {
    this.file = openSync(path.join(dataDir, 'ceiling.log'), 'w+');
    this.allocated = 0;
    this.server = createServer({ noDelay: true }, (socket) => {
      const connection = new Connection(this, socket);
      socket.on('data', (chunk) => connection.receive(chunk));
      socket.on('error', () => socket.destroy());
      socket.on('close', () => this.waiting.delete(connection));
    });
  }

  listen(port) {
    return new Promise((resolve, reject) => {
      this.server.once('error', reject);
      this.server.listen(port, '127.0.0.1', 1024, () => resolve(this.server.address().port));
    });
  }

  close() {
    this.server.close();
    closeSync(this.file);
  }

  keepData(bytes, at) {
    const length = 4 + Math.max(0, bytes.readInt32BE(at));
    if (this.dataAndStat.length !== length + statBytes) this.dataAndStat = Buffer.alloc(length + statBytes);
    bytes.copy(this.dataAndStat, 0, at, at + length);
  }

  append(connection, bytes, start, end) {
    const at = this.log.take(end - start + entryOverheadBytes);
    bytes.copy(this.log.bytes, at, start, end);
    this.log.bytes.fill(0x42, at + end - start, this.log.length);
    this.waiting.add(connection);
    if (this.syncing || this.scheduled) return;
    this.scheduled = true;
    // At the end of the turn, so that everything that arrived in it is one batch.
    setImmediate(() => this.sync());
  }

  sync() {
    this.scheduled = false;
    this.syncing = true;
    if (this.position + this.log.length > this.allocated) {
      this.allocated += preallocatedBytes;
      ftruncateSync(this.file, this.allocated);
      fsyncSync(this.file);
    }
    writeSync(this.file, this.log.bytes, 0, this.log.length, this.position);
    this.position += this.log.length;
    this.log.length = 0;
    const connections = [...this.waiting];
    this.waiting.clear();
    // Replies written from here on belong to the next batch.
    for (const connection of connections) [connection.synced, connection.pending] = [connection.pending, connection.synced];
    fdatasync(this.file, (error) => {
      if (error) throw error;
      this.syncing = false;
      for (const connection of connections) connection.flush(connection.synced);
      if (this.log.length > 0) this.sync();
    });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  // The two keys that it needs of the file that the other servers are started with.
  const config = readFileSync(process.argv[2], 'utf8');
  const valueOf = (key) => new RegExp(`^${key}=(.*)$`, 'm').exec(config)[1];
  const ceiling = new Ceiling(valueOf('dataDir'));
  console.log(`listening on ${await ceiling.listen(Number(valueOf('clientPort')))}`);
}
