/** What a session machine asks of its owner, and reports to it. */
import type { RequestFailure } from '../keeper-error.ts';
import type { KeeperState } from '../watched-event.ts';
import type { ProbeOutput } from './quorum-probe.ts';
import type { ReplyOutput } from './reply-matcher.ts';
import type { Request } from './request.ts';
import type { AttemptOutput } from './server-attempt.ts';
import type { AuthOutput } from './session-auth.ts';
import type { RestoreOutput } from './session-restore.ts';

/** The outputs of the machine, in order. An implementation must not call the machine back. */
export interface SessionOutput<R extends Request> extends AttemptOutput, AuthOutput, ProbeOutput, ReplyOutput<R>, RestoreOutput {
  /** Send bytes on the connection; the receiver owns them. */
  send(bytes: Buffer): void;
  /**
   * Close the connection, or cancel the attempt or the look-up. `gracefully`: send what is queued
   * first.
   */
  closeCnxn(gracefully: boolean): void;
  failed(request: R, refusal: RequestFailure): void;
  /** A connection to this place was lost, or an attempt has failed. */
  connectionFailed(server: string, reason: string): void;
  state(state: KeeperState, reason: string | undefined): void;
}
