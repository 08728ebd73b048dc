/**
 * One of the two servers of a differential run: its clients, their sessions and connections, and
 * what each of them has received.
 *
 * Both sides execute the same steps. A step that makes no sense on one side (its connection is
 * closed, while the other side kept it) does nothing there: the difference is recorded, and the
 * clients are reconnected before the next round.
 */
import { OpCode, type SessionId, Xid } from '@tskeeper/protocol';

import { frameOf, handshakeBody, type Message, noPasswd, record, requestBody, WireCnxn } from '@tskeeper/harness';
import type { HandshakeStep, Op, ServerView, Step } from './step.ts';

/** Far above the slowest fsync of a busy machine: a server that takes longer will not answer. */
const replyTimeoutMs = 20_000;

/** Interval of checks while a connection should be closed and is not yet. */
const wakeDialMs = 1000;

/** Round trips after which a server that intends to close a connection has done so. */
const closingPingsMax = 50;

/** A message with the request that it answers. */
export type Entry = { readonly message: Message; readonly op: Op | undefined };

interface Client {
  cnxn: WireCnxn | undefined;
  sessionId: SessionId;
  passwd: Buffer;
  xid: number;
  lastZxid: number;
  /** Requests by xid; those with a fixed xid are never in flight twice with different types. */
  readonly sent: Map<number, Op>;
  readonly log: Entry[];
}

export class Side {
  readonly #port: number;
  readonly #view: ServerView;
  readonly #clients: Client[];
  /** Messages of connections that belong to no client. */
  readonly #probeLog: Entry[] = [];
  /** Names for session ids, the same on both sides as long as both answer alike. */
  readonly sessionNames = new Map<SessionId, string>();

