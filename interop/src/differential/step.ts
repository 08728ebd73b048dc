/** What the generator asks for and the runner carries out, on both servers alike. Nothing here belongs to either server. */
import type { Fields } from '../wire/requests.ts';

/** What a request may need to know of the server it goes to. */
export interface ServerView {
  /** The zxid at this server that corresponds to a zxid at the first server. */
  zxid(first: number): number;
}

export interface Op {
  readonly type: number;
  /** The request in words, for whoever reads a difference. */
  readonly text: string;
  fields(view: ServerView): Fields;
  /** A fixed xid, where the protocol has one for this request; otherwise the client's next. */
  readonly xid?: number;
  /** Bytes taken off the end of the body, or the whole of it replaced: a request that cannot be decoded. */
  readonly cutBytes?: number;
  /** Marks what a justified difference may hang on; see justified.ts. */
  readonly quirk?: Quirk;
}

/** Requests that no client library sends, and to which servers may justly answer differently. */
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
  /** One after the other: the next is sent when the reply has come. */
  | { readonly kind: 'sequential'; readonly client: number; readonly ops: readonly Op[] }
  /** All at once. */
  | { readonly kind: 'pipelined'; readonly client: number; readonly ops: readonly Op[] }
  /** Reads of several clients at the same time. */
  | { readonly kind: 'concurrent'; readonly parts: readonly { readonly client: number; readonly ops: readonly Op[] }[] }
  /** One request after which a server may close the connection; a ping behind it shows whether it did. */
  | { readonly kind: 'last'; readonly client: number; readonly op: Op }
  /** The session is closed and the connection with it. */
  | { readonly kind: 'close'; readonly client: number }
  /** The client's connection breaks. */
  | { readonly kind: 'cut'; readonly client: number }
  | HandshakeStep
  /** A connection of its own, whose first frame has this body. A session that results is closed. */
  | { readonly kind: 'probe'; readonly text: string; readonly body: (view: ServerView) => Buffer }
  /** A frame whose announced length is given, and of which only these bytes follow. */
  | { readonly kind: 'frame'; readonly client: number; readonly text: string; readonly length: number; readonly bytes: Buffer };
