/**
 * Where a server listens for clients. A reconfiguration gives it another address while it runs: it
 * then listens at the new one and no longer at the old one, and connected clients stay.
 *
 * One move follows the other, and only the last address counts. While the new address cannot be
 * used the server goes on at the old one and tries again.
 */
import { formatHostPort, type HostPort, isWildcardHost, type Millis } from '@tskeeper/protocol';
import type { Clock } from './clock.ts';
import type { Logger } from './logger.ts';
import type { Endpoint, Listener, Network } from './network.ts';
import { waitForOwnName } from './ports/bind-listener.ts';
import { RateLimitedLog } from './ports/rate-limited-log.ts';
import { replaceListeners } from './ports/replace-listeners.ts';
import type { ServerParts } from './server-parts.ts';

/**
 * Pauses before a move is tried again. A move from one address to all addresses of a port interrupts
 * the port, so it is tried less and less often.
 */
const retryMsMin: Millis = 1000;
const retryMsMax: Millis = 60_000;

export interface ClientListenerDependencies {
  readonly network: Network;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly parts: ServerParts;
  /** Connections that wait to be accepted; undefined: the system's default. */
  readonly backlog: number | undefined;
  /** Called whenever the server listens at another address. */
  readonly onMoved: (endpoint: Endpoint) => void;
}

export class ClientListener {
  readonly #dependencies: ClientListenerDependencies;
  #listener: Listener | undefined;
  /** The numeric address that it was asked for; undefined: all of this machine. */
  #address: string | undefined;
  /** The address of the last configuration that changed it; undefined when the server is there. */
  #wanted: HostPort | undefined;
  #isMoving = false;

  constructor(dependencies: ClientListenerDependencies) {
    this.#dependencies = dependencies;
  }

  get endpoint(): Endpoint {
    return this.#listener!.endpoint;
  }

  /**
   * Listens at the address of the options; `host` is undefined for all addresses. A server of an
   * ensemble waits for its name to resolve, as its other ports do; a standalone server ends, because
   * nothing else would tell of a wrong name. Rejects with a sentence for the operator.
   */
  async start(host: string | undefined, port: number): Promise<void> {
    const { backlog, parts } = this.#dependencies;
    this.#address = host === undefined || parts.ensemble === undefined ? host : await this.#addressOfOwnName({ host, port });
    this.#listener = await parts.clientPort.listen({ address: this.#address, port, backlog });
    // The configuration may have changed meanwhile.
    if (this.#wanted !== undefined) void this.#move();
  }

  async #addressOfOwnName(address: HostPort): Promise<string> {
    const { network, clock, logger, parts } = this.#dependencies;
    const isCancelled = (): boolean => parts.stage === 'ended';
    const numeric = await waitForOwnName(network, clock, new RateLimitedLog(logger), { portName: 'client port', address, isCancelled });
    if (numeric === undefined) throw new Error('the server ended before its name had an address');
    return numeric;
  }

  /** A configuration gives this server another address. */
  follow(address: HostPort): void {
    this.#wanted = address;
    if (this.#listener !== undefined && !this.#isMoving) void this.#move();
  }

  async #move(): Promise<void> {
    this.#isMoving = true;
    let failed: HostPort | undefined;
    let retryMs = retryMsMin;
    while (this.#wanted !== undefined && this.#mayListen()) {
      const address = this.#wanted;
      const isNew = address !== failed;
      if (isNew) retryMs = retryMsMin;
      try {
        await this.#moveTo(address);
        if (this.#wanted === address) this.#wanted = undefined;
      } catch (error) {
        failed = address;
        if (isNew) this.#reportFailure(address, error);
        if (this.#wanted !== address) continue;
        await new Promise<void>((resolve) => void this.#dependencies.clock.after(retryMs, resolve));
        retryMs = Math.min(2 * retryMs, retryMsMax);
      }
    }
    this.#isMoving = false;
  }

  #mayListen(): boolean {
    return this.#dependencies.parts.stage === 'serving';
  }

  async #moveTo(wanted: HostPort): Promise<void> {
    const { network, backlog, logger, parts, onMoved } = this.#dependencies;
    const { clientPort } = parts;
    const { host, port } = wanted;
    const numeric = isWildcardHost(host) ? undefined : (await network.resolve(host))[0];
    if (numeric === undefined && !isWildcardHost(host)) throw new Error(`the name ${host} has no address.`);
    if (this.#wanted !== wanted || !this.#mayListen()) return;
    const before = this.#listener!;
    if (clientPort.owns(before) && before.endpoint.port === port && numeric === this.#address) return;
    const replacement = await replaceListeners(clientPort, [before], { address: numeric, port, backlog });
    this.#listener = replacement.kind === 'replaced' ? replacement.listener : replacement.listeners[0]!;
    if (!this.#mayListen()) return clientPort.stopListeningAt(this.#listener);
    if (replacement.kind === 'kept') throw replacement.error;
    this.#address = numeric;
    const { endpoint } = this.#listener;
    onMoved(endpoint);
    const moved = formatHostPort({ host: endpoint.address, port: endpoint.port });
    logger.info(`The new configuration has this server listen for clients on ${moved}.`, { event: 'client-port.moved', address: moved });
  }

  #reportFailure(address: HostPort, error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    this.#dependencies.logger.error(
      `This server does not listen for clients on ${formatHostPort(address)}, as the new configuration says: ${reason} ` +
        'It goes on at its old address, and moves when the new one is free.',
      { event: 'port.unavailable', reason },
    );
  }
}
