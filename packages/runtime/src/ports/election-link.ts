import type { HostPort, Millis, Sid } from '@tskeeper/protocol';
import type { Dial } from './dialler.ts';
import type { ElectionCnxn } from './election-cnxn.ts';

/** What the election port keeps of one other server. */
export class ElectionLink {
  readonly sid: Sid;
  /** Configured; empty for a server that is not in the configuration. */
  addresses: readonly HostPort[] = [];
  isListed = false;
  /** The one connection with it. */
  cnxn: ElectionCnxn | undefined;
  dial: Dial | undefined;
  /** What it is to be told; a newer message takes its place. */
  waiting: Buffer | undefined;
  /** What it was told last, or is to be told: said again over each new connection. */
  last: Buffer | undefined;
  /** It is to be dialled at the end of the turn, if there is no connection by then. */
  wantsDial = false;
  /** Where it says it can be dialled back, once the dial under way has failed. */
  dialBack: readonly HostPort[] | undefined;
  /** When it was last asked to dial back. */
  askedMs: Millis = -Infinity;
  /** When it was last dialled because its connection had closed. */
  redialledMs: Millis = -Infinity;
  /** How many connections with it have closed. */
  losses = 0;
  /** The core was told that it is unreachable, or there was nothing to tell since it last was reachable. */
  isUnreachableTold = true;
  /** What came of the last dial, so that one line says it and not one for each repetition. */
  lastFailure = '';
  isDirty = false;

  constructor(sid: Sid) {
    this.sid = sid;
  }
}
