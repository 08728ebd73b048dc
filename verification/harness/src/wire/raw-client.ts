/**
 * A minimal client: one session, one request at a time, replies as plain values. It puts a server
 * into a known state and inspects it afterwards, where the foreign clients would be in the way.
 */
import { OpCode, type SessionId, Xid } from '@tskeeper/protocol';

import { readEvent, readReply, type ReplyValue } from './replies.ts';
import { frameOf } from './frames.ts';
import type { HandshakeReply } from './messages.ts';
import { type Fields, type Handshake, handshakeBody, opName, record, requestBody } from './requests.ts';
import { type Message, WireCnxn } from './wire-cnxn.ts';

const replyTimeoutMs = 20_000;
/**
 * Ports of servers that may forget a request until the next one arrives, as those of ZooKeeper
 * 3.6.0 to 3.8.0 do in an ensemble: the thread that should process it may go to sleep as it arrives
 * (ZOOKEEPER-4537). Other clients do not notice, since they ping.
 */
export const lostWakeupPorts = new Set<number>();
/** How long to wait for one of these before a ping. */
const reminderMs = 2000;
/**
 * First xid of a resumed session. A server of ZooKeeper takes a txn for that of its own client if
 * session and xid are the same: a create that is committed just after the session has moved would
 * answer the first request there if both counted from 1.
 */
const resumedXidStart = 1_000_000;

export interface Answer {
  readonly err: number;
  readonly zxid: number;
  readonly value: ReplyValue;
}

export class RawClient {
  readonly sessionId: SessionId;
  readonly passwd: Buffer;
  readonly timeOut: number;
  /** Whether the server is in read-only mode. */
  readonly isReadOnly: boolean;
  readonly #port: number;
  readonly #cnxn: WireCnxn;
  #xid: number;
  /** Pings sent for this purpose and not answered yet. */
  #reminders = 0;
  readonly #events: string[] = [];

  private constructor(port: number, cnxn: WireCnxn, { sessionId, passwd, timeOut, readOnly }: HandshakeReply, xid: number) {
    this.#port = port;
    this.#cnxn = cnxn;
    this.#xid = xid;
    this.sessionId = sessionId;
    this.passwd = passwd;
    this.timeOut = timeOut;
    this.isReadOnly = readOnly === true;
  }

  /**
   * Opens or resumes a session; undefined if the server closes the connection or rejects the
   * session; then `refused` is called.
   */
  static async connect(port: number, handshake: Handshake, refused?: () => void): Promise<RawClient | undefined> {
    const cnxn = await WireCnxn.open({ host: '127.0.0.1', port });
    cnxn.send(handshakeBody({ readOnly: false, ...handshake }));
    await cnxn.replies(1, replyTimeoutMs);
    const answer = cnxn.take().find((message) => message.kind === 'handshake');
    if (answer?.kind !== 'handshake' || answer.sessionId === 0n) {
      cnxn.destroy();
      if (answer?.kind === 'handshake') refused?.();
      return undefined;
    }
    const isResumed = handshake.sessionId !== undefined && handshake.sessionId !== 0n;
    return new RawClient(port, cnxn, answer, isResumed ? resumedXidStart : 0);
  }

  static async connectOrThrow(port: number, timeOut: number): Promise<RawClient> {
    const client = await RawClient.connect(port, { timeOut });
    if (client === undefined) throw new Error(`the server on port ${port} rejected a new session`);
    return client;
  }

  async call(type: number, fields: Fields, xid = ++this.#xid): Promise<Answer> {
    this.#cnxn.send(requestBody(xid, type, fields));
    const messages = await this.#answers(1);
    const reply = messages.find((message) => message.kind === 'reply');
    if (reply === undefined) {
      const why = this.#cnxn.closed ? ': the server has closed the connection' : ` within ${replyTimeoutMs} ms`;
      throw new Error(`no reply to ${opName(type)}${why}`);
    }
    return { err: reply.err, zxid: reply.zxid, value: readReply(type, reply.err, reply.body) };
  }

  /** Sends all at once, waits for all replies, and returns their error codes. */
  async callAll(requests: readonly { readonly type: number; readonly fields: Fields }[]): Promise<number[]> {
    this.send(requests);
    const answers = await this.#answers(requests.length);
    const errors = answers.flatMap((message) => (message.kind === 'reply' ? [message.err] : []));
    if (errors.length < requests.length) throw new Error(`${errors.length} replies to ${requests.length} requests`);
    return errors;
  }

  /** Sends all at once without waiting. */
  send(requests: readonly { readonly type: number; readonly fields: Fields }[]): void {
    this.#cnxn.sendRaw(Buffer.concat(requests.map(({ type, fields }) => frameOf(requestBody(++this.#xid, type, fields)))));
  }

  async ping(): Promise<void> {
    await this.call(OpCode.ping, record.nothing(), Xid.ping);
  }

  /** Type and path of each event since the last call, in the order of arrival. */
  takeEvents(): string[] {
    return this.#events.splice(0);
  }

  /**
   * The frames received once there are this many replies, or the connection is lost, or the wait
   * has timed out.
   */
  async #answers(count: number): Promise<Message[]> {
    const isForgetful = lostWakeupPorts.has(this.#port);
    const lateMs = performance.now() + replyTimeoutMs;
    const answers: Message[] = [];
    let missing = count;
    for (;;) {
      await this.#cnxn.replies(missing, isForgetful ? reminderMs : replyTimeoutMs);
      const messages = this.#take().filter((message) => !this.#answersReminder(message));
      answers.push(...messages);
      missing -= messages.filter(({ kind }) => kind === 'reply' || kind === 'unreadable').length;
      // An earlier call may have taken the message that the connection is closed.
      if (missing <= 0 || this.#cnxn.closed) return answers;
      if (!messages.some(({ kind }) => kind === 'silence')) continue;
      if (!isForgetful || performance.now() >= lateMs) return answers;
      this.#cnxn.send(requestBody(Xid.ping, OpCode.ping, record.nothing()));
      this.#reminders++;
    }
  }

  #answersReminder(message: Message): boolean {
    if (this.#reminders === 0 || message.kind !== 'reply' || message.xid !== Xid.ping) return false;
    this.#reminders--;
    return true;
  }

  /** Keeps events for `takeEvents`. */
  #take(): Message[] {
    const messages = this.#cnxn.take();
    for (const message of messages) {
      if (message.kind !== 'event') continue;
      const event = readEvent(message.body);
      this.#events.push('unreadable' in event ? `unreadable ${event.unreadable}` : `${event.type} ${event.path}`);
    }
    return messages;
  }

  async auth(scheme: string, auth: string): Promise<void> {
    const { err } = await this.call(OpCode.auth, record.auth(scheme, Buffer.from(auth)), Xid.auth);
    if (err !== 0) throw new Error(`auth ${scheme} gave ${err}`);
  }

  /** Closes the session. */
  async close(): Promise<void> {
    await this.call(OpCode.closeSession, record.nothing());
    await this.#cnxn.untilClosed(replyTimeoutMs);
    this.#cnxn.destroy();
  }

  /** Leaves the session to its timeout. */
  abandon(): void {
    this.#cnxn.destroy();
  }
}
