/**
 * A lease, from when it was had until its end, `release`, or the loss.
 *
 *     held ──its time is over──> lost                     without a word from any server
 *     held ──renew, or a write, finds it taken──> lost    by one with the same name, by kazoo whose clock is ahead, or by hand
 *     held ──release──> released
 */
import {
  type CallOptions,
  type ClientView,
  formatSessionId,
  KeeperError,
  op,
  type Stat,
  type TimerHandle,
  type WriteOp,
  type WriteResults,
} from '@tskeeper/client';
import { CallForm, callKinds, optionKinds } from '@tskeeper/client/internal';
import { type Inspect, inspected } from '../inspection.ts';
import { checkCount, checkMulti, surplusOf } from '../given.ts';
import { RecipeError } from '../recipe-error.ts';
import { callIn, clientOf, mayBeDone, type SessionSource } from '../sessions/session-source.ts';
import { fenced } from '../line/fenced.ts';
import { isUnanswered } from '../waiting/unanswered.ts';
import { textOf } from './lease-record.ts';

export interface HeldLeaseSettings {
  readonly source: SessionSource;
  readonly path: string;
  readonly holderPath: string;
  readonly holder: string;
  readonly durationMs: number;
  readonly token: bigint;
  /** Of `lease_holder`, as it was written. */
  readonly record: Pick<Stat, 'czxid' | 'version'>;
  /** Before the request went out by which the leader told the time. */
  readonly askedAtMs: number;
}

const renewForm = new CallForm('renew(options)', optionKinds(callKinds.call));

/** A lease that is held. It does not belong to a session: it goes on, and ends, whether there is a connection or not; with `Sessions` it is renewed in the next session as well. */
export class HeldLease implements AsyncDisposable {
  /** The znode that stands for the hold: it is gone before anybody else holds the lease. */
  readonly path: string;
  /** As `Held.fencingToken`: grows from holder to holder. */
  readonly fencingToken: bigint;
  readonly #settings: HeldLeaseSettings;
  readonly #end = new AbortController();
  #endsAtMs = 0;
  /** Of `lease_holder`, as far as is known. */
  #version: number;
  #timer: TimerHandle | undefined;
  #state: 'held' | 'lost' | 'released' = 'held';
  #released: Promise<void> | undefined;

  /** Made by `Lease`. */
  constructor(settings: HeldLeaseSettings) {
    this.path = settings.path;
    this.fencingToken = settings.token;
    this.#settings = settings;
    this.#version = settings.record.version;
    this.#runFrom(settings.askedAtMs);
  }

  /** `held` until its time is over, or `renew` or `multi` finds that somebody else has it, which makes it `lost`; or until `release`. */
  get state(): 'held' | 'lost' | 'released' {
    return this.#state;
  }

  /** Milliseconds until its end, if it is not renewed; 0 when it is over. */
  get leftMs(): number {
    return this.#state === 'held' ? Math.max(0, this.#endsAtMs - this.#settings.source.clock.now().elapsedMs) : 0;
  }

  /** Aborted when its time is over, or it is lost, with a RecipeError, Lost, as its reason; not by `release`. */
  get signal(): AbortSignal {
    return this.#end.signal;
  }

  /** Writes only as long as nobody else has got the lease: as `Held.multi`, and rejects as that does; when somebody has, it is lost. */
  async multi<const Ops extends readonly WriteOp[]>(ops: Ops, options: CallOptions = {}): Promise<WriteResults<Ops>> {
    checkCount(arguments.length, 2, 'multi(ops, options)');
    checkMulti(ops, options);
    const { source, holderPath } = this.#settings;
    const results = await callIn(
      source,
      `an answer about the lease ${this.path}`,
      options,
      (zk, within) => this.#write(zk, (version) => [...ops, op.check(holderPath, { version })], ops.length, within),
      mayBeDone,
    );
    return results.slice(0, ops.length) as unknown as WriteResults<Ops>;
  }

