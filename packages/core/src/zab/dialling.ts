/**
 * Connects a follower to its leader, with retries. The leader may first have to notice that it
 * leads, and listens only then; that takes a few milliseconds, so the first retries follow quickly.
 * All attempts together take as long as the five of ZooKeeper.
 *
 * An open stream proves little. Where a proxy or a tunnel accepts in place of the leader, the
 * stream is open before the leader listens, and closes a moment later, or stays silent. So an
 * attempt has succeeded when LEADERINFO has arrived; otherwise see `TryOutcome`.
 */
import type { Millis, Sid } from '@tskeeper/protocol';
import { distance, type Fingerprint } from '../fingerprint.ts';
import type { Now } from '../now.ts';
import type { QuorumLinks } from './quorum-links.ts';
import type { ZabOptions } from './zab-options.ts';

export interface DiallingOptions {
  readonly zab: Pick<ZabOptions, 'tickTimeMs' | 'initLimitTicks' | 'syncLimitTicks'>;
  /** The maximum delay between two attempts. */
  readonly delayMsMax: Millis;
  /** Delay before the first attempt. */
  readonly pauseMs: Millis;
}

/**
 * The result of an attempt. `refused`: no process listens, or the stream was closed before
 * LEADERINFO. `unanswered`: the dial had no answer. `silent`: the stream was open for syncLimit
 * without input; the leader may still wait for a quorum, so it is retried until initLimit.
 */
export type TryOutcome = 'refused' | 'unanswered' | 'silent';

const triesMax = 8;
const firstDelayMs: Millis = 10;

export class Dialling {
  readonly leader: Sid;
  readonly #options: DiallingOptions;
  readonly #links: Pick<QuorumLinks, 'dialLeader'>;
  readonly #untilMs: Millis;
  #tries = 0;
  /** When the current attempt began. */
  #triedMs: Millis;
  /** The total time of attempts without an answer. */
  #unansweredMs: Millis = 0;
  /** Undefined while an attempt is running. */
  #retryMs: Millis | undefined;
  #isOver = false;
  #isDeaf = false;

  /**
   * A dial ends with a stream, or with `failed`. If nothing is received over the stream, the owner
   * calls `failed` then.
   */
  constructor(leader: Sid, options: DiallingOptions, links: Pick<QuorumLinks, 'dialLeader'>, now: Now) {
    this.leader = leader;
    this.#options = options;
    this.#links = links;
    const { tickTimeMs, initLimitTicks } = options.zab;
    this.#untilMs = now.elapsedMs + tickTimeMs * initLimitTicks;
    this.#triedMs = now.elapsedMs;
    if (options.pauseMs > 0) this.#retryMs = now.elapsedMs + options.pauseMs;
    else links.dialLeader(leader);
  }

  /** Whether the leader cannot be reached. */
  get over(): boolean {
    return this.#isOver;
  }

  /**
   * Whether there was no answer for syncLimit, neither from the leader nor a refusal from its host.
   * There may be better leaders.
   */
  get unanswered(): boolean {
    const { tickTimeMs, syncLimitTicks } = this.#options.zab;
    return this.#isDeaf || this.#unansweredMs >= syncLimitTicks * tickTimeMs;
  }

  failed(outcome: TryOutcome, now: Now): void {
    this.#tries++;
    if (outcome !== 'refused') this.#unansweredMs += now.elapsedMs - this.#triedMs;
    if ((outcome === 'unanswered' && this.unanswered) || this.#tries >= triesMax || now.elapsedMs >= this.#untilMs) this.#isOver = true;
    else this.#retryMs = now.elapsedMs + Math.min(firstDelayMs * 2 ** (this.#tries - 1), this.#options.delayMsMax);
  }

  /**
   * The leader is known not to lead any more, so no attempt is started. A running one still shows
   * whether the server can be reached; if it has not answered, syncLimit must pass, since its votes
   * may arrive all the same.
   */
  abandon(): void {
    if (this.#retryMs !== undefined && (this.#unansweredMs === 0 || this.unanswered)) this.#isOver = true;
  }

  /**
   * The leader sends votes but does not receive this server's messages: no attempt will be
   * answered.
   */
  leaderIsDeaf(): void {
    this.#isDeaf = this.#isOver = true;
  }

  wake(now: Now): void {
    if (now.elapsedMs >= this.#untilMs) {
      if (this.#retryMs === undefined) this.#unansweredMs += now.elapsedMs - this.#triedMs;
      this.#isOver = true;
    } else if (this.#retryMs !== undefined && now.elapsedMs >= this.#retryMs) {
      this.#retryMs = undefined;
      this.#triedMs = now.elapsedMs;
      this.#links.dialLeader(this.leader);
    }
  }

  deadline(): Millis {
    return Math.min(this.#untilMs, this.#retryMs ?? Infinity);
  }

  fingerprint(to: Fingerprint, { elapsedMs }: Now): void {
    for (const number of [this.leader, this.#tries, this.#unansweredMs, elapsedMs - this.#triedMs]) to.number(number);
    for (const dueMs of [this.#untilMs, this.#retryMs]) to.number(distance(dueMs, elapsedMs));
  }
}
