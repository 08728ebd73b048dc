/**
 * A whole server in one test: zoo.cfg is read as usual, and the server runs on a disk, a network
 * and a clock in memory. So a test can write a configuration and check what a client, the disk or
 * the log of the server shows, over hours of virtual time.
 */
import {
  errorName,
  FrameDecoder,
  LogEntryCursor,
  type TxnLogEntry,
  OpCode,
  openAcl,
  operationOf,
  type OperationName,
  operations,
  Reader,
  readConnectResponse,
  readReplyBody,
  readReplyHeader,
  readTxn,
  readWatcherEvent,
  type ReplyOf,
  type RequestOf,
  type SessionId,
  type WatcherEvent,
  Writer,
  writeConnectRequest,
  Xid,
} from '@tskeeper/protocol';
import {
  type ListenOptions,
  type LogFields,
  type Logger,
  ManualClock,
  VirtualDisk,
  type MemoryProbe,
  type Runtime,
  SeededRandom,
  startRuntime,
  type StreamId,
} from '@tskeeper/runtime';
import { type VirtualNetwork, VirtualWire } from '@tskeeper/runtime/internal';
import { PluginProvider } from '../../src/auth-plugin.ts';
import { resolveConfig } from '../../src/config/server-config.ts';
import { memoryProbe } from '../../src/memory-probe.ts';
import { snappy } from '../../src/snappy.ts';

const serverAddress = '10.0.0.1';
const clientPort = 2181;
/** Enough passes of the loop for all work that needs no time. */
const passes = 12;

export interface VirtualServerOptions {
  /** Limit of open files of the process. Default: 1024. */
  readonly maxFileDescriptors?: number;
  /** -D settings. */
  readonly definitions?: readonly string[];
  /** The existing content of the disk. Default: a new disk. */
  readonly disk?: VirtualDisk;
  /** The memory of the process. Default: only the limit of zoo.cfg is known. */
  readonly memory?: MemoryProbe;
  /** Files in addition to zoo.cfg. */
  readonly files?: Readonly<Record<string, string>>;
  /** Modules that authProvider.* may name. */
  readonly modules?: Readonly<Record<string, unknown>>;
}

export class VirtualServer {
  readonly clock = new ManualClock(1_000_000);
  readonly wire = new VirtualWire(this.clock);
  readonly disk: VirtualDisk;
  /** The server's log, level first. */
  readonly lines: string[] = [];
  /** The fields of the same lines. */
  readonly logged: LogFields[] = [];
  listened: ListenOptions | undefined;
  failure: unknown;
  /** Completed syncs of the log while they are held back. */
  #heldSyncs: (() => void)[] | undefined;
  runtime!: Runtime;
  readonly #stacks = new Map<string, Map<StreamId, VirtualClient>>();

  private constructor(disk: VirtualDisk) {
    this.disk = disk;
  }

  /** Starts a server with these lines in its zoo.cfg, in addition to a data folder and a port. */
  static async start(lines: string | readonly string[] = [], options: VirtualServerOptions = {}): Promise<VirtualServer> {
    const server = new VirtualServer(options.disk ?? new VirtualDisk());
    const text = ['dataDir=/data', `clientPort=${clientPort}`, ...(typeof lines === 'string' ? [lines] : lines), ''].join('\n');
    const config = resolveConfig({
      file: { name: 'zoo.cfg', text },
      definitions: options.definitions,
      readFile: (path) => options.files![path]!,
      loadModule: (specifier) => options.modules![specifier],
    });
    const network = server.wire.stack(serverAddress);
    const listen = network.listen.bind(network);
    network.listen = (asked) => {
      server.listened = asked;
      return listen(asked);
    };
    const note = (level: string) => (line: string, fields: LogFields) => {
      server.lines.push(`${level} ${line}`);
      server.logged.push(fields);
    };
    const logger: Logger = { debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error') };
    const starting = startRuntime(
      { disk: server.disk.attach(), network, clock: server.clock, random: new SeededRandom(1) },
      config.core,
      config.runtime,
      {
        logger,
        snappy,
        // The memory of the test process, where a limit is set.
        memory:
          options.memory ?? (config.memoryLimitBytes === undefined ? undefined : memoryProbe({ processBytes: config.memoryLimitBytes })),
        host: {
          version: '3.9.5',
          environment: () => [],
          openFileDescriptors: () => 1,
          maxFileDescriptors: () => options.maxFileDescriptors ?? 1024,
        },
        failed: (error) => void (server.failure = error),
      },
    );
    server.runtime = await server.#while(starting);
    for (const provider of config.core.authProviders) if (provider instanceof PluginProvider) provider.serve(server.runtime, logger);
    await server.settle();
    return server;
  }

  /** Runs everything that needs no time. */
  async settle(): Promise<void> {
    for (let pass = 0; pass < passes; pass++) {
      await new Promise<void>((resolve) => {
        setImmediate(resolve);
      });
      this.clock.advance(0);
    }
  }

  /** Advances the time in steps; everything due happens between them. */
  async pass(ms: number, stepMs = 250): Promise<void> {
    for (let left = ms; left > 0; left -= stepMs) {
      this.clock.advance(Math.min(left, stepMs));
      await this.settle();
    }
  }

  /** Runs until the promise is settled. */
  async #while<T>(promise: Promise<T>): Promise<T> {
    const over = Promise.allSettled([promise]);
    for (let round = 0; round < 1000; round++) {
      await this.settle();
      if ((await Promise.race([over, Promise.resolve()])) !== undefined) break;
    }
    return promise;
  }

