/**
 * A client on the virtual wire, as raw as can be: it shakes hands, keeps its session alive, sends what it is told to, and writes down
 * everything that comes back. After a broken connection it comes back with its session and sends nothing again: what was under way has an
 * unknown outcome, and watches are gone.
 */
import {
  FrameCutter,
  type Millis,
  operations,
  type OperationName,
  ProtocolError,
  Reader,
  readConnectResponse,
  readReplyBody,
  readReplyHeader,
  readWatcherEvent,
  type RequestOf,
  type SessionId,
  writeConnectRequest,
  Writer,
  writeRequestHeader,
  Xid,
  type Zxid,
} from '@tskeeper/protocol';
import type { ReceivedBatch, SeededRandom, StreamId } from '@tskeeper/runtime';
import type { MemoryNetwork, VirtualCnxn } from '@tskeeper/runtime/internal';
import type { CnxnRecord, Request } from './recording.ts';
import { serverPort, type VirtualWorld } from './virtual-world.ts';

export interface ClientCnxn {
  readonly stream: StreamId;
  readonly record: CnxnRecord;
  readonly cutter: FrameCutter;
  /** Sent and not answered, in order. */
  readonly outstanding: Request[];
  open: boolean;
}

export interface ClientOptions {
  readonly name: string;
  readonly address: string;
  readonly timeoutMs: Millis;
}

export class VirtualClient {
  readonly name: string;
  readonly #world: VirtualWorld;
  readonly #random: SeededRandom;
  readonly #network: MemoryNetwork;
  readonly #options: ClientOptions;
  readonly #cnxns = new Map<StreamId, ClientCnxn>();
  session: SessionId = 0n;
  password: Buffer | null = null;
  lastZxidSeen: Zxid = 0;
  /** The connection it works with; older ones may still be on their way out. */
  cnxn: ClientCnxn | undefined;
  /** Sessions that were refused, oldest first. */
  readonly lost: SessionId[] = [];
  #nextXid = 1;
  #heardMs: Millis = 0;
  #sentMs: Millis = 0;
  #retired = false;
  #asleepUntilMs: Millis = 0;
  #dialPlanned = false;

