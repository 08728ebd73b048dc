/**
 * The minimum of a client on Node: it opens a session, writes getData requests, with one write per
 * turn, splits the replies and extracts the data. No promises, no Stat, no watches, no errors, no
 * reconnect. It shows how much of the cost is Node's and the system's, with this server.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import { checkBytes, drive } from './node-driver.js';

const [connectString] = process.argv.slice(2);

const opCodeGetData = 4;
const frameLengthBytes = 4;
const replyHeaderBytes = 16;
const handshakeBytes = 45;

class BareClient {
  #socket;
  #output = Buffer.allocUnsafeSlow(64 * 1024);
  #outputEnd = 0;
  #xid = 0;
  #waiting = [];
  #kept = Buffer.alloc(0);
  #isOpen = false;
  #inTurn = false;

  async open(host, port) {
    const buffer = Buffer.allocUnsafeSlow(64 * 1024);
    const callback = (count) => {
      this.#received(buffer.subarray(0, count));
      return true;
    };
    this.#socket = connect({ host, port, noDelay: true, onread: { buffer, callback } });
    await once(this.#socket, 'connect');
    this.#socket.on('error', () => undefined);
    const handshake = Buffer.alloc(frameLengthBytes + handshakeBytes);
    handshake.writeInt32BE(handshakeBytes, 0);
    handshake.writeInt32BE(30_000, 16);
    handshake.writeInt32BE(16, 28);
    this.#socket.write(handshake);
    await new Promise((resolve) => this.#waiting.push(resolve));
  }

  getData(path, done) {
    const at = this.#outputEnd;
    const pathBytes = this.#output.write(path, at + 16, 'latin1');
    this.#output.writeInt32BE(13 + pathBytes, at);
    this.#output.writeInt32BE(++this.#xid, at + 4);
    this.#output.writeInt32BE(opCodeGetData, at + 8);
    this.#output.writeInt32BE(pathBytes, at + 12);
    this.#output[at + 16 + pathBytes] = 0;
    this.#outputEnd = at + 17 + pathBytes;
    this.#waiting.push(done);
    if (this.#inTurn) return;
    this.#inTurn = true;
    queueMicrotask(() => this.#endTurn());
  }

  #endTurn() {
    this.#inTurn = false;
    if (this.#outputEnd === 0) return;
    this.#socket.write(Buffer.from(this.#output.subarray(0, this.#outputEnd)));
    this.#outputEnd = 0;
  }

  #received(chunk) {
    const bytes = this.#kept.length === 0 ? chunk : Buffer.concat([this.#kept, chunk]);
    this.#inTurn = true;
    let at = 0;
    while (bytes.length - at >= frameLengthBytes) {
      const end = at + frameLengthBytes + bytes.readInt32BE(at);
      if (end > bytes.length) break;
      this.#answer(bytes, at + frameLengthBytes);
      at = end;
    }
    this.#kept = at === bytes.length ? this.#kept.subarray(0, 0) : Buffer.from(bytes.subarray(at));
    this.#endTurn();
  }

  #answer(bytes, at) {
    const done = this.#waiting.shift();
    if (!this.#isOpen) {
      this.#isOpen = true;
      done();
      return;
    }
    const length = bytes.readInt32BE(at + replyHeaderBytes);
    const start = at + replyHeaderBytes + 4;
    done(undefined, new Uint8Array(bytes.subarray(start, start + length)));
  }

  /** It sends no pings, so the server may have ended the session long ago. */
  async close() {
    this.#socket.destroy();
  }
}

await drive({
  style: 'callback',
  open: async () => {
    const client = new BareClient();
    const [host, port] = connectString.split(':');
    await client.open(host, Number(port));
    return client;
  },
  getData: (client, next, bytes) => (done) => {
    client.getData(next(), (error, data) => {
      checkBytes(data, bytes);
      done(error);
    });
  },
  close: (client) => client.close(),
});
