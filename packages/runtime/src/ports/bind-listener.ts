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

/**
 * Resolves with undefined when `isCancelled()` before the port is bound. Rejects with a sentence
 * for the operator.
 */
export async function bindListener(
  network: Network,
  clock: Pick<Clock, 'now' | 'after'>,
  log: RateLimitedLog,
  options: BindOptions,
): Promise<Listener | undefined> {
  const { portName, address, attemptsMax, isCancelled } = options;
  const pause = (): Promise<void> => new Promise((resolve) => void clock.after(pauseMs, resolve));
  for (let tries = 0; !isCancelled(); await pause()) {
    let numeric: string | undefined;
    try {
      numeric = isWildcardHost(address.host) ? undefined : (await network.resolve(address.host))[0];
    } catch (error) {
      log.warn(clock.now().elapsedMs, `The ${portName} waits for its address, ${formatHostPort(address)}: ${sentenceOf(error)}`, {
        event: 'port.waits-for-name',
        address: formatHostPort(address),
        reason: sentenceOf(error),
      });
      continue;
    }
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
