/**
 * Connects to a server at any of its addresses, one after the other: each name is resolved anew,
 * because addresses change, and each of its addresses is tried for its share of the time. Dials do
 * not wait for each other.
 *
 * A refused dial is distinguished from every other failure: only a host that answers, on which
 * nothing listens, says for certain that a server is down.
 */
import type { Now } from '@tskeeper/core';
import { formatHostPort, type HostPort, type Millis } from '@tskeeper/protocol';
import type { Endpoint, Network, StreamId } from '../network.ts';

export type DialOutcome =
  | { readonly kind: 'open'; readonly stream: StreamId; readonly remote: Endpoint }
  /**
   * `refused`: every address was tried, and refused. `reason` names each address that was tried,
   * and its result.
   */
  | { readonly kind: 'failed'; readonly refused: boolean; readonly reason: string };

export interface DialLimits {
  /** For one look-up, or for one address. */
  readonly attemptMs: Millis;
  /** For all of them together, shared evenly among the remaining ones; Infinity: no limit. */
  readonly totalMs: Millis;
}

export interface DiallerDependencies {
  readonly network: Network;
  /** Runs work in a turn of its own: the result of a look-up. */
  readonly runTurn: (work: (now: Now) => void) => void;
}

/** A dial in progress. */
export interface Dial {
  readonly hosts: readonly HostPort[];
}

class DialAttempt implements Dial {
  readonly hosts: readonly HostPort[];
  readonly limits: DialLimits;
  readonly deadlineMs: Millis;
  readonly onDone: (outcome: DialOutcome, now: Now) => void;
  /** Names not resolved yet. */
  readonly names: HostPort[];
  /** Addresses not tried yet. */
  addresses: Endpoint[] = [];
  /** Of the address that is being tried. */
  stream: StreamId | undefined;
  remote: Endpoint | undefined;
  target = '';
  dueMs: Millis = Infinity;
  isDone = false;
  /** Incremented with each step, which identifies a late look-up. */
  step = 0;
  failures: string[] = [];
  refusals = 0;

  constructor(hosts: readonly HostPort[], limits: DialLimits, now: Now, onDone: (outcome: DialOutcome, now: Now) => void) {
    this.hosts = hosts;
    this.limits = limits;
    this.deadlineMs = now.elapsedMs + limits.totalMs;
    this.onDone = onDone;
    this.names = [...hosts];
  }
}

export class Dialler {
  readonly #network: Network;
  readonly #runTurn: DiallerDependencies['runTurn'];
  readonly #attempts = new Set<DialAttempt>();
  /**
   * By the stream that is being connected; undefined once the attempt was given up and only its
   * `closed` is still to come.
   */
  readonly #streams = new Map<StreamId, DialAttempt | undefined>();

  constructor(parts: DiallerDependencies) {
    this.#network = parts.network;
    this.#runTurn = parts.runTurn;
  }

  /**
   * Starts a dial. `onDone` is called once, never from inside this call; not at all if the dial is
   * cancelled before. `hosts` is not empty.
   */
  dial(hosts: readonly HostPort[], limits: DialLimits, now: Now, onDone: (outcome: DialOutcome, now: Now) => void): Dial {
    const attempt = new DialAttempt(hosts, limits, now, onDone);
    this.#attempts.add(attempt);
    this.#next(attempt, now);
    return attempt;
  }

  cancel(dial: Dial): void {
    const attempt = dial as DialAttempt;
    attempt.isDone = true;
    this.#attempts.delete(attempt);
    this.#resetStream(attempt);
  }

  ownsStream(stream: StreamId): boolean {
    return this.#streams.has(stream);
  }

  connected(stream: StreamId, now: Now): void {
    const attempt = this.#streams.get(stream);
    if (attempt === undefined) return;
    this.#streams.delete(stream);
    attempt.stream = undefined;
    this.#finish(attempt, { kind: 'open', stream, remote: attempt.remote! }, now);
  }

  closed(stream: StreamId, error: string | undefined, now: Now): void {
    const attempt = this.#streams.get(stream);
    this.#streams.delete(stream);
    if (attempt === undefined) return;
    attempt.stream = undefined;
    if (error === 'ECONNREFUSED') attempt.refusals++;
    this.#failed(attempt, error ?? 'closed', now);
  }

  deadline(): Millis | undefined {
    let due = Infinity;
    for (const { dueMs } of this.#attempts) due = Math.min(due, dueMs);
    return due === Infinity ? undefined : due;
  }

  wake(now: Now): void {
    for (const attempt of this.#attempts) {
      if (attempt.dueMs > now.elapsedMs) continue;
      this.#resetStream(attempt);
      this.#failed(attempt, 'no answer', now);
    }
  }

  cancelAll(): void {
    for (const attempt of this.#attempts) this.cancel(attempt);
  }

  #failed(attempt: DialAttempt, reason: string, now: Now): void {
    attempt.failures.push(`${attempt.target} (${reason})`);
    this.#next(attempt, now);
  }

  #next(attempt: DialAttempt, now: Now): void {
    const step = ++attempt.step;
    const left = attempt.addresses.length + attempt.names.length;
    const timeMs = Math.min(attempt.limits.attemptMs, (attempt.deadlineMs - now.elapsedMs) / Math.max(1, left));
    if (left === 0 || timeMs <= 0) {
      const { failures, refusals } = attempt;
      this.#finish(attempt, { kind: 'failed', refused: left === 0 && refusals === failures.length, reason: failures.join(', ') }, now);
      return;
    }
    attempt.dueMs = now.elapsedMs + timeMs;
    const address = attempt.addresses.shift();
    if (address !== undefined) {
      attempt.target = formatHostPort({ host: address.address, port: address.port });
      attempt.remote = address;
      attempt.stream = this.#network.connect(address);
      this.#streams.set(attempt.stream, attempt);
      return;
    }
    const name = attempt.names.shift()!;
    attempt.target = formatHostPort(name);
    const onResolved = (addresses: readonly string[], reason: string): void => {
      if (attempt.isDone || attempt.step !== step) return;
      this.#runTurn((then) => this.#resolved(attempt, step, name, addresses, reason, then));
    };
    this.#network.resolve(name.host).then(
      (addresses) => onResolved(addresses, 'the name has no address'),
      (error: unknown) => onResolved([], error instanceof Error ? error.message : String(error)),
    );
  }

  #resolved(attempt: DialAttempt, step: number, { port }: HostPort, addresses: readonly string[], reason: string, now: Now): void {
    if (attempt.isDone || attempt.step !== step) return;
    if (addresses.length === 0) {
      this.#failed(attempt, reason, now);
      return;
    }
    attempt.addresses = [...new Set(addresses)].map((address) => ({ address, port }));
    this.#next(attempt, now);
  }

  #resetStream(attempt: DialAttempt): void {
    const { stream } = attempt;
    if (stream === undefined) return;
    attempt.stream = undefined;
    this.#streams.set(stream, undefined);
    this.#network.reset(stream);
  }

  #finish(attempt: DialAttempt, outcome: DialOutcome, now: Now): void {
    attempt.isDone = true;
    this.#attempts.delete(attempt);
    attempt.onDone(outcome, now);
  }
}
