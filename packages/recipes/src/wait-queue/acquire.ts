/** Acquiring: from the end of a queue to its head. Locks, elections and leases use it. */
import { type ClientView, type Data, KeeperError } from '@tskeeper/client';
import { callOptionTypes, checkCallOptions, checkFunction, checkOptions, checkPath, describeValue } from '../validation.ts';
import { RecipeError } from '../recipe-error.ts';
import { runAcrossSessions, type SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../wait-options.ts';
import type { Contender } from './contender.ts';
import { Hold } from './hold.ts';
import { Deadline } from '../waiting/deadline.ts';
import { retryForever } from '../waiting/own-znode.ts';
import { waitForEvent } from '../waiting/watch-once.ts';
import type { FindBlocker, WaitQueue } from './wait-queue.ts';

/** How to wait in the queue. */
export interface AcquireOptions extends WaitOptions {
  /**
   * Makes the hold revocable. It is called once, with the hold, when another client calls `revoke`;
   * the hold is released when the returned promise settles, so the holder may finish its work
   * first. A wait that is revoked rejects with a RecipeError, Revoked. Default: `revoke` has no
   * effect before its `deleteAfterMs`. (ZooKeeper's recipes, "Revocable Shared Locks".)
   */
  readonly onRevocation?: ((hold: Hold) => void | Promise<void>) | undefined;
}

/** How to revoke a hold. */
export interface RevokeOptions extends WaitOptions {
  /**
   * Deletes the znode of the hold after this many milliseconds, whether or not its holder has
   * released it. The holder learns of the loss, but may still be writing, so fence what it writes.
   * Default: never.
   */
  readonly deleteAfterMs?: number | undefined;
}

/** What to acquire, and how to queue for it. */
export interface LockRequest {
  readonly queue: WaitQueue;
  readonly prefix: string;
  readonly data: Data;
  readonly findBlocker: FindBlocker;
  /** For messages: `lock /a`. */
  readonly what: string;
}

/** The data that revoke a znode. */
const revocationData = 'unlock';

/** With `Sessions` a wait survives its session: it queues again at the end in the next one. */
export async function acquire(source: SessionSource, request: LockRequest, options: AcquireOptions): Promise<Hold> {
  using deadline = new Deadline(source, options, request.what, callOptionTypes.acquire);
  const { onRevocation } = options;
  if (onRevocation !== undefined) checkFunction(onRevocation, 'onRevocation');
  if (onRevocation !== undefined && isRevocation(request.data))
    throw new TypeError(`the data of a revocable hold cannot be "${revocationData}", which revokes it; choose other data`);
  return await runAcrossSessions(source, deadline.signal, (zk) => acquireInSession(zk, request, { signal: deadline.signal, onRevocation }));
}

/** In one session. */
async function acquireInSession(
  zk: ClientView,
  { queue, prefix, data, findBlocker, what }: LockRequest,
  options: AcquireOptions,
): Promise<Hold> {
  using deadline = new Deadline(zk, options, what, callOptionTypes.acquire);
  const revocation = options.onRevocation === undefined ? undefined : new Revocation(options.onRevocation, deadline);
  const node = await queue.join(zk, prefix, data, deadline.signal, revocation && ((now) => isRevocation(now) && revocation.onRequested()));
  try {
    await node.waitForTurn(findBlocker, deadline);
  } catch (error) {
    await node.leave();
    throw error;
  }
  const hold = new Hold(node);
  revocation?.onAcquired(hold);
  return hold;
}

/** undefined if another contender has to go first. */
export async function tryAcquire(source: SessionSource, request: LockRequest, options: WaitOptions): Promise<Hold | undefined> {
  using deadline = new Deadline(source, options, `a reply about ${request.what}`);
  return await runAcrossSessions(source, deadline.signal, (zk) => tryAcquireInSession(zk, request, deadline.signal));
}

async function tryAcquireInSession(
  zk: ClientView,
  { queue, prefix, data, findBlocker }: LockRequest,
  signal: AbortSignal,
): Promise<Hold | undefined> {
  const node = await queue.join(zk, prefix, data, signal);
  let isFree = false;
  try {
    isFree = (await node.currentBlocker(findBlocker, signal)) === undefined;
  } finally {
    if (!isFree) await node.leave();
  }
  return isFree ? new Hold(node) : undefined;
}

/** How a holder or waiter reacts to a revocation. */
class Revocation {
  readonly #onRevocation: (hold: Hold) => void | Promise<void>;
  readonly #limit: Deadline;
  #held: Hold | undefined;
  #isRequested = false;

  constructor(onRevocation: (hold: Hold) => void | Promise<void>, deadline: Deadline) {
    this.#onRevocation = onRevocation;
    this.#limit = deadline;
  }

  onRequested(): void {
    if (this.#isRequested) return;
    this.#isRequested = true;
    if (this.#held === undefined) this.#limit.abort(new RecipeError('Revoked', 'another client has revoked this place in the queue'));
    else void this.#releaseAfterConsent(this.#held);
  }

  onAcquired(hold: Hold): void {
    this.#held = hold;
    if (this.#isRequested) void this.#releaseAfterConsent(hold);
  }

  /**
   * What the program throws here is its own error, and becomes an unhandled rejection; the hold is
   * released nevertheless.
   */
  async #releaseAfterConsent(hold: Hold): Promise<void> {
    try {
      await this.#onRevocation(hold);
    } finally {
      await hold.release();
    }
  }
}

/**
 * Revokes the place of a contender, and resolves when it is gone: at once if it is already. Rejects
 * with a RecipeError, TimedOut, and with the signal's reason; the revocation remains in effect
 * then.
 */
export async function revoke(source: SessionSource, contender: Contender, options: RevokeOptions): Promise<void> {
  checkOptions(contender, 'contenders() lists them', 'a contender');
  checkCallOptions(options, callOptionTypes.revoke, 'revoke');
  const { path } = contender;
  checkPath(path);
  const { deleteAfterMs, timeoutMs = Infinity } = options;
  if (deleteAfterMs !== undefined && !(typeof deleteAfterMs === 'number' && deleteAfterMs >= 0))
    throw new RangeError(
      `deleteAfterMs must be a number of milliseconds from 0, not ${describeValue(deleteAfterMs)}; leave it out to wait for consent`,
    );
  if (deleteAfterMs !== undefined && timeoutMs <= deleteAfterMs)
    throw new RangeError(
      `a call that ends after ${timeoutMs} ms deletes nothing after ${deleteAfterMs} ms; make timeoutMs longer than deleteAfterMs`,
    );
  using deadline = new Deadline(source, options, `the release of ${path}`, callOptionTypes.revoke);
  const { signal } = deadline;
  const { clock } = source;
  const timer = deleteAfterMs === undefined ? undefined : clock.after(deleteAfterMs, () => void deleteContender(source, path, deadline));
  try {
    await runAcrossSessions(source, signal, async (zk) => {
      await zk.setData(path, revocationData, { ...retryForever, signal, idempotent: true });
      while (await waitForEvent(zk, path, signal));
    });
  } catch (error) {
    if (!KeeperError.is(error, 'NoNode')) throw error;
  } finally {
    if (timer !== undefined) clock.cancel(timer);
  }
}

/** The caller of `revoke` receives the error. */
async function deleteContender(source: SessionSource, path: string, deadline: Deadline): Promise<void> {
  const { signal } = deadline;
  try {
    await runAcrossSessions(source, signal, (zk) => zk.delete(path, { ...retryForever, signal, idempotent: true }));
  } catch (error) {
    if (!KeeperError.is(error, 'NoNode')) deadline.abort(error);
  }
}

function isRevocation(data: Data): boolean {
  if (typeof data === 'string') return data === revocationData;
  return data !== null && new TextDecoder().decode(data) === revocationData;
}
