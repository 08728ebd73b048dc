/**
 * What clients need of the world they live in. The virtual one has it, and so may one of real processes and sockets: then the same clients
 * work there, and leave the same evidence.
 */
import type { Millis } from '@tskeeper/protocol';
import type { Network, StreamId, TimerHandle } from '@tskeeper/runtime';
import type { VirtualCnxn } from '@tskeeper/runtime/internal';
import type { CnxnRecord, Recording } from '../record/recording.ts';

/** Where every server listens to clients; by their names and addresses they are told apart. */
export const serverPort = 2181;

export interface ClientClock {
  readonly elapsedMs: Millis;
  now(): { readonly elapsedMs: Millis };
  after(delayMs: Millis, callback: () => void): TimerHandle;
  cancel(timer: TimerHandle): void;
  /** Runs it once at that time. `what` is for whoever reads a trace; who owns it is nobody's affair here. */
  at(atMs: Millis, what: string, owner: undefined, run: () => void): TimerHandle;
}

/** The network of a client's machine. What goes over it is written down. */
export interface ClientMachine extends Network {
  /** What is written down of a connection that is open. */
  recordOf(stream: StreamId): CnxnRecord | undefined;
  /** The wire under a connection, where there is one that can be harmed. */
  wireOf(stream: StreamId): VirtualCnxn | undefined;
  /** The machine is off the net for good: nothing leaves it any more, and nothing is heard. */
  unplug(): void;
}

export interface ClientWorld {
  readonly clock: ClientClock;
  readonly recording: Recording;
  /** `address` is undefined while a server is down. */
  readonly servers: readonly { readonly name: string; readonly address: string | undefined }[];
  clientNetwork(client: string, address: string): ClientMachine;
  /** The cable between two machines. */
  link(a: string, b: string): { cut(): void; heal(): void };
}
