/**
 * Connects to a server at any of its addresses. Each name is resolved anew, because addresses
 * change, and each of its addresses is tried for its share of the time. Dials do not wait for each
 * other.
 *
 * The addresses are tried one after the other. Where a server has several networks
 * (multiAddress.enabled), the next one is tried as soon as the one before has not answered for
 * `staggerMs`, while that one goes on: the first connection counts, and the others are dropped. So
 * an address that answers nothing costs that time and not the whole time of a connection.
 *
 * A refused dial is distinguished from every other failure: only a host that answers, on which
 * nothing listens, says for certain that a server is down. A server with several networks nearly
 * always listens on all of them or on none, so after one refusal the others have `staggerMs` to
 * answer: a dial of a server that does not listen yet must not last until a dead address has had its
 * whole time.
 */
import type { Now } from '@tskeeper/core';
import { formatHostPort, type HostPort, type Millis } from '@tskeeper/protocol';
import type { Endpoint, Network, StreamId } from '../network.ts';

export type DialOutcome =
  /** `host`: the one of the dialled hosts that it is a connection with. */
  | { readonly kind: 'open'; readonly stream: StreamId; readonly remote: Endpoint; readonly host: HostPort }
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
  /** After which the next address is tried as well. Default: never. */
  readonly staggerMs?: Millis | undefined;
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

/** An address of a host. */
interface HostAddress {
  readonly host: HostPort;
  readonly remote: Endpoint;
}

/** A look-up, or a connection that is being made. */
interface Try {
  readonly dial: DialAttempt;
  readonly target: string;
  readonly dueMs: Millis;
  /** Of a connection. */
  readonly address: HostAddress | undefined;
  stream: StreamId | undefined;
}

class DialAttempt implements Dial {
  readonly hosts: readonly HostPort[];
  readonly limits: DialLimits;
  readonly deadlineMs: Millis;
  readonly onDone: (outcome: DialOutcome, now: Now) => void;
  /** Names not resolved yet. */
  readonly names: HostPort[];
  /** Addresses not tried yet. */
  addresses: HostAddress[] = [];
  /** In progress. */
  readonly tries = new Set<Try>();
  /** When the next try begins although one is in progress. */
  staggerDueMs: Millis = Infinity;
  /** When all tries are given up, since an address has refused. */
  refusalDueMs: Millis = Infinity;
  isDone = false;
  failures: string[] = [];
  refusals = 0;

  constructor(hosts: readonly HostPort[], limits: DialLimits, now: Now, onDone: (outcome: DialOutcome, now: Now) => void) {
    this.hosts = hosts;
    this.limits = limits;
    this.deadlineMs = now.elapsedMs + limits.totalMs;
    this.onDone = onDone;
    this.names = [...hosts];
  }

  /** How many names and addresses are left to be tried. */
  get left(): number {
    return this.addresses.length + this.names.length;
  }

  get dueMs(): Millis {
    let due = Math.min(this.staggerDueMs, this.refusalDueMs);
    for (const { dueMs } of this.tries) due = Math.min(due, dueMs);
    return due;
  }
}

