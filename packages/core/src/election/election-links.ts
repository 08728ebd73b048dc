import type { Notification, Sid } from '@tskeeper/protocol';

/** The connections for votes, over the election ports. It never calls back. */
export interface ElectionLinks {
  /**
   * Sends a notification to another server. If the connection is slow, a newer notification
   * replaces one that waits. Without a connection the port dials the server.
   */
  notify(to: Sid, notification: Notification): void;
  /**
   * Closes the connection with that server, if there is one, and makes a new one; `reachable` or
   * `unreachable` follows.
   */
  reconnect(sid: Sid): void;
}
