/**
 * Runs a story against a standalone core. Both the story and the results are plain lines.
 *
 * ```
 * a connects [timeout=MS] [as b] [password=wrong] [seen=0x9]   a client connects and shakes hands
 * a create /x "data" [mode=N] [ttl=MS] [acl=world:anyone:31,...]   any operation, by its name
 * a multi [create /x "1"; delete /y; check /z version=2]
 * a goes away                                                  the connection breaks
 * a leaves behind create /x                                    a request that had arrived when the connection broke; `goes away` follows
 * appended [0x3]                                               the log has everything, or everything up to there
 * after 1000                                                   time passes; what was due by then happens
 * log at once | log on request                                  whether the log answers by itself
 * ```
 */
import {
  type Acl,
  errorName,
  type EventType as EventTypeValue,
  EventType,
  formatZxid,
  type MultiOp,
  type MultiReply,
  openAcl,
  OpCode,
  operationOf,
  operations,
  Reader,
  readConnectResponse,
  readReplyBody,
  readReplyHeader,
  readTxn,
  readWatcherEvent,
  type SessionId,
  type Stat,
  type Txn,
  Writer,
  writeConnectRequest,
  Xid,
  type Zxid,
} from '@tskeeper/protocol';
import {
  type CloseReason,
  type CnxnId,
  type CoreOptions,
  coreDefaults,
  type Now,
  type Observer,
  type ClientOutput,
  type TxnLog,
  silentObserver,
  Server,
} from '../../src/index.ts';
import type { Replica } from '../../src/request/replica.ts';
import { standaloneSequencer } from '../../src/request/local-sequencer.ts';

interface Client {
  readonly name: string;
  readonly cnxn: CnxnId;
  session: SessionId;
  password: Uint8Array;
  connected: boolean;
  shaken: boolean;
  nextXid: number;
  readonly asked: Map<number, number[]>;
}

export const testOptions: CoreOptions = { ...coreDefaults, tickTimeMs: 1000, minSessionTimeoutMs: 2000, maxSessionTimeoutMs: 20_000 };

export class Script implements ClientOutput, TxnLog {
  readonly #clients = new Map<string, Client>();
  readonly #byCnxn = new Map<CnxnId, Client>();
  readonly #outputs = new Map<CnxnId, Writer>();
  readonly #names = new Map<SessionId, string>();
  readonly #lines: string[] = [];
  readonly core: Server;
  #now: Now = { elapsedMs: 1_000_000, wallMs: 1_700_000_000_000 };
  #logged: Zxid = 0;
  #logsAtOnce = false;
  #nextCnxn = 1;

  /** @param replica the recovered state; empty by default. */
  constructor(changed: Partial<CoreOptions> = {}, replica?: Replica, observer: Observer = silentObserver) {
    let seed = 1;
    const random = { uint32: () => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) };
    this.core = new Server({ ...testOptions, ...changed }, this, random, observer, this.#now, standaloneSequencer(this), replica);
  }

  // ---- outputs

  reply(cnxn: CnxnId): Writer {
    let writer = this.#outputs.get(cnxn);
    if (writer === undefined) this.#outputs.set(cnxn, (writer = new Writer(256)));
    return writer;
  }

  isFull(): boolean {
    return false;
  }

  close(cnxn: CnxnId, reason: CloseReason): void {
    this.#flush();
    const client = this.#byCnxn.get(cnxn)!;
    client.connected = false;
    this.#lines.push(`${client.name} closed: ${reason}`);
    this.#pendingDisconnects.push(cnxn);
  }

  readonly #pendingDisconnects: CnxnId[] = [];

