/**
 * What the generator requests and the runner executes, on both servers alike. Nothing here belongs
 * to either server.
 */
import type { Fields } from '@tskeeper/harness';

/** What a request may need to know about its server. */
export interface ServerView {
  /** The zxid at this server that corresponds to a zxid at the first server. */
  zxid(first: number): number;
}

export interface Op {
  readonly type: number;
  /** The request in words, for the report of a difference. */
  readonly text: string;
  fields(view: ServerView): Fields;
  /** A fixed xid, where the protocol has one for this request; otherwise the client's next. */
  readonly xid?: number;
  /**
   * Bytes cut off the end of the body, or a replacement of the whole body: a request that cannot be
   * decoded.
   */
  readonly cutBytes?: number;
  /** Marks a request on which a justified difference may depend; see justified-differences.ts. */
  readonly quirk?: Quirk;
}

/** Requests that no client library sends, and that servers may answer differently. */
export type Quirk = 'unknown-opcode' | 'check-alone' | 'undecodable' | 'delete-container' | 'null-path' | 'null-acl-id' | 'multi-type';

export type SessionChoice = 'new' | 'same' | 'wrong-passwd' | 'short-passwd' | 'unknown';

export interface HandshakeStep {
  readonly kind: 'handshake';
  readonly client: number;
  readonly session: SessionChoice;
  readonly timeOut: number;
  readonly readOnly: boolean | undefined;
  readonly protocolVersion: number;
  readonly lastZxidSeen: 'zero' | 'seen' | 'future';
}

export type Step =
  /** One by one: the next request is sent after the reply. */
  | { readonly kind: 'sequential'; readonly client: number; readonly ops: readonly Op[] }
  /** All at once. */
  | { readonly kind: 'pipelined'; readonly client: number; readonly ops: readonly Op[] }
  /** Reads of several clients at the same time. */
  | { readonly kind: 'concurrent'; readonly parts: readonly { readonly client: number; readonly ops: readonly Op[] }[] }
  /**
   * One request after which a server may close the connection; a ping after it shows whether it
   * did.
   */
  | { readonly kind: 'last'; readonly client: number; readonly op: Op }
  /** Closes the session and with it the connection. */
  | { readonly kind: 'close'; readonly client: number }
  /** Cuts the client's connection. */
  | { readonly kind: 'cut'; readonly client: number }
  | HandshakeStep
  /** A separate connection, whose first frame has this body. Closes a session that results. */
  | { readonly kind: 'probe'; readonly text: string; readonly body: (view: ServerView) => Buffer }
  /** A frame with this announced length, of which only these bytes follow. */
  | { readonly kind: 'frame'; readonly client: number; readonly text: string; readonly length: number; readonly bytes: Buffer };
