/**
 * Listens on an address of a server of an ensemble. At the start the name of the address may not
 * resolve yet, and the previous process may still hold the port; so both are retried. A name is
 * retried without limit (ZOOKEEPER-3320, -3991, -4728: a server that gave up on it never listened
 * again), a port as often as configured.
 */
import { formatHostPort, type HostPort, isWildcardHost, type Millis } from '@tskeeper/protocol';
import type { Clock } from '../clock.ts';
import type { Listener, Network } from '../network.ts';
import type { RateLimitedLog } from './rate-limited-log.ts';

export interface BindOptions {
  /** The port's name for sentences: "election port". */
  readonly portName: string;
  /** A wildcard host means every address of this machine. */
  readonly address: HostPort;
  /** zookeeper.electionPortBindRetry: number of tries; 0 = no limit. */
  readonly attemptsMax: number;
  /** Whether the caller no longer needs the port. */
  readonly isCancelled: () => boolean;
}

/**
 * A port to other servers could not be bound. The message is for the operator: which port, where,
 * and how many tries.
 */
export class BindError extends Error {
  override readonly name = 'BindError';
}

/** ZooKeeper's listener waits this long too. */
const pauseMs: Millis = 1000;

type BindClock = Pick<Clock, 'now' | 'after'>;

function pause(clock: BindClock): Promise<void> {
  return new Promise((resolve) => void clock.after(pauseMs, resolve));
}

/**
 * Resolves with a numeric address of this server's own name, once it has one; with undefined when
 * `isCancelled()` before. Where servers are started by a scheduler (Kubernetes), a name appears
 * some time after its server.
 */
export async function waitForOwnName(
  network: Network,
  clock: BindClock,
  log: RateLimitedLog,
  { portName, address, isCancelled }: Omit<BindOptions, 'attemptsMax'>,
): Promise<string | undefined> {
  for (; !isCancelled(); await pause(clock)) {
    try {
      const [numeric] = await network.resolve(address.host);
      if (numeric !== undefined) return numeric;
      warnOfName(log, clock, portName, address, 'the name has no address');
    } catch (error) {
      warnOfName(log, clock, portName, address, sentenceOf(error));
    }
  }
  return undefined;
}

function warnOfName(log: RateLimitedLog, clock: BindClock, portName: string, address: HostPort, reason: string): void {
  log.warn(clock.now().elapsedMs, `The ${portName} waits for its address, ${formatHostPort(address)}: ${reason}`, {
    event: 'port.waits-for-name',
    address: formatHostPort(address),
    reason,
  });
}

/**
 * Resolves with undefined when `isCancelled()` before the port is bound. Rejects with a sentence
 * for the operator.
 */
export async function bindListener(
  network: Network,
  clock: BindClock,
  log: RateLimitedLog,
  options: BindOptions,
): Promise<Listener | undefined> {
  const { portName, address, attemptsMax, isCancelled } = options;
  for (let tries = 0; !isCancelled(); await pause(clock)) {
    const numeric = isWildcardHost(address.host) ? undefined : await waitForOwnName(network, clock, log, options);
    if (isCancelled()) break;
    try {
      const listener = await network.listen({ address: numeric, port: address.port, backlog: undefined, forServers: true });
      if (!isCancelled()) return listener;
      await listener.close();
      return undefined;
    } catch (error) {
      const failure = `The ${portName}, ${formatHostPort(address)}, could not be bound: ${sentenceOf(error)}`;
      if (++tries === attemptsMax) {
        throw new BindError(`${failure} Gave up after ${tries} tries; zookeeper.electionPortBindRetry sets how many, 0 for no limit.`, {
          cause: error,
        });
      }
      log.warn(clock.now().elapsedMs, `${failure} The server tries again.`, {
        event: 'port.bind-failed',
        address: formatHostPort(address),
        reason: sentenceOf(error),
      });
    }
  }
  return undefined;
}

function sentenceOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