  constructor(port: number, clientCount: number, view: ServerView) {
    this.#port = port;
    this.#view = view;
    this.#clients = Array.from({ length: clientCount }, () => ({
      cnxn: undefined,
      sessionId: 0n,
      passwd: noPasswd,
      xid: 0,
      lastZxid: 0,
      sent: new Map(),
      log: [],
    }));
  }

  isConnected(client: number): boolean {
    const { cnxn } = this.#clients[client]!;
    return cnxn !== undefined && !cnxn.closed;
  }

  hasSession(client: number): boolean {
    return this.#clients[client]!.sessionId !== 0n;
  }

  /** Cuts the client's connection, if any, and optionally forgets its session. */
  drop(client: number, forgetSession: boolean): void {
    const at = this.#clients[client]!;
    at.cnxn?.destroy();
    at.cnxn = undefined;
    if (forgetSession) at.sessionId = 0n;
  }

  async run(step: Step): Promise<void> {
    switch (step.kind) {
      case 'sequential':
        for (const op of step.ops) await this.#exchange(this.#clients[step.client]!, [op]);
        return;
      case 'pipelined':
        await this.#exchange(this.#clients[step.client]!, step.ops);
        return;
      case 'concurrent':
        await Promise.all(step.parts.map((part) => this.#exchange(this.#clients[part.client]!, part.ops)));
        return;
      case 'last':
        // A server that closes need not send pending messages, so fetch them first.
        await this.#ping(this.#clients[step.client]!);
        await this.#exchange(this.#clients[step.client]!, [step.op]);
        await this.#checkClosed(this.#clients[step.client]!);
        return;
      case 'close':
        await this.#close(this.#clients[step.client]!);
        return;
      case 'cut':
        // Pending messages arrive first, so that both sides have seen the same when the connection
        // is cut.
        await this.#ping(this.#clients[step.client]!);
        this.drop(step.client, false);
        return;
      case 'handshake':
        await this.#handshake(this.#clients[step.client]!, step);
        return;
      case 'probe':
        await this.#probe(step.body(this.#view));
        return;
      case 'frame':
        await this.#frame(this.#clients[step.client]!, step.length, step.bytes);
        return;
      default:
        step satisfies never;
    }
  }

  /**
   * Waits until every client has received everything sent to it so far: events precede the reply to
   * a later ping.
   */
  async settle(): Promise<void> {
    await Promise.all(this.#clients.map((client) => this.#ping(client)));
  }

  /** What each client, and last the probes, received since the last call. */
  takeLogs(): Entry[][] {
    return [...this.#clients.map((client) => client.log.splice(0)), this.#probeLog.splice(0)];
  }

  /**
   * Ends every connection; closes sessions first, so that the servers end without ephemeral znodes.
   */
  async end(): Promise<void> {
    for (const client of this.#clients) await this.#close(client);
    for (let i = 0; i < this.#clients.length; i++) this.drop(i, true);
  }

  async #exchange(client: Client, ops: readonly Op[]): Promise<void> {
    const { cnxn } = client;
    if (cnxn === undefined || cnxn.closed) return;
    const frames: Buffer[] = [];
    for (const op of ops) {
      const xid = op.xid ?? ++client.xid;
      client.sent.set(xid, op);
      const body = requestBody(xid, op.type, op.fields(this.#view));
      // Header and type stay, so that the server knows what it cannot decode.
      frames.push(frameOf(op.cutBytes === undefined ? body : body.subarray(0, Math.max(8, body.length - op.cutBytes))));
    }
    cnxn.sendRaw(Buffer.concat(frames));
    await cnxn.replies(ops.length, replyTimeoutMs);
    this.#collect(client, cnxn);
  }

  #collect(client: Client, cnxn: WireCnxn): void {
    for (const message of cnxn.take()) {
      const op = message.kind === 'reply' ? client.sent.get(message.xid) : undefined;
      if (message.kind === 'reply') {
        if (op?.xid === undefined) client.sent.delete(message.xid);
        if (message.zxid > client.lastZxid) client.lastZxid = message.zxid;
      }
      client.log.push({ message, op });
    }
  }

  async #ping(client: Client): Promise<void> {
    await this.#exchange(client, [pingOp]);
  }

  /**
   * Leaves in the log either that the server closed the connection or one reply to a ping. A server
   * that closes may still answer a few pings before, so their number means nothing.
   */
  async #checkClosed(client: Client): Promise<void> {
    for (let pings = 1; client.cnxn?.closed === false && pings <= closingPingsMax; pings++) {
      const before = client.log.length;
      await this.#ping(client);
      const answer = client.log.findLastIndex(({ message }, at) => at >= before && message.kind === 'reply' && message.xid === Xid.ping);
      if (answer !== -1 && (client.cnxn.closed || pings < closingPingsMax)) client.log.splice(answer, 1);
    }
  }

  /**
   * Waits until the server has closed the connection. A Java server releases a socket when its
   * selector next wakes up, which without traffic may be never. A new connection wakes it.
   */
  async #untilClosed(cnxn: WireCnxn): Promise<void> {
    const wakeDial = () =>
      void WireCnxn.open({ host: '127.0.0.1', port: this.#port })
        .then((newcomer) => newcomer.destroy())
        .catch(() => undefined);
    const visits = setInterval(wakeDial, wakeDialMs);
    try {
      await cnxn.untilClosed(replyTimeoutMs);
    } finally {
      clearInterval(visits);
    }
  }

  async #close(client: Client): Promise<void> {
    const { cnxn } = client;
    if (cnxn === undefined || cnxn.closed) return;
    await this.#exchange(client, [closeOp]);
    await this.#untilClosed(cnxn);
    this.#collect(client, cnxn);
    client.cnxn = undefined;
    client.sessionId = 0n;
  }

  async #handshake(client: Client, step: HandshakeStep): Promise<void> {
    // Request a new session only if the old one is closed, and an old one only if there is one.
    if (step.session === 'new' ? client.sessionId !== 0n : client.sessionId === 0n) return;
    const previous = client.cnxn !== undefined && !client.cnxn.closed ? client.cnxn : undefined;
    if (previous !== undefined) await this.#ping(client);
    const cnxn = await WireCnxn.open({ host: '127.0.0.1', port: this.#port });
    cnxn.send(
      handshakeBody({
        protocolVersion: step.protocolVersion,
        timeOut: step.timeOut,
        readOnly: step.readOnly,
        lastZxidSeen: { zero: 0, seen: client.lastZxid, future: client.lastZxid + 1_000_000 }[step.lastZxidSeen],
        sessionId: {
          new: 0n,
          same: client.sessionId,
          'wrong-passwd': client.sessionId,
          'short-passwd': client.sessionId,
          unknown: 0x1234n,
        }[step.session],
        passwd: {
          new: noPasswd,
          same: client.passwd,
          'wrong-passwd': Buffer.alloc(16, 7),
          'short-passwd': Buffer.alloc(3),
          unknown: noPasswd,
        }[step.session],
      }),
    );
    await cnxn.replies(1, replyTimeoutMs);
    // The older connection of the session ends, whether or not the new one is accepted. An unknown
    // session affects none.
    if (previous !== undefined && step.session !== 'unknown') {
      await this.#untilClosed(previous);
      this.#collect(client, previous);
      if (!previous.closed) {
        client.log.push({ message: { kind: 'silence' }, op: undefined });
        previous.destroy();
      }
      client.cnxn = undefined;
    }
    const answer = cnxn.inbox.find((message) => message.kind === 'handshake');
    if (answer?.kind !== 'handshake' || answer.sessionId === 0n) {
      await this.#untilClosed(cnxn);
      this.#collect(client, cnxn);
      cnxn.destroy();
      return;
    }
    if (step.session === 'new') this.#nameSession(answer.sessionId);
    client.sessionId = answer.sessionId;
    client.passwd = answer.passwd;
    client.cnxn = cnxn;
    this.#collect(client, cnxn);
  }

  #nameSession(id: SessionId): void {
    this.sessionNames.set(id, `session ${this.sessionNames.size + 1}`);
  }

  async #probe(body: Buffer): Promise<void> {
    const cnxn = await WireCnxn.open({ host: '127.0.0.1', port: this.#port });
    cnxn.send(body);
    await cnxn.replies(1, replyTimeoutMs);
    const answer = cnxn.inbox.find((message) => message.kind === 'handshake');
    if (answer?.kind === 'handshake' && answer.sessionId !== 0n) {
      this.#nameSession(answer.sessionId);
      cnxn.send(requestBody(1, OpCode.closeSession, record.nothing()));
      await cnxn.replies(1, replyTimeoutMs);
    }
    await this.#untilClosed(cnxn);
    for (const message of cnxn.take()) this.#probeLog.push({ message, op: message.kind === 'reply' ? closeOp : undefined });
    cnxn.destroy();
  }

  async #frame(client: Client, length: number, bytes: Buffer): Promise<void> {
    const { cnxn } = client;
    if (cnxn === undefined || cnxn.closed) return;
    await this.#ping(client);
    const head = Buffer.alloc(4);
    head.writeInt32BE(length, 0);
    cnxn.sendRaw(Buffer.concat([head, bytes]));
    await this.#untilClosed(cnxn);
    this.#collect(client, cnxn);
    cnxn.destroy();
  }
}

const pingOp: Op = { type: OpCode.ping, text: 'ping', xid: Xid.ping, fields: () => record.nothing() };
const closeOp: Op = { type: OpCode.closeSession, text: 'closeSession', fields: () => record.nothing() };
