/**
 * Following, before the leader has answered: it is dialled, and dialled again. It may have to notice first that it leads, and listens from then on; that
 * is a matter of a few milliseconds, so the first tries come one shortly after the other. All of them take as long as the five of ZooKeeper.
 *
 * A stream to it says little. Where something accepts in place of the leader (a proxy, a tunnel), it is there before anybody listens at the far end, and
 * closes a moment later, or stays silent. So a try has succeeded when LEADERINFO has come; otherwise see `TryOutcome`.
 */
import type { Millis, Sid } from '@tskeeper/protocol';
import { distance, type Fingerprint } from '../fingerprint.ts';
import type { Now } from '../now.ts';
import type { QuorumLinks } from './quorum-links.ts';
import type { ZabOptions } from './zab-options.ts';

export interface DiallingOptions {
  readonly zab: Pick<ZabOptions, 'tickTimeMs' | 'initLimitTicks' | 'syncLimitTicks'>;
  /** How long after a try the next one comes, at most. */
  readonly delayMsMax: Millis;
  /** Before the first try. */
  readonly pauseMs: Millis;
}

/**
 * What has come of a try. `refused`: nobody listens, or the stream was closed before LEADERINFO came. `unanswered`: the dial had no answer. `silent`: the
 * stream was there for syncLimit, and nothing came; the leader may still wait for a quorum, so it is tried again until initLimit is over.
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
  /** When the try under way began. */
  #triedMs: Millis;
  /** How long tries have taken that had no answer. */
  #unansweredMs: Millis = 0;
  /** Undefined while a try is under way. */
  #retryMs: Millis | undefined;
  #isOver = false;
  #isDeaf = false;

  /** A dial ends with a stream, or with `failed`. If nothing is received over the stream, the owner calls `failed` then. */
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

  /** The leader cannot be reached. */
  get over(): boolean {
    return this.#isOver;
  }

  /** Nobody has answered for so long: neither the leader nor a host on which nobody listens. There may be better leaders. */
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
   * The leader is known not to lead any more, so there is no use in another try. One that is under way shows yet whether it can be reached; and where it has
   * not answered, syncLimit is waited for, since its votes may be heard all the same.
   */
  abandon(): void {
    if (this.#retryMs !== undefined && (this.#unansweredMs === 0 || this.unanswered)) this.#isOver = true;
  }

  /** The leader speaks, and does not hear this server: no try will be answered. */
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