export class Dialler {
  readonly #network: Network;
  readonly #runTurn: DiallerDependencies['runTurn'];
  readonly #attempts = new Set<DialAttempt>();
  /**
   * By the stream that is being connected; undefined once the try was given up and only its
   * `closed` is still to come.
   */
  readonly #streams = new Map<StreamId, Try | undefined>();

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
    for (const each of attempt.tries) this.#giveUp(each);
  }

  ownsStream(stream: StreamId): boolean {
    return this.#streams.has(stream);
  }

  connected(stream: StreamId, now: Now): void {
    const made = this.#streams.get(stream);
    if (made === undefined) return;
    this.#streams.delete(stream);
    made.dial.tries.delete(made);
    const { remote, host } = made.address!;
    this.#finish(made.dial, { kind: 'open', stream, remote, host }, now);
  }

  closed(stream: StreamId, error: string | undefined, now: Now): void {
    const made = this.#streams.get(stream);
    this.#streams.delete(stream);
    if (made === undefined) return;
    made.stream = undefined;
    if (error === 'ECONNREFUSED') made.dial.refusals++;
    this.#failed(made, error ?? 'closed', now);
  }

  deadline(): Millis | undefined {
    let due = Infinity;
    for (const { dueMs } of this.#attempts) due = Math.min(due, dueMs);
    return due === Infinity ? undefined : due;
  }

  wake(now: Now): void {
    for (const attempt of this.#attempts) {
      const isRefused = attempt.refusalDueMs <= now.elapsedMs;
      // A failure starts the next try, which has its own time.
      const due = [...attempt.tries].filter(({ dueMs }) => isRefused || dueMs <= now.elapsedMs);
      for (const each of due) if (!attempt.isDone) this.#failed(each, 'no answer', now);
      if (!attempt.isDone && attempt.staggerDueMs <= now.elapsedMs) this.#next(attempt, now);
    }
  }

  cancelAll(): void {
    for (const attempt of this.#attempts) this.cancel(attempt);
  }

  #failed(failed: Try, reason: string, now: Now): void {
    const { dial, target } = failed;
    this.#giveUp(failed);
    dial.failures.push(`${target} (${reason})`);
    this.#next(dial, now);
  }

  /** Starts the next try; without one the dial has failed as soon as none is in progress. */
  #next(attempt: DialAttempt, now: Now): void {
    const { limits, deadlineMs, left } = attempt;
    const timeMs = Math.min(limits.attemptMs, (deadlineMs - now.elapsedMs) / Math.max(1, left));
    attempt.staggerDueMs = Infinity;
    if (left === 0 || timeMs <= 0) {
      if (attempt.tries.size > 0) this.#limitWait(attempt, now);
      else
        this.#finish(
          attempt,
          { kind: 'failed', refused: left === 0 && attempt.refusals === attempt.failures.length, reason: attempt.failures.join(', ') },
          now,
        );
      return;
    }
    const dueMs = now.elapsedMs + timeMs;
    const address = attempt.addresses.shift();
    if (address === undefined) this.#resolve(attempt, attempt.names.shift()!, dueMs);
    else this.#connect(attempt, address, dueMs);
    if (limits.staggerMs !== undefined && attempt.left > 0) attempt.staggerDueMs = now.elapsedMs + limits.staggerMs;
    this.#limitWait(attempt, now);
  }

  /** The last address is being tried; one that refused tells what it would. */
  #limitWait(attempt: DialAttempt, now: Now): void {
    const { left, refusals, limits } = attempt;
    if (left > 0 || refusals === 0 || limits.staggerMs === undefined) return;
    attempt.refusalDueMs = Math.min(attempt.refusalDueMs, now.elapsedMs + limits.staggerMs);
  }

  #connect(dial: DialAttempt, address: HostAddress, dueMs: Millis): void {
    const { remote } = address;
    const target = formatHostPort({ host: remote.address, port: remote.port });
    const made: Try = { dial, target, dueMs, address, stream: this.#network.connect(remote) };
    dial.tries.add(made);
    this.#streams.set(made.stream!, made);
  }

  #resolve(dial: DialAttempt, name: HostPort, dueMs: Millis): void {
    const lookUp: Try = { dial, target: formatHostPort(name), dueMs, address: undefined, stream: undefined };
    dial.tries.add(lookUp);
    const isWanted = (): boolean => !dial.isDone && dial.tries.has(lookUp);
    const onResolved = (addresses: readonly string[], reason: string): void => {
      if (!isWanted()) return;
      this.#runTurn((now) => {
        if (isWanted()) this.#resolved(lookUp, name, addresses, reason, now);
      });
    };
    this.#network.resolve(name.host).then(
      (addresses) => onResolved(addresses, 'the name has no address'),
      (error: unknown) => onResolved([], error instanceof Error ? error.message : String(error)),
    );
  }

  #resolved(lookUp: Try, host: HostPort, addresses: readonly string[], reason: string, now: Now): void {
    const { dial } = lookUp;
    if (addresses.length === 0) {
      this.#failed(lookUp, reason, now);
      return;
    }
    dial.tries.delete(lookUp);
    // Its addresses have their time, too.
    dial.refusalDueMs = Infinity;
    dial.addresses.push(...[...new Set(addresses)].map((address) => ({ host, remote: { address, port: host.port } })));
    this.#next(dial, now);
  }

  #giveUp(each: Try): void {
    each.dial.tries.delete(each);
    const { stream } = each;
    if (stream === undefined) return;
    each.stream = undefined;
    this.#streams.set(stream, undefined);
    this.#network.reset(stream);
  }

  #finish(attempt: DialAttempt, outcome: DialOutcome, now: Now): void {
    attempt.isDone = true;
    this.#attempts.delete(attempt);
    for (const each of attempt.tries) this.#giveUp(each);
    attempt.onDone(outcome, now);
  }
}
