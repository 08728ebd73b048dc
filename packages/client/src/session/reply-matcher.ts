/**
 * Matches what a server sends to a connected client with what the client has sent: answers arrive
 * in the order of the requests, and the session's own requests have reserved xids (`Xid`).
 *
 * An answer that was not due means that the two sides disagree about the order, so no later answer
 * can be trusted either, and the connection ends.
 */
import { ErrorCode, type Millis, type Reader, readReplyHeader, readWatcherEvent, Xid, type Zxid } from '@tskeeper/protocol';
import type { AuthCall } from '../auth/credentials.ts';
import type { KeepAlive } from './keep-alive.ts';
import type { NegotiatedSession } from './negotiated-session.ts';
import type { Outbox } from './outbox.ts';
import type { Request } from './request.ts';
import type { SessionAuth } from './session-auth.ts';
import type { SessionEnd } from './session-end.ts';
import type { SessionLiveness } from './session-liveness.ts';
import type { SessionOutputs } from './session-output.ts';
import type { SessionRestore } from './session-restore.ts';

/** What ends the connection, or the session. */
export type ReplyConsequence =
  | { readonly kind: 'invalid'; readonly reason: string }
  | { readonly kind: 'closed' }
  | { readonly kind: 'authRejected'; readonly call: AuthCall };

/** What the matcher settles. */
export interface ReplyTargets<R extends Request> {
  readonly outbox: Outbox<R>;
  readonly session: NegotiatedSession;
  readonly auth: SessionAuth;
  readonly restore: SessionRestore;
  readonly keepAlive: KeepAlive;
  readonly liveness: SessionLiveness;
  readonly end: SessionEnd;
}

export class ReplyMatcher<R extends Request> {
  readonly #outbox: Outbox<R>;
  readonly #session: NegotiatedSession;
  readonly #auth: SessionAuth;
  readonly #restore: SessionRestore;
  readonly #keepAlive: KeepAlive;
  readonly #liveness: SessionLiveness;
  readonly #end: SessionEnd;
  readonly #output: Pick<SessionOutputs<R>, 'calls' | 'events'>;

  constructor(
    { outbox, session, auth, restore, keepAlive, liveness, end }: ReplyTargets<R>,
    output: Pick<SessionOutputs<R>, 'calls' | 'events'>,
  ) {
    this.#outbox = outbox;
    this.#session = session;
    this.#auth = auth;
    this.#restore = restore;
    this.#keepAlive = keepAlive;
    this.#liveness = liveness;
    this.#end = end;
    this.#output = output;
  }

  /** Processes one frame. undefined: the connection continues. */
  onReply(reader: Reader, nowMs: Millis): ReplyConsequence | undefined {
    const { xid, zxid, err } = readReplyHeader(reader);
    if (zxid > Number.MAX_SAFE_INTEGER)
      return invalid(`the server sent a zxid above 0x${Number.MAX_SAFE_INTEGER.toString(16)}, which this client cannot represent`);
    switch (xid) {
      case Xid.notification:
        this.#output.events.event(readWatcherEvent(reader), zxid);
        return undefined;
      case Xid.ping:
        return this.#onPong();
      case Xid.setWatches:
        return this.#onSetWatchesReply(err);
      case Xid.auth:
        return this.#onAuthReply(err);
      default:
        return this.#onRequestReply(xid, zxid, err, reader, nowMs);
    }
  }

  #onPong(): ReplyConsequence | undefined {
    if (!this.#keepAlive.ponged()) return invalid('the server answered a ping that was not sent');
    if (!this.#session.isServerReadOnly) this.#liveness.ponged();
    return undefined;
  }

  #onSetWatchesReply(err: number): ReplyConsequence | undefined {
    if (!this.#restore.isWatchesReplyDue) return invalid('the server answered a setWatches that was not sent');
    if (err !== ErrorCode.Ok) return invalid(`the server did not restore watches (error ${err})`);
    this.#restore.watchesAnswered();
    return undefined;
  }

  #onAuthReply(err: number): ReplyConsequence | undefined {
    const call = this.#auth.answered();
    if (call === undefined) return invalid('the server answered credentials that were not sent');
    if (err !== ErrorCode.Ok) return { kind: 'authRejected', call };
    this.#auth.accepted(call);
    return undefined;
  }

  #onRequestReply(xid: number, zxid: Zxid, err: number, reader: Reader, nowMs: Millis): ReplyConsequence | undefined {
    const request = this.#outbox.nextPending;
    if (request === undefined)
      return this.#end.isCloseReply(xid) ? { kind: 'closed' } : invalid(`the server answered request ${xid}, which was not sent`);
    if (request.xid !== xid) return invalid(`the server answered request ${xid}, expected an answer to ${request.xid}`);
    // Read the answer before removing the request: if it cannot be read, the request fails with the
    // others.
    if (!request.isCancelled) this.#output.calls.answered(request, err, reader, zxid);
    this.#outbox.answered();
    this.#end.requestAnswered(nowMs);
    if (!this.#session.isServerReadOnly) this.#liveness.answered(request.ordinal);
    // Only after a valid answer: with an invalid zxid, no correct server could serve this client
    // any more.
    this.#session.sawZxid(zxid);
    return undefined;
  }
}

function invalid(reason: string): ReplyConsequence {
  return { kind: 'invalid', reason };
}