  /**
   * Holds it for its duration from now on. Rejects with a RecipeError, Lost, when it is over, or somebody else has it; and as `Client.multi` does, in which case it
   * lasts as long as it would have.
   */
  async renew(options: CallOptions = {}): Promise<void> {
    renewForm.check(arguments.length, options);
    if (this.#state !== 'held') throw this.#over();
    const { source, holder, holderPath, durationMs } = this.#settings;
    const askedAtMs = source.clock.now().elapsedMs;
    try {
      const [written] = await callIn(source, `an answer about the lease ${this.path}`, options, async (zk, within) => {
        const { mtime } = await zk.setData(this.path, holder, { ...within, idempotent: true });
        const data = textOf({ holder, endMs: mtime + durationMs });
        return await this.#write(zk, (version) => [op.setData(holderPath, data, { version })] as const, 0, within);
      });
      this.#version = written.stat.version;
    } catch (error) {
      throw KeeperError.is(error, 'NoNode') ? this.#taken() : error;
    }
    if (this.#state !== 'held') throw this.#over();
    this.#runFrom(askedAtMs);
  }

  /**
   * Gives it back, so that others need not wait for its end. Where no server can be reached it is left to its end. A second call waits for the first. Rejects with
   * NoAuth only.
   */
  release(): Promise<void> {
    const surplus = surplusOf(arguments.length, 0, 'release()');
    if (surplus !== undefined) return Promise.reject(surplus);
    this.#released ??= this.#giveBack();
    return this.#released;
  }

  /** What `console.log` shows. */
  [Symbol.for('nodejs.util.inspect.custom')](_depth: unknown, options: unknown, inspect: Inspect): string {
    const { state, path, fencingToken, leftMs } = this;
    const { sessionId } = clientOf(this.#settings.source);
    return inspected(this, { state, path, fencingToken, leftMs, sessionId: formatSessionId(sessionId) }, options, inspect);
  }

  /** As `release`, and rejects as that does. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  async #giveBack(): Promise<void> {
    if (this.#state !== 'held') return;
    this.#state = 'released';
    this.#stopTimer();
    const { source, holderPath } = this.#settings;
    for (;;) {
      const zk = clientOf(source);
      try {
        await zk.multi([op.delete(this.path), op.delete(holderPath, { version: this.#version })]);
        return;
      } catch (error) {
        if (!KeeperError.is(error)) throw error;
        // No answer: carried out once more it does no harm, as the name of our znode is never used twice.
        if (isUnanswered(error)) continue;
        if (error.code === 'BadVersion' && (await this.#readsRecord(zk).catch(() => false))) continue;
        // Others have taken it, or it will end.
        if (KeeperError.is(error, 'NoNode', 'BadVersion', 'SessionExpired', 'SessionMoved', 'AuthFailed') || error.retryable) return;
        throw error;
      }
    }
  }

  /**
   * Others of this package delete the znode of the hold before they write the record. kazoo does not know that znode: it deletes the record and makes another. So
   * both are checked: what `make` gives for a version, whose operation at `at` is carried out with a record of that version only.
   */
  async #write<const Ops extends readonly WriteOp[]>(
    zk: ClientView,
    make: (version: number) => Ops,
    at: number,
    options: CallOptions,
  ): Promise<WriteResults<Ops>> {
    for (;;) {
      try {
        return await fenced(zk, make(this.#version), [this.path], options);
      } catch (error) {
        if (error instanceof RecipeError && error.code === 'Lost') throw this.#taken();
        if (!KeeperError.is(error, 'BadVersion', 'NoNode') || error.failedIndex !== at) throw error;
      }
      if (!(await this.#readsRecord(zk, options))) throw this.#taken();
    }
  }

  /**
   * Whether the record is the one that was written, in a version that is known from here on: of a renewal whose answer was lost; or by another of this package,
   * and then the znode of the hold is gone.
   */
  async #readsRecord(zk: ClientView, { signal, timeoutMs }: CallOptions = {}): Promise<boolean> {
    const { holderPath, record } = this.#settings;
    const now = await zk.exists(holderPath, { signal, timeoutMs });
    if (now?.czxid !== record.czxid) return false;
    this.#version = now.version;
    return true;
  }

  #taken(): unknown {
    this.#lose(`somebody else has taken ${this.#settings.holderPath}`);
    return this.#over();
  }

  #runFrom(askedAtMs: number): void {
    const { durationMs } = this.#settings;
    const { clock } = this.#settings.source;
    this.#stopTimer();
    this.#endsAtMs = askedAtMs + durationMs;
    this.#timer = clock.after(Math.max(0, this.#endsAtMs - clock.now().elapsedMs), () => this.#lose('its time is over'));
  }

  #lose(reason: string): void {
    if (this.#state !== 'held') return;
    this.#state = 'lost';
    this.#stopTimer();
    this.#end.abort(new RecipeError('Lost', `the lease ${this.path} is over: ${reason}`));
  }

  #over(): unknown {
    return this.#end.signal.reason ?? new RecipeError('Lost', `the lease ${this.path} is ${this.#state}`);
  }

  #stopTimer(): void {
    if (this.#timer !== undefined) this.#settings.source.clock.cancel(this.#timer);
    this.#timer = undefined;
  }
}