  async close(): Promise<void> {
    await this.#while(this.runtime.close());
  }

  /** A connection without a handshake. */
  async dial(address?: string): Promise<VirtualClient> {
    const client = this.begin(address);
    await this.settle();
    return client;
  }

  /** The same, before anything has happened. */
  begin(address = '10.0.9.1'): VirtualClient {
    const network = this.wire.stack(address);
    let clients = this.#stacks.get(address);
    if (clients === undefined) {
      const found = (clients = new Map<StreamId, VirtualClient>());
      this.#stacks.set(address, found);
      network.start({
        accepted() {},
        connected() {},
        drained() {},
        received(batch) {
          for (let at = 0; at < batch.count; at++) {
            found.get(batch.streams[at]!)?.take(batch.buffers[at]!, batch.starts[at]!, batch.ends[at]!);
          }
        },
        ended(stream) {
          const client = found.get(stream);
          if (client !== undefined) client.closed = true;
          network.end(stream);
        },
        closed(stream) {
          const client = found.get(stream);
          if (client !== undefined) client.closed = true;
        },
      });
    }
    const client = new VirtualClient(this, network, network.connect({ address: serverAddress, port: clientPort }));
    clients.set(client.stream, client);
    return client;
  }

  /** A client with a session. */
  async join(address?: string, timeoutMs = 10_000): Promise<VirtualClient> {
    const client = await this.dial(address);
    await client.shakeHands(timeoutMs);
    return client;
  }

  /** The reply to a four letter word. */
  async word(word: string): Promise<string> {
    const client = await this.dial('10.0.9.99');
    client.sendRaw(Buffer.from(word, 'latin1'));
    await this.settle();
    return client.text;
  }

