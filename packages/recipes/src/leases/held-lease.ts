/**
 * A lease, from its acquisition until its end, `release`, or the loss.
 *
 *     held ──expires──> lost                              without a message from any server
 *     held ──renew or a write finds it taken──> lost      by a holder of the same name, by kazoo
 *                                                         with a clock ahead of ours, or by hand
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
import { CallSignature, callOptionTypes, optionTypes } from '@tskeeper/client/internal';
import { type InspectFunction, inspectObject } from '../inspect-custom.ts';
import { checkArgumentCount, checkMulti, argumentCountError } from '../validation.ts';
import { RecipeError } from '../recipe-error.ts';
import { callAcrossSessions, currentClient, mayHaveBeenApplied, type SessionSource } from '../sessions/session-source.ts';
import { fencedMulti } from '../wait-queue/fenced-multi.ts';
import { isUnanswered } from '../waiting/own-znode.ts';
import { formatRecord } from './lease-record.ts';

export interface HeldLeaseSettings {
  readonly source: SessionSource;
  readonly path: string;
  readonly holderPath: string;
  readonly holder: string;
  readonly durationMs: number;
  readonly fencingToken: bigint;
  /** Of `lease_holder`, as written. */
  readonly record: Pick<Stat, 'czxid' | 'version'>;
  /** The time before the request whose reply had the leader's time was sent. */
  readonly requestedAtMs: number;
}

const renewSignature = new CallSignature('renew(options)', optionTypes(callOptionTypes.call));

/**
 * A lease that is held. It does not belong to a session: it continues, and ends, whether or not
 * there is a connection; with `Sessions` it can be renewed in the next session.
 */
export class HeldLease implements AsyncDisposable {
  /** The znode of the hold: it is deleted before another process holds the lease. */
  readonly path: string;
  /** As `Hold.fencingToken`: grows from holder to holder. */
  readonly fencingToken: bigint;
  readonly #settings: HeldLeaseSettings;
  readonly #endController = new AbortController();
  #endsAtMs = 0;
  /** Of `lease_holder`, as far as this client knows. */
  #version: number;
  #timer: TimerHandle | undefined;
  #state: 'held' | 'lost' | 'released' = 'held';
  #released: Promise<void> | undefined;

  /** Made by `Lease`. */
  constructor(settings: HeldLeaseSettings) {
    this.path = settings.path;
    this.fencingToken = settings.fencingToken;
    this.#settings = settings;
    this.#version = settings.record.version;
    this.#startTimer(settings.requestedAtMs);
  }

  /**
   * `held` until it expires, or until `renew` or `multi` finds that another process has it, which
   * makes it `lost`; or until `release`.
   */
  get state(): 'held' | 'lost' | 'released' {
    return this.#state;
  }

  /** Milliseconds until its end, if it is not renewed; 0 when it is over. */
  get remainingMs(): number {
    return this.#state === 'held' ? Math.max(0, this.#endsAtMs - this.#settings.source.clock.now().elapsedMs) : 0;
  }

  /**
   * Aborted when it expires or is lost, with a RecipeError, Lost, as its reason; not by `release`.
   */
  get signal(): AbortSignal {
    return this.#endController.signal;
  }

  /**
   * Writes only while no other process has acquired the lease: as `Hold.multi`, and rejects as that
   * does; if another one has, the lease is lost.
   */
  async multi<const Ops extends readonly WriteOp[]>(ops: Ops, options: CallOptions = {}): Promise<WriteResults<Ops>> {
    checkArgumentCount(arguments.length, 2, 'multi(ops, options)');
    checkMulti(ops, options);
    const { source, holderPath } = this.#settings;
    const results = await callAcrossSessions(
      source,
      `a reply about lease ${this.path}`,
      options,
      (zk, within) => this.#writeFenced(zk, (version) => [...ops, op.check(holderPath, { version })], ops.length, within),
      mayHaveBeenApplied,
    );
    return results.slice(0, ops.length) as unknown as WriteResults<Ops>;
  }