  constructor(world: VirtualWorld, random: SeededRandom, options: ClientOptions) {
    this.name = options.name;
    this.#world = world;
    this.#random = random;
    this.#options = options;
    this.#network = world.wire.stack(options.address);
    this.#network.start({
      accepted() {},
      connected: (stream) => this.#connected(stream),
      received: (batch) => this.#received(batch),
      drained() {},
      ended: (stream) => this.#network.end(stream),
      closed: (stream) => this.#closed(stream),
    });
    this.#planDial(0);
    this.#keepAlive();
  }

  /** Its session is open and it can send. */
  get ready(): boolean {
    return this.cnxn !== undefined && (this.cnxn.record.session ?? 0n) !== 0n;
  }

  get outstandingCount(): number {
    return this.cnxn?.outstanding.length ?? 0;
  }

  /** Sends a request; whoever is interested looks at its `reply` later. */
  send<Name extends OperationName>(name: Name, record: RequestOf<Name>): Request | undefined {
    const { cnxn } = this;
    if (cnxn === undefined || !this.ready) return undefined;
    const xid = name === 'ping' ? Xid.ping : this.#nextXid++;
    const request: Request = { session: this.session, xid, name, record, sentMs: this.#world.clock.elapsedMs, reply: undefined };
    const { opCode, request: codec } = operations[name];
    const writer = new Writer();
    const frame = writer.beginFrame();
    writeRequestHeader(writer, { xid, type: opCode });
    (codec as { write(to: Writer, value: unknown): void }).write(writer, record);
    writer.endFrame(frame);
    cnxn.outstanding.push(request);
    cnxn.record.requests.push(request);
    this.#write(cnxn, writer);
    return request;
  }

  // --- Ways to misbehave

  /** The wire under the connection, for whoever wants to harm it. */
  get wire(): VirtualCnxn | undefined {
    const { cnxn } = this;
    if (cnxn === undefined) return undefined;
    for (const each of this.#world.wire.cnxns) {
      if (each.forward.from.stack === this.#network && each.forward.from.stream === cnxn.stream) return each;
    }
    return undefined;
  }

  reset(): void {
    const { cnxn } = this;
    if (cnxn === undefined) return;
    this.#network.reset(cnxn.stream);
    this.#leave(cnxn);
  }

  /** Says that it will send nothing more, and goes on listening. */
  halfClose(): void {
    const { cnxn } = this;
    if (cnxn === undefined) return;
    this.#network.end(cnxn.stream);
    this.#leave(cnxn);
  }

  /** Dials anew while the old connection is still there, and lets that one lie. */
  moveOn(): void {
    if (this.cnxn !== undefined) this.#leave(this.cnxn);
  }

  /** Falls off the net for a while, without a word. */
  sleep(ms: Millis): void {
    this.#asleepUntilMs = this.#world.clock.elapsedMs + ms;
    const { wire, cnxn } = this;
    wire?.forward.hold();
    wire?.backward.hold();
    if (cnxn !== undefined) this.#leave(cnxn);
  }

  /** Comes back no more. Its connections stay as they are. */
  retire(): void {
    this.#retired = true;
  }

  // --- Connections

  #planDial(ms: Millis): void {
    if (this.#dialPlanned || this.#retired) return;
    this.#dialPlanned = true;
    const { clock } = this.#world;
    clock.at(Math.max(clock.elapsedMs + ms, this.#asleepUntilMs), 'dial', undefined, () => {
      this.#dialPlanned = false;
      this.#dial();
    });
  }

  #dial(): void {
    const { server, clock } = this.#world;
    if (this.#retired || this.cnxn !== undefined) return;
    if (server === undefined || clock.elapsedMs < this.#asleepUntilMs) {
      this.#planDial(5 + this.#random.below(40));
      return;
    }
    const stream = this.#network.connect({ address: server.address, port: serverPort });
    const record: CnxnRecord = {
      client: this.name,
      key: '',
      openedMs: clock.elapsedMs,
      asked: this.session,
      session: undefined,
      timeoutMs: 0,
      shakenMs: 0,
      requests: [],
      items: [],
      closedMs: undefined,
    };
    this.cnxn = { stream, record, cutter: new FrameCutter(0x7fffffff), outstanding: [], open: false };
    this.#cnxns.set(stream, this.cnxn);
    this.#heardMs = clock.elapsedMs;
  }

  #connected(stream: StreamId): void {
    const cnxn = this.#cnxns.get(stream);
    if (cnxn === undefined) return;
    cnxn.open = true;
    for (const { dialer, forward } of this.#world.wire.cnxns) {
      if (forward.from.stack === this.#network && forward.from.stream === stream) {
        (cnxn.record as { key: string }).key = `${dialer.address}:${dialer.port}`;
      }
    }
    this.#world.recording.cnxns.push(cnxn.record);
    const writer = new Writer();
    const frame = writer.beginFrame();
    writeConnectRequest(writer, {
      protocolVersion: 0,
      lastZxidSeen: this.lastZxidSeen,
      timeOut: this.#options.timeoutMs,
      sessionId: cnxn.record.asked,
      passwd: this.password,
      readOnly: false,
    });
    writer.endFrame(frame);
    this.#write(cnxn, writer);
  }

  #write(cnxn: ClientCnxn, writer: Writer): void {
    this.#sentMs = this.#world.clock.elapsedMs;
    this.#network.send({
      count: 1,
      streams: [cnxn.stream],
      buffers: [Buffer.from(writer.written())],
      starts: [0],
      ends: [writer.offset],
      kept: [],
    });
  }

  #received(batch: ReceivedBatch): void {
    for (let index = 0; index < batch.count; index++) {
      const cnxn = this.#cnxns.get(batch.streams[index]!);
      if (cnxn === undefined) continue;
      const bytes = Buffer.from(batch.buffers[index]!.subarray(batch.starts[index], batch.ends[index]));
      this.#world.note(bytes);
      try {
        cnxn.cutter.feed(bytes, 0, bytes.length, (reader) => {
          this.#frame(cnxn, reader);
          return true;
        });
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error;
        this.#world.recording.faults.push(`${this.name} got a frame that it cannot read: ${error.message}`);
      }
    }
  }

  #frame(cnxn: ClientCnxn, frame: Reader): void {
    const { elapsedMs } = this.#world.clock;
    // A copy, since what is read are views and they are kept.
    const reader = new Reader(Buffer.from(frame.bytes.subarray(frame.offset, frame.limit)));
    if (cnxn === this.cnxn) this.#heardMs = elapsedMs;
    if (cnxn.record.session === undefined) {
      this.#shaken(cnxn, reader);
      return;
    }
    const header = readReplyHeader(reader);
    if (header.zxid > this.lastZxidSeen && cnxn.record.session === this.session) this.lastZxidSeen = header.zxid;
    if (header.xid === Xid.notification) {
      const { type, path } = readWatcherEvent(reader);
      cnxn.record.items.push({ kind: 'event', atMs: elapsedMs, zxid: header.zxid, type, path });
      return;
    }
    const request = cnxn.outstanding.shift();
    if (request === undefined) {
      this.#world.recording.faults.push(`${this.name} got a reply to nothing, with xid ${header.xid}`);
      return;
    }
    const body = readReplyBody(reader, operations[request.name], header.err);
    request.reply = { atMs: elapsedMs, zxid: header.zxid, err: header.err, body };
    cnxn.record.items.push({ kind: 'reply', atMs: elapsedMs, xid: header.xid, zxid: header.zxid, request });
    // Its end was asked for and has come.
    if (request.name === 'closeSession' && cnxn === this.cnxn) this.#forgetSession();
  }

  #shaken(cnxn: ClientCnxn, reader: Reader): void {
    const response = readConnectResponse(reader);
    const { record } = cnxn;
    record.session = response.sessionId;
    record.timeoutMs = response.timeOut;
    record.shakenMs = this.#world.clock.elapsedMs;
    if (cnxn !== this.cnxn) return;
    if (response.timeOut <= 0) {
      this.lost.push(this.session);
      this.#forgetSession();
    } else {
      this.session = response.sessionId;
      this.password = Buffer.from(response.passwd ?? []);
    }
  }

  #forgetSession(): void {
    this.session = 0n;
    this.password = null;
    this.lastZxidSeen = 0;
    this.#nextXid = 1;
    if (this.cnxn !== undefined) this.#leave(this.cnxn);
  }

  #closed(stream: StreamId): void {
    const cnxn = this.#cnxns.get(stream);
    if (cnxn === undefined) return;
    this.#cnxns.delete(stream);
    cnxn.record.closedMs = this.#world.clock.elapsedMs;
    if (cnxn === this.cnxn) this.#leave(cnxn);
  }

  #leave(cnxn: ClientCnxn): void {
    if (this.cnxn === cnxn) this.cnxn = undefined;
    this.#planDial(1 + this.#random.below(60));
  }

  #keepAlive(): void {
    const { clock } = this.#world;
    const interval = this.#options.timeoutMs / 6;
    clock.at(clock.elapsedMs + interval, 'keep alive', undefined, () => {
      if (this.#retired) return;
      if (this.ready && clock.elapsedMs - this.#sentMs >= interval) this.send('ping', undefined);
      // As clients do: a server that says nothing for so long is given up.
      if (this.cnxn !== undefined && clock.elapsedMs - this.#heardMs > (this.#options.timeoutMs * 2) / 3) this.reset();
      this.#keepAlive();
    });
  }
}
