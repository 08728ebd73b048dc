/**
 * One attempt at a server, up to an open connection: resolves the SRV name, then the name of the
 * server, and dials one of its addresses, as the dial plan says.
 *
 *     start ─> resolveSrv ─> resolve ─> dial ─> open
 *                    └─ failed: continues with the previous list of servers
 */
import type { Millis } from '@tskeeper/protocol';
import type { ResolvedAddress, SrvRecord } from '../transport.ts';
import type { DialPlan, DialStep } from './dial-plan.ts';
import type { NegotiatedSession } from './negotiated-session.ts';
import { connectTimeoutMs } from './timings.ts';

export interface AttemptOutput {
  /** Resolve a name; then call `addressesResolved` or `cnxnClosed`. */
  resolve(host: string): void;
  /** Resolve an SRV name; then call `srvResolved` or `cnxnClosed`. */
  resolveSrv(name: string): void;
  dial(address: ResolvedAddress): void;
}

const stepNames = { resolveSrv: 'SRV lookup', resolve: 'address lookup', dial: 'connection' } as const;

export class ServerAttempt {
  readonly #dialPlan: DialPlan;
  readonly #session: NegotiatedSession;
  readonly #output: AttemptOutput;
  #step: DialStep['kind'] = 'dial';
  #stepStartMs: Millis = 0;

  constructor(dialPlan: DialPlan, session: NegotiatedSession, output: AttemptOutput) {
    this.#dialPlan = dialPlan;
    this.#session = session;
    this.#output = output;
  }

  /** The current step, or the last one. */
  get step(): DialStep['kind'] {
    return this.#step;
  }

  /** The time for one step; for the last one up to the end of the handshake. */
  get timeoutMs(): Millis {
    const { servers, addresses } = this.#dialPlan.shares;
    return connectTimeoutMs(this.#session.effectiveTimeoutMs, servers, addresses);
  }

  get deadlineMs(): Millis {
    return this.#stepStartMs + this.timeoutMs;
  }

  start(nowMs: Millis): void {
    this.#run(this.#dialPlan.nextStep(), nowMs);
  }

  #run(step: DialStep, nowMs: Millis): void {
    this.#stepStartMs = nowMs;
    this.#step = step.kind;
    switch (step.kind) {
      case 'resolveSrv':
        this.#output.resolveSrv(step.name);
        break;
      case 'resolve':
        this.#output.resolve(step.host);
        break;
      case 'dial':
        this.#output.dial(step.address);
        break;
    }
  }

  // Each method below ends a step. It returns why the attempt has failed; undefined: the next step
  // has started.

  addressesResolved(addresses: readonly string[], nowMs: Millis): string | undefined {
    const step = this.#dialPlan.addressesResolved(addresses);
    if (step === undefined) return `the name ${this.#dialPlan.server!.host} has no address`;
    this.#run(step, nowMs);
    return undefined;
  }

  srvResolved(records: readonly SrvRecord[], nowMs: Millis): string | undefined {
    const step = this.#dialPlan.srvResolved(records);
    if (step === undefined) return this.#fail('SRV lookup found no servers', nowMs);
    this.#run(step, nowMs);
    return undefined;
  }

  stepFailed(error: string | undefined, nowMs: Millis): string | undefined {
    return this.#fail(`${stepNames[this.#step]} failed${error === undefined ? '' : `: ${error}`}`, nowMs);
  }

  stepTimedOut(nowMs: Millis): string | undefined {
    const what = this.#step === 'dial' ? 'opening the session' : stepNames[this.#step];
    return this.#fail(`${what} timed out after ${this.timeoutMs} ms`, nowMs);
  }

  #fail(reason: string, nowMs: Millis): string | undefined {
    const step = this.#step === 'resolveSrv' ? this.#dialPlan.srvLookupFailed() : undefined;
    if (step === undefined) return reason;
    this.#run(step, nowMs);
    return undefined;
  }
}
