/** What a session uses of the world: the network, time, randomness, and receivers of reports. */
import type { SaslMechanism } from '../auth/sasl.ts';
import type { Clock, Random } from '../clock.ts';
import type { Tracer } from '../tracing.ts';
import type { Transport } from '../transport.ts';
import type { ProcessHold } from './process-hold.ts';

export interface SessionEnvironment {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly random: Random;
  readonly tracer: Tracer;
  /** Proves an identity by SASL on each connection; undefined: none. */
  readonly sasl: SaslMechanism | undefined;
  /**
   * The clock for background work, such as pings and attempts to connect: its timers need not keep
   * the process running.
   */
  readonly backgroundClock: Clock;
  /**
   * Keeps the process running while the program waits for something; undefined: connections and
   * timers do so by themselves.
   */
  readonly processHold: ProcessHold | undefined;
}
