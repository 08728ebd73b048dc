import { startRuntime } from '@tskeeper/runtime';
import { type Server, type ServerOptions, startServerWith } from './server.ts';

/**
 * Starts a server in this process, standalone or as part of an ensemble. Resolves when clients can
 * connect, or, in an ensemble, when it looks for a leader. Rejects with a ConfigError, with a
 * ListenError, or with the error that prevents the use of its folder; `exitStatusOf` makes a
 * sentence of each.
 */
export function startServer(options: ServerOptions = {}): Promise<Server> {
  return startServerWith(startRuntime, options);
}
