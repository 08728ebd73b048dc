import { startRuntime } from '@tskeeper/runtime';
import { type Server, type ServerOptions, startServerWith } from './server.ts';

/** Starts a server in this process, standalone or one of an ensemble; see `startRuntime`. */
export function startServer(options: ServerOptions = {}): Promise<Server> {
  return startServerWith(startRuntime, options);
}
