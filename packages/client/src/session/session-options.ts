/** The settings of one session, as `SessionMachine` and its parts use them. */
import type { Millis, SessionId } from '@tskeeper/protocol';
import type { AuthCall } from '../auth/credentials.ts';
import type { DialPlanOptions } from './dial-plan.ts';

export interface SessionOptions extends DialPlanOptions {
  /** The requested time-out; a server grants it or the nearest value that it allows. */
  readonly sessionTimeoutMs: Millis;
  /** Whether to accept a server without a quorum. */
  readonly readOnly: boolean;
  /**
   * Maximum length of a frame to a server, and with a small margin of one from it: jute.maxbuffer.
   */
  readonly packetBytesMax: number;
  /** The session to resume; undefined for a new one. */
  readonly session: { readonly id: SessionId; readonly password: Uint8Array } | undefined;
  /** Sent to every server, in this order. */
  readonly auth: readonly AuthCall[];
  /**
   * Whether to declare the session expired after 4/3 of its time-out without a server, as
   * ZooKeeper's client does since 3.9, instead of waiting for a server to say so.
   */
  readonly expireLocally: boolean;
  /**
   * Whether to leave the session to another client that uses it too, instead of taking it back
   * forever.
   */
  readonly yieldSession: boolean;
  /**
   * Whether requests wait for the first connection as long as the session is being opened, which
   * the owner limits (`connectTimeoutMs`). If not, they fail after all servers have failed, as
   * after the loss of a connection.
   */
  readonly waitForFirstConnection: boolean;
  /** Whether to prove an identity by SASL on each connection, before any request. */
  readonly sasl: boolean;
  /**
   * How long a server may take for the session's own requests on a new connection: identities,
   * watches. undefined: no limit.
   */
  readonly requestTimeoutMs: Millis | undefined;
}
