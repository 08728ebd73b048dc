/**
 * A minimal client: it does the handshake, keeps its session alive, and sends the requests of its
 * program. After a broken connection it resumes its session and repeats nothing: requests in
 * transit have an unknown outcome. It can also misbehave: use two connections, send half a frame, a
 * wrong password, or a zxid from the future.
 */
import {
  AddWatchMode,
  type AddWatchRequest,
  ErrorCode,
  EventType,
  FrameDecoder,
  type GetDataRequest,
  type Millis,
  operations,
  type OperationName,
  ProtocolError,
  Reader,
  readConnectResponse,
  readReplyHeader,
  readWatcherEvent,
  type RequestOf,
  type SaslReply,
  type SessionId,
  writeConnectRequest,
  Writer,
  writeRequestHeader,
  Xid,
  type Zxid,
} from '@tskeeper/protocol';
import type { ReceivedBatch, SeededRandom, StreamId } from '@tskeeper/runtime';
import type { VirtualCnxn } from '@tskeeper/runtime/internal';
import type { CnxnRecord, Request } from '../record/recording.ts';
import type { Actor, ClientRequest } from './actor.ts';
import { type ClientMachine, type ClientWorld, serverPort } from './client-world.ts';
import { answerTo, type SaslLogin } from './sasl-login.ts';

/** xid, zxid and error, without a body. */
const replyHeaderBytes = 16;

interface ClientCnxn {
  readonly stream: StreamId;
  readonly cutter: FrameDecoder;
  record: CnxnRecord | undefined;
  isEstablished: boolean;
  /** Sent without a reply so far. */
  outstanding: number;
  /** How many of the tap's records it has processed; the tap may be a few frames ahead. */
  itemsSeen: number;
}

export interface RawClientOptions {
  readonly name: string;
  readonly address: string;
  readonly timeoutMs: Millis;
  /** Whether it restores its watches after a reconnect, as clients do. */
  readonly restoresWatches?: boolean;
  /** Credentials that it sends at the beginning of each connection: `user:password`. */
  readonly credentials?: string | undefined;
  /** Proved on each connection, while it sends other requests. */
  readonly sasl?: SaslLogin | undefined;
  /** Whether it accepts a server in read-only mode, and looks for another one meanwhile. */
  readonly acceptsReadOnly?: boolean | undefined;
  /**
   * Whether it presents the session that such a server has opened to other servers, as some clients
   * do; most open another one.
   */
  readonly keepsLocalSession?: boolean | undefined;
  /** Upper bound of the pause before it connects again; default 60 ms. */
  readonly redialMsMax?: Millis | undefined;
  /** The only server that it connects to. Default: all of them. */
  readonly server?: ClientWorld['servers'][number] | undefined;
}

/** What a program saves of its session, so that another process can resume it. */
export interface SessionDump {
  readonly session: SessionId;
  readonly password: Buffer | null;
  readonly nextXid: number;
  readonly lastZxidSeen: Zxid;
}

/** The watches that a client believes to have. */
interface Watches {
  readonly data: Set<string>;
  readonly exist: Set<string>;
  readonly child: Set<string>;
  readonly persistent: Set<string>;
  readonly recursive: Set<string>;
}

function noWatches(): Watches {
  return { data: new Set(), exist: new Set(), child: new Set(), persistent: new Set(), recursive: new Set() };
}

export class RawClient implements Actor {
  readonly name: string;
  readonly options: RawClientOptions;
  readonly #world: ClientWorld;
  readonly #random: SeededRandom;
  readonly #network: ClientMachine;
  readonly #cnxns = new Map<StreamId, ClientCnxn>();
  session: SessionId = 0n;
  password: Buffer | null = null;
  lastZxidSeen: Zxid = 0;
  /** The connection in use; older ones may still be closing. */
  cnxn: ClientCnxn | undefined;
  /** Sessions that were refused, oldest first. */
  readonly lostSessions: SessionId[] = [];
  #watches = noWatches();
  #nextXid = 1;
  #lastReceivedMs: Millis = 0;
  #lastSentMs: Millis = 0;
  /** A server in read-only mode has opened the session: no other server knows it. */
  #isSessionLocal = false;
  #isAbandoned = false;
  #dialsOnce = false;
  #offlineUntilMs: Millis = 0;
  #isDialScheduled = false;
  /** Where it connects next, whatever the options say. */
  #nextServer: ClientWorld['servers'][number] | undefined;

