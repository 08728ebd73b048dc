/**
 * Connects a follower to its leader, with retries. The leader may first have to notice that it
 * leads, and listens only then; that takes a few milliseconds, so the first retries follow quickly.
 * All attempts together take as long as the five of ZooKeeper.
 *
 * An open stream proves little. Where a proxy or a tunnel accepts in place of the leader, the
 * stream is open before the leader listens, and closes a moment later, or stays silent. So an
 * attempt has succeeded when LEADERINFO has arrived; otherwise see `ConnectFailure`.
 *
 * An observer may learn from a follower instead (observer-masters.ts). Then each attempt is made
 * with the next of them, whatever became of the one before.
 */
import type { Millis, Sid } from '@tskeeper/protocol';
import { msUntil, type Fingerprint } from '../fingerprint.ts';
import type { Now } from '../now.ts';
import type { ObserverMasters } from './observer-masters.ts';
import type { QuorumLinks } from './quorum-links.ts';
import type { ZabOptions } from './zab-options.ts';

export interface LeaderConnectorOptions {
  readonly zab: Pick<ZabOptions, 'tickTimeMs' | 'initLimitTicks' | 'syncLimitTicks'>;
  /** The maximum delay between two attempts. */
  readonly retryDelayMsMax: Millis;
  /** Delay before the first attempt. */
  readonly initialDelayMs: Millis;
  /** The servers to learn from in place of the leader; undefined: the leader. */
  readonly masters?: ObserverMasters | undefined;
}

/**
 * The result of an attempt. `refused`: no process listens, or the stream was closed before
 * LEADERINFO. `unanswered`: the dial had no answer. `silent`: the stream was open for syncLimit
 * without input; the leader may still wait for a quorum, so it is retried until initLimit.
 */
export type ConnectFailure = 'refused' | 'unanswered' | 'silent';

const attemptsMax = 8;
const retryDelayMsMin: Millis = 10;

export class LeaderConnector {
  readonly leader: Sid;
  readonly #options: LeaderConnectorOptions;
  readonly #links: Pick<QuorumLinks, 'dialLeader'>;
  readonly #deadlineMs: Millis;
  /** The server that the current or next attempt is for. */
  #target: Sid;
  #attempts = 0;
  /** When the current attempt began. */
  #attemptStartMs: Millis;
  /** The total time of attempts without an answer. */
  #unansweredMs: Millis = 0;
  /** Undefined while an attempt is running. */
  #retryMs: Millis | undefined;
  #isExhausted = false;
  #isNotReceiving = false;

  /**
   * A dial ends with a stream, or with `attemptFailed`. The owner also calls `attemptFailed` when a
   * stream ends over which nothing was received.
   */
  constructor(leader: Sid, options: LeaderConnectorOptions, links: Pick<QuorumLinks, 'dialLeader'>, now: Now) {
    this.leader = leader;
    this.#options = options;
    this.#links = links;
    const { tickTimeMs, initLimitTicks } = options.zab;
    this.#deadlineMs = now.elapsedMs + tickTimeMs * initLimitTicks;
    this.#attemptStartMs = now.elapsedMs;
    this.#target = leader;
    let { initialDelayMs } = options;
    if (options.masters !== undefined) {
      const { sid, delayMs } = options.masters.take();
      this.#target = sid;
      initialDelayMs = delayMs;
    }
    if (initialDelayMs > 0) this.#retryMs = now.elapsedMs + initialDelayMs;
    else this.#dial();
  }

  #dial(): void {
    this.#links.dialLeader(this.#target, this.usesMasters ? 'observer master' : 'quorum');
  }

  /** Whether it dials servers that accept observers, and not the leader. */
  get usesMasters(): boolean {
    return this.#options.masters !== undefined;
  }

  /** The server that is dialled, or was last. */
  get target(): Sid {
    return this.#target;
  }

  /** Whether the leader cannot be reached. */
  get isExhausted(): boolean {
    return this.#isExhausted;
  }

  /**
   * Whether there was no answer for syncLimit, neither from the leader nor a refusal from its host.
   * There may be better leaders.
   */
  get isUnanswered(): boolean {
    const { tickTimeMs, syncLimitTicks } = this.#options.zab;
    return this.#isNotReceiving || this.#unansweredMs >= syncLimitTicks * tickTimeMs;
  }

  attemptFailed(outcome: ConnectFailure, now: Now): void {
    this.#attempts++;
    const { masters, retryDelayMsMax } = this.#options;
    if (masters !== undefined) {
      // A server that cannot be reached says nothing about the others, nor about the leader.
      const { sid, delayMs } = masters.take();
      this.#target = sid;
      if (this.#attempts >= Math.max(attemptsMax, masters.count) || now.elapsedMs >= this.#deadlineMs) this.#isExhausted = true;
      else this.#retryMs = now.elapsedMs + Math.max(delayMs, Math.min(retryDelayMsMin * 2 ** (this.#attempts - 1), retryDelayMsMax));
      return;
    }
    if (outcome !== 'refused') this.#unansweredMs += now.elapsedMs - this.#attemptStartMs;
    if ((outcome === 'unanswered' && this.isUnanswered) || this.#attempts >= attemptsMax || now.elapsedMs >= this.#deadlineMs)
      this.#isExhausted = true;
    else this.#retryMs = now.elapsedMs + Math.min(retryDelayMsMin * 2 ** (this.#attempts - 1), retryDelayMsMax);
  }

  /**
   * The leader is known to have stopped leading, so no attempt is started. A running one still
   * shows whether the server can be reached; if it has not answered, syncLimit must pass, since its
   * votes may still arrive.
   */
  abandon(): void {
    if (this.#retryMs !== undefined && (this.#unansweredMs === 0 || this.isUnanswered)) this.#isExhausted = true;
  }

  /**
   * The leader sends votes but does not receive this server's messages: no attempt will be
   * answered.
   */
  leaderNotReceiving(): void {
    this.#isNotReceiving = this.#isExhausted = true;
  }

  wake(now: Now): void {
    if (now.elapsedMs >= this.#deadlineMs) {
      if (this.#retryMs === undefined) this.#unansweredMs += now.elapsedMs - this.#attemptStartMs;
      this.#isExhausted = true;
    } else if (this.#retryMs !== undefined && now.elapsedMs >= this.#retryMs) {
      this.#retryMs = undefined;
      this.#attemptStartMs = now.elapsedMs;
      this.#dial();
    }
  }

  deadline(): Millis {
    return Math.min(this.#deadlineMs, this.#retryMs ?? Infinity);
  }

  fingerprint(to: Fingerprint, { elapsedMs }: Now): void {
    for (const number of [this.leader, this.#target, this.#attempts, this.#unansweredMs, elapsedMs - this.#attemptStartMs])
      to.number(number);
    for (const dueMs of [this.#deadlineMs, this.#retryMs]) to.number(msUntil(dueMs, elapsedMs));
  }
}
