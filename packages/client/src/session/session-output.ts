/**
 * What a session machine asks of its owner, and reports to it: one receiver per subject.
 *
 * The calls come in order, across all receivers: an event before the answer that shows the change,
 * a failed request before the state that follows. No receiver may call the machine back.
 */
import type { Reader, WatcherEvent, Zxid } from '@tskeeper/protocol';
import type { RequestFailure } from '../keeper-error.ts';
import type { KeeperState } from '../watched-event.ts';
import type { ProbeOutput } from './quorum-probe.ts';
import type { Request } from './request.ts';
import type { AttemptOutput } from './server-attempt.ts';
import type { AuthOutput, SaslOutput } from './session-auth.ts';
import type { RestoreOutput } from './session-restore.ts';

export interface SessionOutputs<R extends Request> {
  readonly cnxn: CnxnOutput;
  readonly probes: ProbeOutput;
  readonly calls: CallOutput<R>;
  readonly identities: AuthOutput;
  readonly watches: RestoreOutput;
  readonly events: EventOutput;
  readonly states: StateOutput;
}

/** The connection, from the look-up of its server to its end. */
export interface CnxnOutput extends AttemptOutput, SaslOutput {
  /** Send bytes on the connection; the receiver owns them. */
  send(bytes: Buffer): void;
  /**
   * Close the connection, or cancel the attempt or the look-up. `gracefully`: send what is queued
   * first.
   */
  closeCnxn(gracefully: boolean): void;
}

/** The results of requests. */
export interface CallOutput<R extends Request> {
  /** The answer to a request. Throws a ProtocolError if it cannot be read. */
  answered(request: R, err: number, reader: Reader, zxid: Zxid): void;
  failed(request: R, refusal: RequestFailure): void;
}

export interface EventOutput {
  /** A server has reported a change. Throws a ProtocolError if the event cannot be valid. */
  event(event: WatcherEvent, zxid: Zxid): void;
}

export interface StateOutput {
  /** A connection to this place was lost, or an attempt has failed. */
  connectionFailed(server: string, reason: string): void;
  state(state: KeeperState, reason: string | undefined): void;
}