  constructor(world: ClientWorld, random: SeededRandom, options: RawClientOptions) {
    this.name = options.name;
    this.options = options;
    this.#world = world;
    this.#random = random;
    this.#network = world.clientNetwork(options.name, options.address);
    this.#network.start({
      accepted() {},
      connected: (stream) => this.#connected(stream),
      received: (batch) => this.#received(batch),
      drained() {},
      ended: (stream) => this.#network.end(stream),
      closed: (stream) => this.#closed(stream),
    });
    this.#scheduleDial(0);
    this.#keepAlive();
  }

  /** Whether its session is open and it can send. */
  get acceptsRequests(): boolean {
    return this.ready;
  }

  get ready(): boolean {
    return this.cnxn?.isEstablished === true && this.session !== 0n;
  }

  get outstandingCount(): number {
    return this.cnxn?.outstanding ?? 0;
  }

  /** Sends a request; its `reply` is set later. */
  send<Name extends OperationName>(name: Name, record: RequestOf<Name>): Request | undefined {
    const { cnxn } = this;
    if (cnxn === undefined || !this.ready) return undefined;
    const writer = new Writer();
    const frame = writer.beginFrame();
    const { opCode, request: codec } = operations[name];
    writeRequestHeader(writer, { xid: this.#xidOf(name), type: opCode });
    (codec as { write(to: Writer, value: unknown): void }).write(writer, record);
    writer.endFrame(frame);
    cnxn.outstanding++;
    this.#write(cnxn, writer);
    return cnxn.record?.requests.at(-1);
  }

  submit({ name, record }: ClientRequest): void {
    this.send(name, record as never);
  }

  #xidOf(name: OperationName): number {
    switch (name) {
      case 'ping':
        return Xid.ping;
      case 'auth':
        return Xid.auth;
      case 'setWatches':
      case 'setWatches2':
        return Xid.setWatches;
      default:
        return this.#nextXid++;
    }
  }

  // --- Ways to misbehave

  /** The wire of the connection, for faults. */
  get wire(): VirtualCnxn | undefined {
    return this.cnxn === undefined ? undefined : this.#network.wireOf(this.cnxn.stream);
  }

  reset(): void {
    const { cnxn } = this;
    if (cnxn === undefined) return;
    this.#network.reset(cnxn.stream);
    this.#detachCnxn(cnxn);
  }

  /** Ends its direction of the connection, and keeps receiving. */
  halfClose(): void {
    const { cnxn } = this;
    if (cnxn === undefined) return;
    this.#network.end(cnxn.stream);
    this.#detachCnxn(cnxn);
  }

  /** Opens a new connection without closing the old one. */
  redial(): void {
    if (this.cnxn !== undefined) this.#detachCnxn(this.cnxn);
  }

  /**
   * Connects to this server at once without closing the current connection; abandons a connection
   * attempt in progress.
   */
  switchTo(server: ClientWorld['servers'][number]): void {
    this.#nextServer = server;
    if (this.cnxn !== undefined) this.#detachCnxn(this.cnxn, 0);
  }

  /** Closes its connection and reconnects to the same server at once. */
  reconnectToSameServer(): void {
    const { cnxn } = this;
    if (cnxn === undefined) return;
    this.#nextServer = this.#world.servers.find(({ name }) => name === cnxn.record?.server);
    this.#network.end(cnxn.stream);
    this.#detachCnxn(cnxn, 0);
  }

  /** Abandons a connection attempt that has no reply so far. */
  abortDial(): void {
    const { cnxn } = this;
    if (cnxn === undefined || cnxn.isEstablished) return;
    this.#network.reset(cnxn.stream);
    this.#detachCnxn(cnxn, 0);
  }

  /** The server that it is connected to, or connecting to. */
  get serverName(): string | undefined {
    return this.cnxn?.record?.server;
  }

  /** Loses its network for a while, silently. */
  goOffline(ms: Millis): void {
    this.#offlineUntilMs = this.#world.clock.elapsedMs + ms;
    const { wire, cnxn } = this;
    wire?.forward.cut();
    wire?.backward.cut();
    if (cnxn !== undefined) this.#detachCnxn(cnxn);
  }

  /** Sends part of a request and nothing more on this connection. */
  sendHalfFrame(): void {
    const { cnxn } = this;
    if (cnxn === undefined || !this.ready) return;
    const writer = new Writer();
    const frame = writer.beginFrame();
    writeRequestHeader(writer, { xid: this.#nextXid, type: operations.create.opCode });
    writer.ustring('/half-a-frame');
    writer.endFrame(frame);
    const bytes = writer.written();
    this.#sendBytes(cnxn, Buffer.from(bytes.subarray(0, 1 + this.#random.below(bytes.length - 1))));
    this.#detachCnxn(cnxn);
  }

  /** Sends bytes that are not a request. */
  sendGarbage(): void {
    const { cnxn } = this;
    if (cnxn === undefined || !this.ready) return;
    const bytes = Buffer.alloc(4 + this.#random.below(60));
    for (let at = 0; at < bytes.length; at++) bytes[at] = this.#random.below(256);
    // An invalid length, or a frame that fits no operation.
    bytes.writeInt32BE(this.#random.below(2) === 0 ? -1 - this.#random.below(1000) : bytes.length - 4, 0);
    if (bytes.length >= 12) bytes.writeInt32BE(operations.getData.opCode, 8);
    this.#sendBytes(cnxn, bytes);
    this.#detachCnxn(cnxn);
  }

  get dump(): SessionDump {
    const { session, password, lastZxidSeen } = this;
    return { session, password, lastZxidSeen, nextXid: this.#nextXid };
  }

  /**
   * Another process resumes the session from a dump. It knows of no watches and counts its requests
   * from there, so it reuses the xids of requests sent since. The connection stays as it is; call
   * `switchTo` or `reset` next.
   */
  resumeFrom({ session, password, nextXid, lastZxidSeen }: SessionDump): void {
    this.session = session;
    this.password = password;
    this.lastZxidSeen = lastZxidSeen;
    this.#nextXid = nextXid;
    this.#isSessionLocal = false;
    this.#watches = noWatches();
  }

  /** Never connects again. Its connections stay as they are. */
  abandon(): void {
    this.#isAbandoned = true;
  }

  /** Connects once, and never again whatever the result. */
  dialOnce(): void {
    this.#dialsOnce = true;
  }

  // --- Connections

  #scheduleDial(ms: Millis): void {
    if (this.#isDialScheduled || this.#isAbandoned) return;
    this.#isDialScheduled = true;
    const { clock } = this.#world;
    clock.at(Math.max(clock.elapsedMs + ms, this.#offlineUntilMs), 'dial', undefined, () => {
      this.#isDialScheduled = false;
      this.#dial();
    });
  }

  #dial(): void {
    const { servers, clock } = this.#world;
    if (this.#isAbandoned || this.cnxn !== undefined) return;
    const { address, clientPorts = [serverPort] } = this.#nextServer ?? this.options.server ?? servers[this.#random.below(servers.length)]!;
    this.#nextServer = undefined;
    if (address === undefined || clock.elapsedMs < this.#offlineUntilMs) {
      this.#scheduleDial(5 + this.#random.below(40));
      return;
    }
    // Mostly as its configuration says; a client that knows only the list of servers tries each port.
    const [port = serverPort] = clientPorts.length > 1 && this.#random.below(5) === 0 ? clientPorts.slice(1) : clientPorts;
    const stream = this.#network.connect({ address, port });
    this.cnxn = { stream, cutter: new FrameDecoder(0x7fffffff), record: undefined, isEstablished: false, outstanding: 0, itemsSeen: 0 };
    this.#cnxns.set(stream, this.cnxn);
    this.#lastReceivedMs = clock.elapsedMs;
    if (this.#dialsOnce) this.abandon();
  }

  #connected(stream: StreamId): void {
    const cnxn = this.#cnxns.get(stream);
    if (cnxn === undefined) return;
    cnxn.record = this.#network.recordOf(stream);
    const { acceptsReadOnly = false, keepsLocalSession = false } = this.options;
    const isPresented = !this.#isSessionLocal || keepsLocalSession;
    const writer = new Writer();
    const frame = writer.beginFrame();
    writeConnectRequest(writer, {
      protocolVersion: 0,
      lastZxidSeen: this.lastZxidSeen,
      timeOut: this.options.timeoutMs,
      sessionId: isPresented ? this.session : 0n,
      passwd: isPresented ? this.password : null,
      readOnly: acceptsReadOnly,
    });
    writer.endFrame(frame);
    this.#write(cnxn, writer);
  }

  #write(cnxn: ClientCnxn, writer: Writer): void {
    this.#sendBytes(cnxn, Buffer.from(writer.written()));
  }

  #sendBytes(cnxn: ClientCnxn, bytes: Buffer): void {
    this.#lastSentMs = this.#world.clock.elapsedMs;
    this.#network.send({ count: 1, streams: [cnxn.stream], buffers: [bytes], starts: [0], ends: [bytes.length], kept: [] });
  }

  #received(batch: ReceivedBatch): void {
    for (let index = 0; index < batch.count; index++) {
      const cnxn = this.#cnxns.get(batch.streams[index]!);
      if (cnxn === undefined) continue;
      const bytes = Buffer.from(batch.buffers[index]!.subarray(batch.starts[index], batch.ends[index]));
      try {
        cnxn.cutter.feed(bytes, 0, bytes.length, (reader) => {
          this.#onFrame(cnxn, reader);
          return true;
        });
      } catch (error) {
        // The tap has recorded it.
        if (!(error instanceof ProtocolError)) throw error;
      }
    }
  }

  #onFrame(cnxn: ClientCnxn, frame: Reader): void {
    const reader = new Reader(Buffer.from(frame.bytes.subarray(frame.offset, frame.limit)));
    if (cnxn === this.cnxn) this.#lastReceivedMs = this.#world.clock.elapsedMs;
    if (!cnxn.isEstablished) {
      cnxn.isEstablished = true;
      this.#onConnectResponse(cnxn, reader);
      return;
    }
    const item = cnxn.record?.items[cnxn.itemsSeen++];
    const header = readReplyHeader(reader);
    if (header.zxid > this.lastZxidSeen && cnxn.record?.session === this.session) this.lastZxidSeen = header.zxid;
    if (header.xid === Xid.notification) {
      const { type, path } = readWatcherEvent(reader);
      this.#forgetWatch(type, path);
      return;
    }
    cnxn.outstanding--;
    if (item?.kind === 'reply') this.#onReply(cnxn, item.request);
  }

  #onReply(cnxn: ClientCnxn, { name, record, reply }: Request): void {
    const { sasl } = this.options;
    if (name === 'sasl' && sasl !== undefined && cnxn === this.cnxn) this.#onSaslReply(reply?.body as SaslReply | undefined, sasl);
    // It asked for the end of its session.
    if (name === 'closeSession' && reply?.err !== ErrorCode.NotReadOnly && cnxn === this.cnxn) this.#forgetSession();
    // A request that was turned away has set no watch.
    if (reply?.err !== ErrorCode.ThrottledOp) this.#noteWatch(name, record, reply?.err === ErrorCode.Ok);
  }

  /** The reply to its answer proves the server; it looks at that no more. */
  #onSaslReply(body: SaslReply | undefined, login: SaslLogin): void {
    const token = body?.token ?? undefined;
    const answer = token === undefined ? undefined : answerTo(token, login);
    if (answer !== undefined) this.send('sasl', { token: answer });
  }

  #onConnectResponse(cnxn: ClientCnxn, reader: Reader): void {
    if (cnxn !== this.cnxn) return;
    if (reader.remaining === replyHeaderBytes) {
      // Not a ConnectResponse: a server in read-only mode opens no sessions.
      this.reset();
      return;
    }
    const response = readConnectResponse(reader);
    if (response.timeOut <= 0) {
      this.lostSessions.push(this.session);
      this.#forgetSession();
      return;
    }
    const isBack = this.session !== 0n;
    if (response.sessionId !== this.session) this.#isSessionLocal = response.readOnly === true;
    if (response.readOnly === true) this.#lookForAnother(cnxn);
    this.session = response.sessionId;
    this.password = Buffer.from(response.passwd ?? []);
    const { credentials, restoresWatches, sasl } = this.options;
    if (sasl !== undefined) this.send('sasl', { token: Buffer.alloc(0) });
    if (credentials !== undefined) this.send('auth', { type: 0, scheme: 'digest', auth: Buffer.from(credentials) });
    if (isBack && restoresWatches === true) this.#restoreWatches();
    else this.#watches = noWatches();
  }

  /** A server in read-only mode is better than none; after a while it tries another one. */
  #lookForAnother(cnxn: ClientCnxn): void {
    const { clock } = this.#world;
    clock.at(clock.elapsedMs + 100 + this.#random.below(600), 'look for another', undefined, () => {
      if (cnxn !== this.cnxn) return;
      this.#network.end(cnxn.stream);
      this.#detachCnxn(cnxn, 0);
    });
  }

  #forgetSession(): void {
    this.#isSessionLocal = false;
    this.session = 0n;
    this.password = null;
    this.lastZxidSeen = 0;
    this.#nextXid = 1;
    this.#watches = noWatches();
    if (this.cnxn !== undefined) this.#detachCnxn(this.cnxn);
  }

  #closed(stream: StreamId): void {
    const cnxn = this.#cnxns.get(stream);
    if (cnxn === undefined) return;
    this.#cnxns.delete(stream);
    if (cnxn === this.cnxn) this.#detachCnxn(cnxn);
  }

  #detachCnxn(cnxn: ClientCnxn, redialMs = 1 + this.#random.below(this.options.redialMsMax ?? 60)): void {
    if (this.cnxn === cnxn) this.cnxn = undefined;
    this.#scheduleDial(redialMs);
  }

  #keepAlive(): void {
    const { clock } = this.#world;
    const interval = this.options.timeoutMs / 6;
    clock.at(clock.elapsedMs + interval, 'keep alive', undefined, () => {
      if (this.#isAbandoned) return;
      if (this.ready && clock.elapsedMs - this.#lastSentMs >= interval) this.send('ping', undefined);
      // As clients do: it drops a server that is silent for so long.
      if (this.cnxn !== undefined && clock.elapsedMs - this.#lastReceivedMs > (this.options.timeoutMs * 2) / 3) this.reset();
      this.#keepAlive();
    });
  }

  // --- Watches that it believes to have

  #noteWatch(name: OperationName | undefined, record: unknown, found: boolean): void {
    const { path, watch } = (record ?? {}) as GetDataRequest;
    switch (name) {
      case 'getData':
        if (watch && found) this.#watches.data.add(path);
        return;
      case 'exists':
        if (watch) (found ? this.#watches.data : this.#watches.exist).add(path);
        return;
      case 'getChildren':
      case 'getChildren2':
      case 'filteredList':
      case 'filteredListWithStatsAndData':
      case 'getChildrenPage':
      case 'getChildrenDataPage':
        if (watch && found) this.#watches.child.add(path);
        return;
      case 'addWatch': {
        const { mode } = record as AddWatchRequest;
        (mode === AddWatchMode.persistent ? this.#watches.persistent : this.#watches.recursive).add(path);
        return;
      }
      case 'removeWatches':
        if (found) for (const paths of Object.values(this.#watches) as Set<string>[]) paths.delete(path);
        return;
      default:
    }
  }

  #forgetWatch(type: number, path: string): void {
    const { data, exist, child } = this.#watches;
    if (type === EventType.nodeChildrenChanged || type === EventType.nodeDeleted) child.delete(path);
    if (type === EventType.nodeChildrenChanged) return;
    data.delete(path);
    exist.delete(path);
  }

  #restoreWatches(): void {
    const { data, exist, child, persistent, recursive } = this.#watches;
    if (data.size + exist.size + child.size + persistent.size + recursive.size === 0) return;
    this.send('setWatches2', {
      relativeZxid: this.lastZxidSeen,
      dataWatches: [...data],
      existWatches: [...exist],
      childWatches: [...child],
      persistentWatches: [...persistent],
      persistentRecursiveWatches: [...recursive],
    });
  }
}
