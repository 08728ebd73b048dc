/**
 * Following, before there is a stream to the leader: it is dialled, and dialled again. It may have to notice first that it leads, and listens
 * from then on; that is a matter of a few milliseconds, so the first tries come one shortly after the other. All of them take as long as the
 * five of ZooKeeper.
 */
import type { Millis, Sid } from '@tskeeper/protocol';
import { distance, type Fingerprint } from '../fingerprint.ts';
import type { Now } from '../now.ts';
import type { ZabOptions } from './zab-options.ts';

export interface DiallingOptions {
  readonly zab: Pick<ZabOptions, 'tickTimeMs' | 'initLimitTicks' | 'syncLimitTicks'>;
  /** How long after a try the next one comes, at most. */
  readonly delayMsMax: Millis;
  /** Before the first try. */
  readonly pauseMs: Millis;
}

const triesMax = 8;
const firstDelayMs: Millis = 10;

export class Dialling {
  readonly leader: Sid;
  readonly #options: DiallingOptions;
  readonly #dial: (leader: Sid) => void;
  readonly #sinceMs: Millis;
  readonly #untilMs: Millis;
  #tries = 0;
  /** Undefined while a try is under way. */
  #retryMs: Millis | undefined;
  #isOver = false;
  #isUnanswered = false;

  /** `dial` completes as `failed`, or with a stream, and then this is of no more use. */
  constructor(leader: Sid, options: DiallingOptions, dial: (leader: Sid) => void, now: Now) {
    this.leader = leader;
    this.#options = options;
    this.#dial = dial;
    const { tickTimeMs, initLimitTicks } = options.zab;
    this.#sinceMs = now.elapsedMs;
    this.#untilMs = now.elapsedMs + tickTimeMs * initLimitTicks;
    if (options.pauseMs > 0) this.#retryMs = now.elapsedMs + options.pauseMs;
    else dial(leader);
  }

  /** The leader cannot be reached. */
  get over(): boolean {
    return this.#isOver;
  }

  /** It is over because nobody has answered for so long: neither the leader nor a host on which nobody listens. */
  get unanswered(): boolean {
    return this.#isUnanswered;
  }

  failed(now: Now): void {
    const { zab, delayMsMax } = this.#options;
    // Who has not answered for so long would be given up as a leader; there may be better ones.
    const isSilent = now.elapsedMs - this.#sinceMs >= zab.syncLimitTicks * zab.tickTimeMs;
    this.#tries++;
    this.#isUnanswered = isSilent;
    if (isSilent || this.#tries >= triesMax) this.#isOver = true;
    else this.#retryMs = now.elapsedMs + Math.min(firstDelayMs * 2 ** (this.#tries - 1), delayMsMax);
  }

  wake(now: Now): void {
    if (now.elapsedMs >= this.#untilMs) {
      this.#isOver = this.#isUnanswered = true;
    } else if (this.#retryMs !== undefined && now.elapsedMs >= this.#retryMs) {
      this.#retryMs = undefined;
      this.#dial(this.leader);
    }
  }

  deadline(): Millis {
    return Math.min(this.#untilMs, this.#retryMs ?? Infinity);
  }

  fingerprint(to: Fingerprint, { elapsedMs }: Now): void {
    for (const number of [this.leader, this.#tries, distance(this.#untilMs, elapsedMs), distance(this.#retryMs, elapsedMs)])
      to.number(number);
  }
}
