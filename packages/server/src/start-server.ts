import { startRuntime } from '@tskeeper/runtime';
import { type Server, type ServerOptions, startServerWith } from './server.ts';

/** Starts a standalone server in this process; resolves when clients can connect. */
export function startServer(options: ServerOptions = {}): Promise<Server> {
  return startServerWith(startRuntime, options);
}
