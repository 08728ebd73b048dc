/**
 * A transport whose connections break as planned: the first by the first cut, and so on, until the
 * plan is used up.
 */
import type { ConnectOptions, Transport } from '../../src/index.ts';
import type { ClientWorld } from './client-world.ts';

export interface Cut {
  /** The direction whose bytes are counted: what the client sends, or what it receives. */
  readonly of: 'requests' | 'answers';
  /**
   * The connection breaks for both sides when this many bytes have arrived, including the
   * handshake.
   */
  readonly afterBytes: number;
}

/** Cuts connections made from now on. The plan may grow meanwhile. */
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
