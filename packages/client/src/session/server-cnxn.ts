/**
 * The connection of a session: looks up and dials the server that the machine names, carries bytes
 * both ways, and creates the tokens of the SASL exchange. It makes no decisions.
 *
 * There is one attempt at a time. A look-up takes the place of its connection, and is dropped like
 * one.
 */
import type { SaslExchange } from '../auth/sasl.ts';
import type { ResolvedAddress, ServerAddress } from '../transport.ts';
import { CnxnAttempt, type CnxnAttemptSink, systemErrorTextOf } from './cnxn-attempt.ts';
import type { MachineDriver } from './machine-driver.ts';
import type { SessionEnvironment } from './session-environment.ts';
import type { CnxnOutput } from './session-output.ts';

export class ServerCnxn implements CnxnOutput, CnxnAttemptSink {
  readonly #environment: SessionEnvironment;
  readonly #driver: MachineDriver;
  #attempt: CnxnAttempt | undefined;
  /** The SASL exchange of the current connection. */
  #saslExchange: SaslExchange | undefined;

  constructor(environment: SessionEnvironment, driver: MachineDriver) {
    this.#environment = environment;
    this.#driver = driver;
  }

  // --- Look-ups

  resolve(host: string): void {
    void this.#lookUp(
      () => this.#environment.transport.resolve!(host),
      (addresses) => this.#driver.machine.addressesResolved(addresses, this.#driver.nowMs),
    );
  }

  resolveSrv(name: string): void {
    void this.#lookUp(
      () => this.#environment.transport.resolveSrv!(name),
      (records) => this.#driver.machine.srvResolved(records, this.#driver.nowMs),
    );
  }

  async #lookUp<Found>(find: () => Promise<Found>, found: (what: Found) => void): Promise<void> {
    const attempt = new CnxnAttempt(this);
    this.#attempt = attempt;
    let what: Found;
    try {
      // Wait a turn, as the machine must not be called back during one of its own calls, and a
      // transport may throw.
      what = await Promise.resolve().then(find);
    } catch (error) {
      attempt.closed(systemErrorTextOf(error));
      return;
    }
    if (attempt.isDropped) return;
    this.#attempt = undefined;
    found(what);
    this.#driver.armTimer();
  }

  // --- The connection

  dial(address: ResolvedAddress): void {
    this.#attempt = new CnxnAttempt(this);
    this.#attempt.connect(this.#environment.transport, address);
  }

  send(bytes: Buffer): void {
    this.#attempt?.cnxn?.send(bytes);
  }

  closeCnxn(gracefully: boolean): void {
    const attempt = this.#attempt;
    if (attempt === undefined) return;
    this.#attempt = undefined;
    attempt.isDropped = true;
    if (gracefully) attempt.cnxn?.end();
    else attempt.cnxn?.destroy();
  }

  cnxnOpened(): void {
    this.#driver.machine.cnxnOpened(this.#driver.nowMs);
    this.#driver.armTimer();
  }

  received(bytes: Buffer): void {
    this.#driver.machine.received(bytes, this.#driver.nowMs);
    this.#driver.armTimer();
  }

  cnxnClosed(error: string | undefined): void {
    this.#attempt = undefined;
    this.#driver.machine.cnxnClosed(error, this.#driver.nowMs);
    this.#driver.armTimer();
  }

  // --- SASL

  startSasl(server: ServerAddress): void {
    this.#saslExchange = this.#environment.sasl!.startExchange(server);
    void this.#saslStep((exchange) => exchange.firstToken());
  }

  continueSasl(challenge: Buffer | null): void {
    void this.#saslStep((exchange) => exchange.nextToken(challenge));
  }

  /**
   * Creates the next token of the SASL exchange. The machine gets it from the event loop, and only
   * while its connection lasts.
   */
  async #saslStep(step: (exchange: SaslExchange) => ReturnType<SaslExchange['nextToken']>): Promise<void> {
    const attempt = this.#attempt;
    const exchange = this.#saslExchange!;
    const { machine } = this.#driver;
    try {
      await Promise.resolve();
      const token = await step(exchange);
      if (this.#attempt === attempt) machine.saslToken(token, this.#driver.nowMs);
    } catch (error) {
      if (this.#attempt === attempt)
        machine.saslFailed(`SASL ${this.#environment.sasl!.name}: ${error instanceof Error ? error.message : String(error)}`);
    }
    this.#driver.armTimer();
  }
}
