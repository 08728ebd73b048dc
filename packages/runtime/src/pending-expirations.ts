/**
 * Callers that wait until a session, expired by an operator, has ended. In an ensemble the request
 * goes to the leader and can be lost with the role of this server, so it is made again in each new
 * role until the session is gone.
 */
import type { Now, Server } from '@tskeeper/core';
import type { SessionId } from '@tskeeper/protocol';
import type { ServerParts } from './server-parts.ts';

interface PendingExpiration {
  readonly session: SessionId;
  server: Server;
  readonly resolve: (ended: boolean) => void;
  readonly reject: (error: Error) => void;
}

export class PendingExpirations {
  readonly #parts: ServerParts;
  #pending: PendingExpiration[] = [];

  constructor(parts: ServerParts) {
    this.#parts = parts;
  }

  /** As `Runtime.expireSession`, in a turn. */
  expire(session: SessionId, now: Now, resolve: (ended: boolean) => void, reject: (error: Error) => void): void {
    const { server } = this.#parts;
    if (server === undefined)
      reject(new Error('cannot expire a session: this server does not serve clients now; ask one that leads or follows'));
    else if (server.expireSession(session, now)) this.#pending.push({ session, server, resolve, reject });
    else resolve(false);
  }

  /** At the end of a turn: resolves for the sessions that are gone. */
  resolveEnded(now: Now): void {
    if (this.#pending.length === 0) return;
    const { core, server } = this.#parts;
    this.#pending = this.#pending.filter((expiration) => {
      const { session, resolve, server: asked } = expiration;
      if (!core.inspect.hasSession(session)) {
        resolve(true);
        return false;
      }
      // The role that was asked is over, and the request may have been lost with it.
      if (server !== undefined && server !== asked) {
        expiration.server = server;
        server.expireSession(session, now);
      }
      return true;
    });
  }

  rejectAll(): void {
    for (const { reject } of this.#pending) reject(new Error('the server closed before the session ended'));
    this.#pending = [];
  }
}
