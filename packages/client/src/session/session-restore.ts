/**
 * What a session sends first on each new connection: its identities, and the watches of the last
 * one. A server that does not answer these would keep a client that gets no events, so they have a
 * time limit of their own.
 *
 * Identities decide which events watches may receive, and both precede the program's requests.
 */
import { type Millis, type OpCode, type Writer, Xid, type Zxid } from '@tskeeper/protocol';
import { type CnxnLimit, GraceDeadline } from './grace-deadline.ts';
import type { Outbox } from './outbox.ts';
import type { Request } from './request.ts';
import type { SessionAuth } from './session-auth.ts';

export interface RestoreOutput {
  /** The requests that set watches again, on a server that compares with this zxid. */
  restoreWatches(lastZxid: Zxid): Iterable<{ readonly opCode: OpCode; write(writer: Writer): void }>;
}

export class SessionRestore implements CnxnLimit {
  readonly #timeoutMs: Millis | undefined;
  readonly #auth: SessionAuth;
  readonly #outbox: Outbox<Request>;
  readonly #output: RestoreOutput;
  #setWatchesUnanswered = 0;
  /** When the server must have answered the identities and the watches. */
  readonly #deadline = new GraceDeadline();

  /** `timeoutMs`: how long a server may take; undefined: no limit. */
  constructor(timeoutMs: Millis | undefined, auth: SessionAuth, outbox: Outbox<Request>, output: RestoreOutput) {
    this.#timeoutMs = timeoutMs;
    this.#auth = auth;
    this.#outbox = outbox;
    this.#output = output;
  }

  get #isRestoring(): boolean {
    return this.#setWatchesUnanswered > 0 || this.#auth.isRestoring;
  }

  start(lastZxid: Zxid, nowMs: Millis): void {
    this.#auth.restore();
    this.#deadline.set(nowMs + (this.#timeoutMs ?? Infinity));
    this.#restoreWatches(lastZxid);
  }

  #restoreWatches(lastZxid: Zxid): void {
    for (const piece of this.#output.restoreWatches(lastZxid)) {
      this.#outbox.writeRequest(Xid.setWatches, piece.opCode, (writer) => piece.write(writer));
      this.#setWatchesUnanswered++;
    }
  }

  /** A batch of watches was answered. */
  watchesAnswered(): void {
    this.#setWatchesUnanswered--;
  }

  /** Whether the answer to a batch of watches is due. */
  get isWatchesReplyDue(): boolean {
    return this.#setWatchesUnanswered > 0;
  }

  disconnected(): void {
    this.#setWatchesUnanswered = 0;
  }

  // --- The limit

  get deadlineMs(): Millis {
    return this.#isRestoring ? this.#deadline.dueMs : Infinity;
  }

  isDue(nowMs: Millis): boolean {
    return this.#isRestoring && this.#deadline.isDue(nowMs);
  }

  maybeExtend(nowMs: Millis): boolean {
    return this.#deadline.maybeExtend(nowMs);
  }

  get overdueReason(): string {
    return `restoring identities and watches timed out after ${this.#timeoutMs} ms`;
  }
}