  /**
   * Holds it for its duration from now on. Rejects with a RecipeError, Lost, when it is over or
   * another process has it; and as `Client.multi` does, and then its end stays as it was.
   */
  async renew(options: CallOptions = {}): Promise<void> {
    renewSignature.check(arguments.length, options);
    if (this.#state !== 'held') throw this.#endError();
    const { source, holder, holderPath, durationMs } = this.#settings;
    const askedAtMs = source.clock.now().elapsedMs;
    try {
      const [written] = await callAcrossSessions(source, `a reply about lease ${this.path}`, options, async (zk, within) => {
        const { mtime } = await zk.setData(this.path, holder, { ...within, idempotent: true });
        const data = formatRecord({ holder, endMs: mtime + durationMs });
        return await this.#writeFenced(zk, (version) => [op.setData(holderPath, data, { version })] as const, 0, within);
      });
      this.#version = written.stat.version;
    } catch (error) {
      throw KeeperError.is(error, 'NoNode') ? this.#onTakenOver() : error;
    }
    if (this.#state !== 'held') throw this.#endError();
    this.#startTimer(askedAtMs);
  }

  /**
   * Releases it, so that others need not wait for its end. If no server can be reached, it lasts
   * until its end. A second call waits for the first. Rejects only with NoAuth.
   */
  release(): Promise<void> {
    const surplus = argumentCountError(arguments.length, 0, 'release()');
    if (surplus !== undefined) return Promise.reject(surplus);
    this.#released ??= this.#release();
    return this.#released;
  }

  /** What `console.log` shows. */
  [Symbol.for('nodejs.util.inspect.custom')](_depth: unknown, options: unknown, inspect: InspectFunction): string {
    const { state, path, fencingToken, remainingMs } = this;
    const { sessionId } = currentClient(this.#settings.source);
    return inspectObject(this, { state, path, fencingToken, leftMs: remainingMs, sessionId: formatSessionId(sessionId) }, options, inspect);
  }

  /** As `release`, and rejects as that does. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  async #release(): Promise<void> {
    if (this.#state !== 'held') return;
    this.#state = 'released';
    this.#stopTimer();
    const { source, holderPath } = this.#settings;
    for (;;) {
      const zk = currentClient(source);
      try {
        await zk.multi([op.delete(this.path), op.delete(holderPath, { version: this.#version })]);
        return;
      } catch (error) {
        if (!KeeperError.is(error)) throw error;
        // No reply: a second attempt does no harm, as the name of our znode is never used twice.
        if (isUnanswered(error)) continue;
        if (error.code === 'BadVersion' && (await this.#refreshRecord(zk).catch(() => false))) continue;
        // Another process has taken it, or it will end.
        if (KeeperError.is(error, 'NoNode', 'BadVersion', 'SessionExpired', 'SessionMoved', 'AuthFailed') || error.retryable) return;
        throw error;
      }
    }
  }

  /**
   * Other holders with this package delete the znode of the hold before they write the record.
   * kazoo does not know that znode: it deletes the record and creates another. So this checks both:
   * it writes what `make` returns for a version of the record; the operation at `recordOpIndex`
   * requires that version.
   */
  async #writeFenced<const Ops extends readonly WriteOp[]>(
    zk: ClientView,
    make: (version: number) => Ops,
    recordOpIndex: number,
    options: CallOptions,
  ): Promise<WriteResults<Ops>> {
    for (;;) {
      try {
        return await fencedMulti(zk, make(this.#version), [this.path], options);
      } catch (error) {
        if (error instanceof RecipeError && error.code === 'Lost') throw this.#onTakenOver();
        if (!KeeperError.is(error, 'BadVersion', 'NoNode') || error.failedIndex !== recordOpIndex) throw error;
      }
      if (!(await this.#refreshRecord(zk, options))) throw this.#onTakenOver();
    }
  }

  /**
   * Whether the record is still the one that was written; if so, stores its version. The version
   * differs after a renewal whose reply was lost; or after a write by another holder with this
   * package, and then the znode of the hold is gone.
   */
  async #refreshRecord(zk: ClientView, { signal, timeoutMs }: CallOptions = {}): Promise<boolean> {
    const { holderPath, record } = this.#settings;
    const now = await zk.exists(holderPath, { signal, timeoutMs });
    if (now?.czxid !== record.czxid) return false;
    this.#version = now.version;
    return true;
  }

  #onTakenOver(): unknown {
    this.#lose(`another process has taken ${this.#settings.holderPath}`);
    return this.#endError();
  }

  #startTimer(requestedAtMs: number): void {
    const { durationMs } = this.#settings;
    const { clock } = this.#settings.source;
    this.#stopTimer();
    this.#endsAtMs = requestedAtMs + durationMs;
    this.#timer = clock.after(Math.max(0, this.#endsAtMs - clock.now().elapsedMs), () => this.#lose('its time is over'));
  }

  #lose(reason: string): void {
    if (this.#state !== 'held') return;
    this.#state = 'lost';
    this.#stopTimer();
    this.#endController.abort(new RecipeError('Lost', `lease ${this.path} is over: ${reason}`));
  }

  #endError(): unknown {
    return this.#endController.signal.reason ?? new RecipeError('Lost', `lease ${this.path} is ${this.#state}`);
  }

  #stopTimer(): void {
    if (this.#timer !== undefined) this.#settings.source.clock.cancel(this.#timer);
    this.#timer = undefined;
  }
}
