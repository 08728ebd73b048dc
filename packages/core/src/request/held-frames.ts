/**
 * Frames that arrived while a long job was running, or while too many requests were outstanding
 * (zookeeper.request_throttle_max_requests). They wait in order of arrival, over all connections.
 */
import type { Millis } from '@tskeeper/protocol';
import type { Cnxn } from '../cnxn/cnxn.ts';
import { Fifo } from '../fifo.ts';
import type { CoreOptions } from '../options.ts';
import type { Load } from './load.ts';
import type { ForwardedRequest } from './proposal.ts';
import type { ParkedFrame } from './session-order.ts';

export type Held =
  | { readonly kind: 'frame'; readonly cnxn: Cnxn; readonly frame: ParkedFrame }
  | { readonly kind: 'forwarded'; readonly request: ForwardedRequest; readonly moves: number; readonly behindLong: BehindLong };

/**
 * Whether a request waited for a long write of its session whose turn has come; `last` for the last
 * request before the next long write.
 */
export type BehindLong = 'no' | 'yes' | 'last';

export class HeldFrames {
  readonly #frames = new Fifo<Held>();
  readonly #load: Load;
  readonly #stallMs: Millis;
  readonly #throttledAfterMs: Millis;
  #lookAgainMs: Millis = 0;

  constructor(options: CoreOptions, load: Load) {
    this.#load = load;
    this.#stallMs = options.requestThrottleStallMs;
    this.#throttledAfterMs = options.throttledOpWaitMs;
  }

  get isEmpty(): boolean {
    return this.#frames.length === 0;
  }

  /** When to check again whether they can be admitted; undefined if none waits. */
  get deadline(): Millis | undefined {
    return this.isEmpty ? undefined : this.#lookAgainMs;
  }

  push(cnxn: Cnxn, frame: ParkedFrame, nowMs: Millis): void {
    if (this.isEmpty) this.lookAgainLater(nowMs);
    this.#count(cnxn, frame);
    this.#frames.push({ kind: 'frame', cnxn, frame });
  }

  #count(cnxn: Cnxn, frame: ParkedFrame): void {
    cnxn.framesHeld++;
    this.#load.holdBack(frame, cnxn.address);
  }

  /** Adds a request forwarded by a learner. `moves` is how often its session had moved. */
  pushForwarded(request: ForwardedRequest, moves: number, nowMs: Millis): void {
    if (this.isEmpty) this.lookAgainLater(nowMs);
    this.#frames.push({ kind: 'forwarded', request, moves, behindLong: 'no' });
  }

  /** Puts back frames of a connection before all frames that arrived later. */
  putBack(cnxn: Cnxn, frames: readonly ParkedFrame[], nowMs: Millis): void {
    if (this.isEmpty) this.lookAgainLater(nowMs);
    for (const frame of frames.toReversed()) {
      this.#count(cnxn, frame);
      this.#frames.unshift({ kind: 'frame', cnxn, frame });
    }
  }

  /**
   * Puts forwarded requests that waited for a long write whose turn has come before all that
   * arrived later.
   */
  putBackForwarded(waiting: readonly { readonly request: ForwardedRequest; readonly moves: number }[], nowMs: Millis): void {
    if (this.isEmpty) this.lookAgainLater(nowMs);
    for (const [at, { request, moves }] of waiting.toReversed().entries()) {
      this.#frames.unshift({ kind: 'forwarded', request, moves, behindLong: at === 0 ? 'last' : 'yes' });
    }
  }

  /** Takes the frame that arrived first. One that has waited too long is marked as throttled. */
  take(nowMs: Millis): Held {
    const held = this.#frames.shift();
    if (held === undefined) throw new Error('take() was called without a held frame');
    if (held.kind === 'forwarded') return held;
    held.cnxn.framesHeld--;
    this.#load.letGo(held.frame, held.cnxn.address);
    const isLate = this.#throttledAfterMs > 0 && nowMs - held.frame.arrivedMs > this.#throttledAfterMs;
    return isLate ? { ...held, frame: { ...held.frame, throttled: true } } : held;
  }

  lookAgainLater(nowMs: Millis): void {
    this.#lookAgainMs = nowMs + this.#stallMs;
  }
}
