/**
 * Frames that arrived while a long job was running, or while too many requests were outstanding
 * (zookeeper.request_throttle_max_requests). They wait in order of arrival, over all connections.
 */
import type { Millis } from '@tskeeper/protocol';
import type { Cnxn } from '../cnxn/cnxn.ts';
import { Fifo } from '../fifo.ts';
import type { CoreOptions } from '../options.ts';
import type { Load } from '../pending/load.ts';
import type { ForwardedRequest } from '../pending/proposal.ts';
import type { ParkedFrame } from '../pending/pending-request.ts';

export type QueuedRequest =
  | { readonly kind: 'frame'; readonly cnxn: Cnxn; readonly frame: ParkedFrame }
  | {
      readonly kind: 'forwarded';
      readonly request: ForwardedRequest;
      readonly sessionMoves: number;
      readonly afterLongWrite: AfterLongWrite;
    };

/**
 * Whether a request waited for a long write of its session that is now admitted; `last` for the
 * last request before the next long write.
 */
export type AfterLongWrite = 'no' | 'yes' | 'last';

export class AdmissionQueue {
  readonly #requests = new Fifo<QueuedRequest>();
  readonly #load: Load;
  readonly #stallMs: Millis;
  readonly #throttledAfterMs: Millis;
  #retryMs: Millis = 0;

  constructor(options: CoreOptions, load: Load) {
    this.#load = load;
    this.#stallMs = options.requestThrottleStallMs;
    this.#throttledAfterMs = options.throttledOpWaitMs;
  }

  get isEmpty(): boolean {
    return this.#requests.length === 0;
  }

  /** When to check again whether they can be admitted; undefined if none waits. */
  get deadline(): Millis | undefined {
    return this.isEmpty ? undefined : this.#retryMs;
  }

  push(cnxn: Cnxn, frame: ParkedFrame, nowMs: Millis): void {
    if (this.isEmpty) this.scheduleRetry(nowMs);
    this.#count(cnxn, frame);
    this.#requests.push({ kind: 'frame', cnxn, frame });
  }

  #count(cnxn: Cnxn, frame: ParkedFrame): void {
    cnxn.framesAwaitingAdmission++;
    this.#load.admissionQueued(frame, cnxn.addressLoad);
  }

  /** Adds a request forwarded by a learner. `sessionMoves` is how often its session had moved. */
  pushForwarded(request: ForwardedRequest, sessionMoves: number, nowMs: Millis): void {
    if (this.isEmpty) this.scheduleRetry(nowMs);
    this.#requests.push({ kind: 'forwarded', request, sessionMoves, afterLongWrite: 'no' });
  }

  /** Puts back frames of a connection before all frames that arrived later. */
  requeue(cnxn: Cnxn, frames: readonly ParkedFrame[], nowMs: Millis): void {
    if (this.isEmpty) this.scheduleRetry(nowMs);
    for (const frame of frames.toReversed()) {
      this.#count(cnxn, frame);
      this.#requests.unshift({ kind: 'frame', cnxn, frame });
    }
  }

  /**
   * Puts forwarded requests that waited for a long write that is now admitted before all that
   * arrived later.
   */
  requeueForwarded(requests: readonly { readonly request: ForwardedRequest; readonly sessionMoves: number }[], nowMs: Millis): void {
    if (this.isEmpty) this.scheduleRetry(nowMs);
    for (const [at, { request, sessionMoves }] of requests.toReversed().entries()) {
      this.#requests.unshift({ kind: 'forwarded', request, sessionMoves, afterLongWrite: at === 0 ? 'last' : 'yes' });
    }
  }

  /** Takes the frame that arrived first. One that has waited too long is marked as throttled. */
  take(nowMs: Millis): QueuedRequest {
    const queued = this.#requests.shift();
    if (queued === undefined) throw new Error('take() was called without a held frame');
    if (queued.kind === 'forwarded') return queued;
    queued.cnxn.framesAwaitingAdmission--;
    this.#load.admissionTaken(queued.frame, queued.cnxn.addressLoad);
    const isLate = this.#throttledAfterMs > 0 && nowMs - queued.frame.arrivedMs > this.#throttledAfterMs;
    return isLate ? { ...queued, frame: { ...queued.frame, isThrottled: true } } : queued;
  }

  scheduleRetry(nowMs: Millis): void {
    this.#retryMs = nowMs + this.#stallMs;
  }
}