  append(zxid: Zxid, bytes: Buffer, start: number, end: number): void {
    this.#flush();
    const { header, txn } = readTxn(new Reader(bytes, start, end));
    this.#logged = zxid;
    if (!this.#logsAtOnce) this.#lines.push(`append ${formatZxid(zxid)} ${txnText(header.type, txn)}`);
  }

  // ---- the script

  /** Runs one line and returns its output. */
  run(line: string): string[] {
    this.#lines.length = 0;
    this.#perform(line.trim());
    this.#settle();
    return [...this.#lines];
  }

  #perform(line: string): void {
    const words = split(line);
    if (line === 'log at once' || line === 'log on request') {
      this.#logsAtOnce = line === 'log at once';
    } else if (words[0] === 'appended') {
      this.core.appended(words[1] === undefined ? this.#logged : Number(words[1]), this.#now);
    } else if (words[0] === 'after') {
      this.#pass(Number(words[1]));
    } else if (words[1] === 'connects') {
      this.#connect(words[0]!, options(words.slice(2)), words[2] === 'as' ? words[3] : undefined);
    } else if (line.endsWith(' goes away')) {
      const client = this.#client(words[0]!);
      client.connected = false;
      this.core.disconnected(client.cnxn, this.#now);
    } else if (words[1] === 'leaves' && words[2] === 'behind') {
      this.core.lastFrame(...this.#request(this.#client(words[0]!), words.slice(3).join(' ')), this.#now);
    } else {
      this.#ask(this.#client(words[0]!), line.slice(words[0]!.length).trim());
    }
  }

  #settle(): void {
    for (;;) {
      this.#flush();
      if (this.#pendingDisconnects.length > 0) {
        this.core.disconnected(this.#pendingDisconnects.shift()!, this.#now);
      } else if (this.core.isBusy) {
        this.core.wake(this.#now);
      } else if (this.#logsAtOnce && this.#acknowledged < this.#logged) {
        this.#acknowledged = this.#logged;
        this.core.appended(this.#logged, this.#now);
      } else {
        return;
      }
    }
  }

  #acknowledged: Zxid = 0;

  #pass(ms: number): void {
    const until = this.#now.elapsedMs + ms;
    for (;;) {
      const due = this.core.deadline();
      const at = due === undefined || due > until ? until : Math.max(due, this.#now.elapsedMs);
      this.#now = { elapsedMs: at, wallMs: this.#now.wallMs + at - this.#now.elapsedMs };
      if (due === undefined || due > until) return;
      this.core.wake(this.#now);
      this.#settle();
    }
  }

  #client(name: string): Client {
    const client = this.#clients.get(name);
    if (client === undefined) throw new Error(`${name} has not connected`);
    return client;
  }

  #connect(name: string, given: Map<string, string>, as: string | undefined): void {
    const older = as === undefined ? undefined : this.#client(as);
    const client: Client = {
      name,
      cnxn: this.#nextCnxn++,
      session: older?.session ?? 0n,
      password: given.get('password') === 'wrong' ? Buffer.alloc(16, 7) : (older?.password ?? Buffer.alloc(16)),
      connected: true,
      shaken: false,
      nextXid: 1,
      asked: new Map(),
    };
    this.#clients.set(name, client);
    this.#byCnxn.set(client.cnxn, client);
    this.core.connect(
      client.cnxn,
      { remoteAddress: given.get('from') ?? '127.0.0.1', remotePort: 40_000, localPort: 2181, secure: false, peerCertificate: undefined },
      this.#now,
    );
    const writer = new Writer();
    writeConnectRequest(writer, {
      protocolVersion: 0,
      lastZxidSeen: Number(given.get('seen') ?? 0),
      timeOut: Number(given.get('timeout') ?? 10_000),
      sessionId: client.session,
      passwd: client.password,
      readOnly: given.get('readOnly') === 'absent' ? undefined : false,
    });
    this.core.frame(client.cnxn, new Reader(Buffer.from(writer.written())), this.#now);
  }

  #ask(client: Client, text: string): void {
    this.core.frame(...this.#request(client, text), this.#now);
  }

  #request(client: Client, text: string): [cnxn: number, reader: Reader] {
    if (!client.connected) throw new Error(`${client.name} is no longer connected`);
    const writer = new Writer();
    const raw = /^opcode (-?\d+)(?: ([0-9a-f]+))?$/.exec(text);
    const name = text.split(' ')[0]!;
    const opCode = raw === null ? operations[name as keyof typeof operations].opCode : Number(raw[1]);
    const xid = xidOf(opCode) ?? client.nextXid++;
    writer.int32(xid);
    writer.int32(opCode);
    if (raw === null) {
      const operation = operationOf(opCode)!;
      operation.request.write(writer, requestOf(name, text.slice(name.length).trim()));
    } else {
      writer.raw(Buffer.from(raw[2] ?? '', 'hex'));
    }
    const asked = client.asked.get(xid) ?? [];
    asked.push(opCode);
    client.asked.set(xid, asked);
    return [client.cnxn, new Reader(Buffer.from(writer.written()))];
  }

  // ---- formatting the output

  #flush(): void {
    for (const [cnxn, writer] of this.#outputs) {
      const client = this.#byCnxn.get(cnxn)!;
      const reader = new Reader(Buffer.from(writer.written()));
      writer.clear();
      while (reader.remaining > 0) {
        const length = reader.int32();
        const frame = new Reader(reader.bytes, reader.offset, reader.offset + length);
        reader.offset += length;
        this.#lines.push(`${client.name} <- ${this.#frameText(client, frame)}`);
      }
    }
  }

  #frameText(client: Client, frame: Reader): string {
    if (!client.shaken) {
      client.shaken = true;
      const response = readConnectResponse(frame);
      if (response.timeOut === 0) return 'session refused';
      const again = client.session === response.sessionId;
      client.session = response.sessionId;
      client.password = Buffer.from(response.passwd!);
      this.#names.set(client.session, client.name);
      return `${again ? 'session again' : 'session'} timeout=${response.timeOut}`;
    }
    const { xid, zxid, err } = readReplyHeader(frame);
    if (xid === Xid.notification) {
      const event = readWatcherEvent(frame);
      return `event ${eventName(event.type as EventTypeValue)} ${event.path} ${formatZxid(zxid)}`;
    }
    const opCode = client.asked.get(xid)?.shift();
    if (opCode === undefined) throw new Error(`${client.name} did not ask for xid ${xid}`);
    const operation = operationOf(opCode);
    const name = operation?.name ?? `opcode ${opCode}`;
    const body = operation === undefined ? undefined : readReplyBody(frame, operation, err);
    const result = err === 0 ? this.#bodyText(name, body) : (errorName(err) ?? String(err));
    if (frame.remaining > 0) throw new Error(`${frame.remaining} bytes too many after the reply to ${name}`);
    return [name, formatZxid(zxid), result].filter((part) => part !== '').join(' ');
  }

  #bodyText(name: string, body: unknown): string {
    if (body === undefined) return 'ok';
    if (name === 'multi' || name === 'multiRead') {
      const { results } = body as MultiReply;
      return `[${results.map((result) => `${result.kind} ${result.kind === 'error' ? (errorName(result.err) ?? result.err) : this.#valueText({ ...result, kind: undefined })}`.trim()).join('; ')}]`;
    }
    return this.#valueText(body);
  }

  #valueText(value: unknown): string {
    if (value === undefined) return '';
    if (value === null) return 'null';
    if (Buffer.isBuffer(value)) return JSON.stringify(value.toString());
    if (Array.isArray(value)) return `[${value.map((element) => this.#valueText(element)).join(' ')}]`;
    if (typeof value === 'object') {
      if ('czxid' in value) return this.#statText(value as Stat);
      return Object.values(value)
        .map((element) => this.#valueText(element))
        .filter((text) => text !== '')
        .join(' ');
    }
    if (typeof value === 'string') return value;
    if (typeof value === 'number' || typeof value === 'boolean') return String(value);
    throw new Error(`no text for ${JSON.stringify(value)}`);
  }

  #statText(stat: Stat): string {
    const owner = stat.ephemeralOwner === 0n ? '' : ` owner=${this.#names.get(stat.ephemeralOwner) ?? stat.ephemeralOwner}`;
    return (
      `c=${formatZxid(stat.czxid)} m=${formatZxid(stat.mzxid)} p=${formatZxid(stat.pzxid)} ` +
      `versions=${stat.version},${stat.cversion},${stat.aversion} length=${stat.dataLength} children=${stat.numChildren}${owner}`
    );
  }
}

function xidOf(opCode: number): number | undefined {
  switch (opCode) {
    case OpCode.ping:
      return Xid.ping;
    case OpCode.auth:
      return Xid.auth;
    case OpCode.setWatches:
    case OpCode.setWatches2:
      return Xid.setWatches;
    default:
      return undefined;
  }
}

function eventName(type: EventTypeValue): string {
  const name = Object.entries(EventType).find(([, value]) => value === type)?.[0] ?? String(type);
  return name.slice(0, 1).toUpperCase() + name.slice(1);
}

function txnText(type: number, txn: Txn): string {
  const name = Object.entries(OpCode).find(([, value]) => value === type)?.[0] ?? String(type);
  switch (txn.kind) {
    case 'error':
      return `error ${errorName(txn.err) ?? txn.err}`;
    case 'createSession':
      return `${name} timeout=${txn.timeOut}`;
    case 'closeSession':
      return `${name} [${txn.paths2Delete?.join(' ') ?? 'no list'}]`;
    case 'multi':
      return `${name} [${txn.txns.map((member) => txnText(member.type, member.txn)).join('; ')}]`;
    case 'setData':
    case 'setACL':
    case 'check':
      return `${name} ${txn.path} version=${txn.version}`;
    default:
      return `${name} ${txn.path}`;
  }
}

/** Words, where "quoted text" and [brackets] count as one. */
function split(line: string): string[] {
  return line.match(/"[^"]*"|\[[^\]]*\]|[^\s]+/g) ?? [];
}

function options(words: readonly string[]): Map<string, string> {
  return new Map(
    words
      .filter((word) => word.includes('=') && !word.startsWith('"'))
      .map((word) => [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)]),
  );
}

function aclOf(text: string | undefined): readonly Acl[] {
  if (text === undefined) return openAcl;
  if (text === 'none') return [];
  return text.split(',').map((entry) => {
    const scheme = entry.slice(0, entry.indexOf(':'));
    const id = entry.slice(entry.indexOf(':') + 1, entry.lastIndexOf(':'));
    return { perms: Number(entry.slice(entry.lastIndexOf(':') + 1)), id: { scheme, id } };
  });
}

function listOf(text: string | undefined): string[] {
  return text === undefined || text === '' ? [] : text.split(',');
}

/** The record of an operation's request, from the words after its name. */
function requestOf(name: string, text: string): unknown {
  const words = split(text);
  const given = options(words);
  const unquoted = (word: string | undefined): string => (word?.startsWith('"') ? word.slice(1, -1) : (word ?? ''));
  const path = unquoted(words[0]);
  const data = words[1]?.startsWith('"') ? Buffer.from(unquoted(words[1])) : null;
  const version = Number(given.get('version') ?? -1);
  const watch = words.includes('watch');
  switch (name) {
    case 'create':
    case 'create2':
    case 'createContainer':
      return { path, data, acl: aclOf(given.get('acl')), flags: Number(given.get('mode') ?? 0) };
    case 'createTTL':
      return { path, data, acl: aclOf(given.get('acl')), flags: Number(given.get('mode') ?? 5), ttl: Number(given.get('ttl') ?? 1000) };
    case 'setData':
      return { path, data, version };
    case 'setACL':
      return { path, acl: aclOf(given.get('acl')), version };
    case 'delete':
    case 'check':
      return { path, version };
    case 'multi':
    case 'multiRead':
      return { ops: partsOf(text) };
    case 'auth':
      return { type: 0, scheme: words[0]!, auth: Buffer.from(unquoted(words[1])) };
    case 'sasl':
      return { token: Buffer.alloc(0) };
    case 'addWatch':
      return { path, mode: Number(given.get('mode') ?? 0) };
    case 'checkWatches':
    case 'removeWatches':
      return { path, type: Number(given.get('type') ?? 3) };
    case 'getEphemerals':
      return { prefixPath: path };
    case 'setWatches':
    case 'setWatches2':
      return {
        relativeZxid: Number(given.get('seen') ?? 0),
        dataWatches: listOf(given.get('data')),
        existWatches: listOf(given.get('exist')),
        childWatches: listOf(given.get('child')),
        persistentWatches: listOf(given.get('persistent')),
        persistentRecursiveWatches: listOf(given.get('recursive')),
      };
    case 'reconfig':
      return { joiningServers: null, leavingServers: null, newMembers: null, curConfigId: -1 };
    default:
      return { path, watch };
  }
}

function partsOf(text: string): MultiOp[] {
  return text
    .slice(1, -1)
    .split(';')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map((part) => {
      const kind = part.split(' ')[0]!;
      return { kind, ...(requestOf(kind, part.slice(kind.length).trim()) as object) } as MultiOp;
    });
}