  /** From here on the disk does not complete its syncs. */
  holdSyncs(): void {
    const held: (() => void)[] = (this.#heldSyncs = []);
    const deliver = this.disk.schedule;
    this.disk.schedule = (call, complete) => {
      if (this.#heldSyncs === held && call.operation === 'sync') held.push(complete);
      else deliver(call, complete);
    };
  }

  /** Completes the held syncs, and all later ones. */
  async releaseSyncs(): Promise<void> {
    const held = this.#heldSyncs ?? [];
    this.#heldSyncs = undefined;
    for (const complete of held) complete();
    await this.settle();
  }

  /** Number of syncs that are held. */
  get syncsHeld(): number {
    return this.#heldSyncs?.length ?? 0;
  }

  /** Every txn in the logs, oldest first. */
  txns(folder = '/data/version-2'): TxnLogEntry[] {
    const txns: TxnLogEntry[] = [];
    const cursor = new LogEntryCursor(0x7fffffff);
    for (const name of this.files(folder).filter((file) => file.startsWith('log.'))) {
      const bytes = this.disk.contents(`${folder}/${name}`);
      for (let at = 16; cursor.read(bytes, at, bytes.length) === 'entry'; at = cursor.next) {
        txns.push(readTxn(new Reader(bytes, cursor.txnStart, cursor.txnEnd)));
      }
    }
    return txns.sort((a, b) => a.header.zxid - b.header.zxid);
  }

  /** Names in a folder of the data, in order. */
  files(folder = '/data/version-2'): string[] {
    return this.disk
      .files()
      .filter((path) => path.startsWith(`${folder}/`))
      .map((path) => path.slice(folder.length + 1))
      .sort();
  }
}

export interface Answer<Name extends OperationName> {
  /** `Ok`, `NoNode` ...; `closed` when the connection closed without a reply. */
  readonly err: string;
  readonly zxid: number;
  readonly body: ReplyOf<Name>;
}

export class VirtualClient {
  readonly stream: StreamId;
  readonly #server: VirtualServer;
  readonly #network: VirtualNetwork;
  readonly #pieces: Buffer[] = [];
  readonly #cutter = new FrameDecoder(0x7fffffff);
  readonly #asked = new Map<number, number[]>();
  readonly #answers: { xid: number; err: string; zxid: number; body: unknown }[] = [];
  readonly events: WatcherEvent[] = [];
  #nextXid = 1;
  #shakes = false;
  /** 0 when the session was refused, undefined before the reply to the handshake. */
  timeoutMs: number | undefined;
  session: SessionId = 0n;
  password: Uint8Array = Buffer.alloc(16);
  closed = false;

  constructor(server: VirtualServer, network: VirtualNetwork, stream: StreamId) {
    this.#server = server;
    this.#network = network;
    this.stream = stream;
  }

  /** Everything received, as text. */
  get text(): string {
    return Buffer.concat(this.#pieces).toString('latin1');
  }

  get answered(): number {
    return this.#answers.length;
  }

  take(bytes: Buffer, start: number, end: number): void {
    this.#pieces.push(Buffer.from(bytes.subarray(start, end)));
    if (!this.#shakes) return;
    this.#cutter.feed(bytes, start, end, (reader) => {
      this.#frame(reader);
      return true;
    });
  }

  #frame(reader: Reader): void {
    if (this.timeoutMs === undefined) {
      const { timeOut, sessionId, passwd } = readConnectResponse(reader);
      this.timeoutMs = timeOut;
      this.session = sessionId;
      this.password = Buffer.from(passwd!);
      return;
    }
    const { xid, zxid, err } = readReplyHeader(reader);
    if (xid === Xid.notification) {
      this.events.push(readWatcherEvent(reader));
      return;
    }
    const operation = operationOf(this.#asked.get(xid)!.shift()!)!;
    const body = readReplyBody(reader, operation, err);
    this.#answers.push({ xid, err: errorName(err) ?? String(err), zxid, body });
  }

  sendRaw(bytes: Buffer): void {
    this.#network.send({ count: 1, streams: [this.stream], buffers: [bytes], starts: [0], ends: [bytes.length], kept: [] });
  }

  #sendFrame(write: (writer: Writer) => void): void {
    const writer = new Writer();
    writer.int32(0);
    write(writer);
    writer.patchInt32(0, writer.offset - 4);
    this.sendRaw(Buffer.from(writer.written()));
  }

  async shakeHands(timeoutMs?: number, session?: SessionId, password?: Uint8Array): Promise<void> {
    this.sendHandshake(timeoutMs, session, password);
    await this.#server.settle();
  }

  /** Sends a handshake without waiting for its reply. */
  sendHandshake(timeoutMs = 10_000, session = 0n, password: Uint8Array = Buffer.alloc(16)): void {
    this.#shakes = true;
    this.#sendFrame((writer) =>
      writeConnectRequest(writer, {
        protocolVersion: 0,
        lastZxidSeen: 0,
        timeOut: timeoutMs,
        sessionId: session,
        passwd: password,
        readOnly: false,
      }),
    );
  }

  /** Sends a request without waiting for its reply. */
  send<Name extends OperationName>(name: Name, request: RequestOf<Name>): number {
    const { opCode } = operations[name];
    const xid = opCode === OpCode.ping ? Xid.ping : opCode === OpCode.auth ? Xid.auth : this.#nextXid++;
    const asked = this.#asked.get(xid) ?? [];
    asked.push(opCode);
    this.#asked.set(xid, asked);
    this.#sendFrame((writer) => {
      writer.int32(xid);
      writer.int32(opCode);
      (operations[name].request.write as (writer: Writer, value: unknown) => void)(writer, request);
    });
    return xid;
  }

  /** The reply to a request; undefined while there is none. */
  answer<Name extends OperationName>(xid: number): Answer<Name> | undefined {
    const at = this.#answers.findIndex((answer) => answer.xid === xid);
    return at === -1 ? undefined : (this.#answers.splice(at, 1)[0] as Answer<Name>);
  }

  /** Sends a request and runs everything that needs no time. */
  async call<Name extends OperationName>(name: Name, request: RequestOf<Name>): Promise<Answer<Name>> {
    const xid = this.send(name, request);
    for (let round = 0; round < 20; round++) {
      await this.#server.settle();
      const answer = this.answer<Name>(xid);
      if (answer !== undefined) return answer;
      if (this.closed) return { err: 'closed', zxid: -1, body: undefined as ReplyOf<Name> };
    }
    throw new Error(`${name} was not answered`);
  }

  create(path: string, data = '', flags = 0): Promise<Answer<'create'>> {
    return this.call('create', { path, data: Buffer.from(data), acl: openAcl, flags });
  }

  hangUp(): void {
    this.#network.reset(this.stream);
  }
}
