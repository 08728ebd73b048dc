/**
 * What clients need of their world. The virtual world provides it, and so may a world of real
 * processes and sockets: then the same clients work there, and leave the same evidence.
 */
import type { Millis } from '@tskeeper/protocol';
import type { Network, StreamId, TimerHandle } from '@tskeeper/runtime';
import type { VirtualCnxn } from '@tskeeper/runtime/internal';
import type { CnxnRecord, Recording } from '../record/recording.ts';

/** The client port of every server; names and addresses distinguish servers. */
export const serverPort = 2181;
/** A reconfiguration may give a server this one. */
export const otherServerPort = 2182;

export interface ClientClock {
  readonly elapsedMs: Millis;
  now(): { readonly elapsedMs: Millis };
  after(delayMs: Millis, callback: () => void): TimerHandle;
  cancel(timer: TimerHandle): void;
  /**
   * Runs the callback once at that time. `what` is for the trace; the owner does not matter here.
   */
  at(atMs: Millis, what: string, owner: undefined, run: () => void): TimerHandle;
}

/** The network of a client's machine. Its traffic is recorded. */
export interface ClientMachine extends Network {
  /** The record of an open connection. */
  recordOf(stream: StreamId): CnxnRecord | undefined;
  /** The wire of a connection, if it can have faults. */
  wireOf(stream: StreamId): VirtualCnxn | undefined;
  /** The machine is off the network for good: nothing leaves it, and nothing arrives. */
  unplug(): void;
}

export interface ClientServer {
  readonly name: string;
  readonly address: string | undefined;
  /**
   * The port of its configuration, and the others where it may accept clients. Default: `serverPort`
   * alone.
   */
  readonly clientPorts?: readonly number[] | undefined;
}

export interface ClientWorld {
  readonly clock: ClientClock;
  readonly recording: Recording;
  /** `address` is undefined while a server is down. */
  readonly servers: readonly ClientServer[];
  clientNetwork(client: string, address: string): ClientMachine;
  /** The link between two machines. */
  link(a: string, b: string): { cut(): void; heal(): void };
}
