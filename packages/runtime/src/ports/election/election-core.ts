/**
 * The part of a core that the election port of a server uses. `Peer` has this shape. The calls say
 * which servers can be reached as well as what they send: a server that is known to be down is not
 * waited for (docs/internals/election.md).
 */
import type { Now } from '@tskeeper/core';
import type { Notification, Sid } from '@tskeeper/protocol';

export interface ElectionCore {
  /**
   * A notification has arrived. `from` is below 0 for an observer without a number, and valid as
   * long as its connection lasts.
   */
  notified(from: Sid, notification: Notification, now: Now): void;
  /**
   * There is a connection with that server, dialled by either side. Called for each new one, also
   * when it replaces another.
   */
  reachable(sid: Sid): void;
  /**
   * The connection with that server has closed, and a dial begun since was refused at every address
   * it has: its host answers and nothing listens. Called once, until the server is reachable again.
   * A dial without an answer is never reported.
   */
  unreachable(sid: Sid, now: Now): void;
}
