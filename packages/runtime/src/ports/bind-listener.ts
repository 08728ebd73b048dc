/**
 * Listens where a server of an ensemble must be reachable. At a start the name of its address may not be known yet, and the port may still be
 * held by the process before; so both are tried again. A name is waited for as long as it takes (ZOOKEEPER-3320, -3991, -4728: a server that
 * gave up on it never listened again), a port as often as the operator says.
 */
import { formatHostPort, type HostPort, isWildcardHost, type Millis } from '@tskeeper/protocol';
import type { Clock } from '../clock.ts';
import type { Listener, Network } from '../network.ts';
import type { LimitedLog } from './limited-log.ts';

export interface BindOptions {
  /** What is bound, for sentences: "election port". */
  readonly what: string;
  /** A wildcard host stands for every address of this machine. */
  readonly address: HostPort;
  /** zookeeper.electionPortBindRetry: how often it is tried; 0 = until it works. */
  readonly triesMax: number;
  /** Whether nobody needs it any more. */
  readonly isOver: () => boolean;
}

/** A port to other servers that could not be had. The message is for the operator: what, where, and how often it was tried. */
export class BindError extends Error {
  override readonly name = 'BindError';
}

/** As long as ZooKeeper's listener waits. */
const pauseMs: Millis = 1000;

/** Resolves with undefined when it is over before the port could be bound. Rejects with a sentence for the operator. */
export async function bindListener(
  network: Network,
  clock: Pick<Clock, 'now' | 'after'>,
  log: LimitedLog,
  options: BindOptions,
): Promise<Listener | undefined> {
  const { what, address, triesMax, isOver } = options;
  const pause = (): Promise<void> => new Promise((resolve) => void clock.after(pauseMs, resolve));
  for (let tries = 0; !isOver(); await pause()) {
    let numeric: string | undefined;
    try {
      numeric = isWildcardHost(address.host) ? undefined : (await network.resolve(address.host))[0];
    } catch (error) {
      log.warn(clock.now().elapsedMs, `The ${what} waits for its address, ${formatHostPort(address)}: ${sentenceOf(error)}`, {
        event: 'port.waits-for-name',
        address: formatHostPort(address),
        reason: sentenceOf(error),
      });
      continue;
    }
    if (isOver()) break;
    try {
      const listener = await network.listen({ address: numeric, port: address.port, backlog: undefined, forServers: true });
      if (!isOver()) return listener;
      await listener.close();
      return undefined;
    } catch (error) {
      const said = `The ${what}, ${formatHostPort(address)}, could not be bound: ${sentenceOf(error)}`;
      if (++tries === triesMax) {
        throw new BindError(`${said} It was tried ${tries} times; zookeeper.electionPortBindRetry says how often, 0 for ever.`, {
          cause: error,
        });
      }
      log.warn(clock.now().elapsedMs, `${said} It will be tried again.`, {
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
