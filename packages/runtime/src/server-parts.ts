/**
 * What the files that run a server share: its stage, and the parts that exist only after recovery.
 * They are set before the stage leaves `starting`, and no turn runs earlier.
 */
import { type Peer, Server } from '@tskeeper/core';
import type { EnsembleRuntime } from './ensemble-runtime.ts';
import type { ClientPort } from './ports/client/client-port.ts';

export class ServerParts {
  /**
   * `closing`: no more input is accepted, and accepted input is completed. `ended`: no further work
   * is done.
   */
  stage: 'starting' | 'serving' | 'closing' | 'ended' = 'starting';
  core!: Server | Peer;
  clientPort!: ClientPort;
  /** The parts that only an ensemble needs. */
  ensemble: EnsembleRuntime | undefined;

  /** The server of the clients; in an ensemble each role has a new one. */
  get server(): Server | undefined {
    return this.core instanceof Server ? this.core : this.core.server;
  }
}
