/** A transport whose connections break where the test says: the first by the first cut of the plan, and so on, until the plan is used up. */
import type { ConnectOptions, Transport } from '../../src/index.ts';
import type { ClientWorld } from './client-world.ts';

export interface Cut {
  /** Of which direction the bytes are counted: what the client sends, or what it gets. */
  readonly of: 'requests' | 'answers';
  /** The connection breaks, for both of its ends, once so many bytes have arrived, the handshake included. */
  readonly afterBytes: number;
}

/** Cuts of connections that are made from now on. The plan may grow meanwhile. */
export function cutting(world: ClientWorld, options: ConnectOptions, plan: Cut[]): ConnectOptions {
  const wire = options.transport!;
  const transport: Transport = {
    resolve: (host) => wire.resolve!(host),
    connect: (address, sink) =>
      wire.connect(address, {
        connected() {
          const cut = plan.shift();
          if (cut !== undefined) {
            const { forward, backward } = world.cnxn;
            (cut.of === 'requests' ? forward : backward).resetAfter(cut.afterBytes);
          }
          sink.connected();
        },
        received: (bytes) => sink.received(bytes),
        closed: (error) => sink.closed(error),
      }),
  };
  return { ...options, transport };
}
