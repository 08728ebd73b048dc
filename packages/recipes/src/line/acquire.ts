/** Acquiring: from the end of a queue to its head. Locks, elections and leases use it. */
import { type ClientView, type Data, KeeperError } from '@tskeeper/client';
import { callOptions, checkCallOptions, checkFunction, checkOptions, checkPath, named } from '../given.ts';
import { RecipeError } from '../recipe-error.ts';
import { inSessions, type SessionSource } from '../sessions/session-source.ts';
import type { WaitOptions } from '../waiting/wait-options.ts';
import type { Contender } from './contender.ts';
import { Held } from './held.ts';
import { Limit } from '../waiting/limit.ts';
import type { Ahead, Line } from './line.ts';
import { nextEvent, untilTheEnd } from '../waiting/next-event.ts';

/** How to wait in the queue. */
export interface AcquireOptions extends WaitOptions {
  /**
   * Makes the hold revocable. It is called once, with the hold, when another client calls `revoke`;
   * the hold is released when the returned promise settles, so the holder may finish its work
   * first. A wait that is revoked rejects with a RecipeError, Revoked. Default: `revoke` has no
   * effect before its `deleteAfterMs`. (ZooKeeper's recipes, "Revocable Shared Locks".)
   */
  readonly onRevocation?: ((held: Held) => void | Promise<void>) | undefined;
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
export interface Claim {
  readonly line: Line;
  readonly kind: string;
  readonly data: Data;
  readonly ahead: Ahead;
  /** For messages: `lock /a`. */
  readonly what: string;
}

/** The data that revoke a znode. */
const revocation = 'unlock';

/** With `Sessions` a wait survives its session: it queues again at the end in the next one. */
export async function acquire(source: SessionSource, claim: Claim, options: AcquireOptions): Promise<Held> {
  using limit = new Limit(source, options, claim.what, callOptions.acquire);
  const { onRevocation } = options;
  if (onRevocation !== undefined) checkFunction(onRevocation, 'onRevocation');
  if (onRevocation !== undefined && isRevocation(claim.data))
    throw new TypeError(`the data of a revocable hold cannot be "${revocation}", which revokes it; choose other data`);
  return await inSessions(source, limit.signal, (zk) => acquireIn(zk, claim, { signal: limit.signal, onRevocation }));
}

/** In one session. */
async function acquireIn(zk: ClientView, { line, kind, data, ahead, what }: Claim, options: AcquireOptions): Promise<Held> {
  using limit = new Limit(zk, options, what, callOptions.acquire);
  const revoking = options.onRevocation === undefined ? undefined : new Revocation(options.onRevocation, limit);
  const place = await line.join(zk, kind, data, limit.signal, revoking && ((now) => isRevocation(now) && revoking.asked()));
  try {
    await place.turn(ahead, limit);
  } catch (error) {
    await place.leave();
    throw error;
  }
  const held = new Held(place);
  revoking?.holds(held);
  return held;
}

/** undefined if another contender has to go first. */
export async function tryAcquire(source: SessionSource, claim: Claim, options: WaitOptions): Promise<Held | undefined> {
  using limit = new Limit(source, options, `a reply about ${claim.what}`);
  return await inSessions(source, limit.signal, (zk) => tryAcquireIn(zk, claim, limit.signal));
}

async function tryAcquireIn(zk: ClientView, { line, kind, data, ahead }: Claim, signal: AbortSignal): Promise<Held | undefined> {
  const place = await line.join(zk, kind, data, signal);
  let isFree = false;
  try {
    isFree = (await place.blocker(ahead, signal)) === undefined;
  } finally {
    if (!isFree) await place.leave();
  }
  return isFree ? new Held(place) : undefined;
}

/** How a holder or waiter reacts to a revocation. */
class Revocation {
  readonly #consent: (held: Held) => void | Promise<void>;
  readonly #limit: Limit;
  #held: Held | undefined;
  #isAsked = false;

  constructor(consent: (held: Held) => void | Promise<void>, limit: Limit) {
    this.#consent = consent;
    this.#limit = limit;
  }

  asked(): void {
    if (this.#isAsked) return;
    this.#isAsked = true;
    if (this.#held === undefined) this.#limit.end(new RecipeError('Revoked', 'another client has revoked this place in the queue'));
    else void this.#yield(this.#held);
  }

  holds(held: Held): void {
    this.#held = held;
    if (this.#isAsked) void this.#yield(held);
  }

  /**
   * What the program throws here is its own error, and becomes an unhandled rejection; the hold is
   * released all the same.
   */
  async #yield(held: Held): Promise<void> {
    try {
      await this.#consent(held);
    } finally {
      await held.release();
    }
  }
}

/**
 * Revokes the place of a contender, and resolves when it is gone: at once if it is already. Rejects
 * with a RecipeError, TimedOut, and with the signal's reason; the revocation remains in effect
 * then.
 */
export async function revoke(source: SessionSource, contender: Contender, options: RevokeOptions): Promise<void> {
  checkOptions(contender, 'contenders() lists them', 'a contender is');
  checkCallOptions(options, callOptions.revoke, 'revoke');
  const { path } = contender;
  checkPath(path);
  const { deleteAfterMs, timeoutMs = Infinity } = options;
  if (deleteAfterMs !== undefined && !(typeof deleteAfterMs === 'number' && deleteAfterMs >= 0))
    throw new RangeError(`deleteAfterMs is a number of milliseconds from 0, not ${named(deleteAfterMs)}; leave it out to wait for consent`);
  if (deleteAfterMs !== undefined && timeoutMs <= deleteAfterMs)
    throw new RangeError(
      `a call that ends after ${timeoutMs} ms deletes nothing after ${deleteAfterMs} ms; make timeoutMs longer than deleteAfterMs`,
    );
  using limit = new Limit(source, options, `the release of ${path}`, callOptions.revoke);
  const { signal } = limit;
  const { clock } = source;
  const timer = deleteAfterMs === undefined ? undefined : clock.after(deleteAfterMs, () => void remove(source, path, limit));
  try {
    await inSessions(source, signal, async (zk) => {
      await zk.setData(path, revocation, { ...untilTheEnd, signal, idempotent: true });
      while (await nextEvent(zk, path, signal));
    });
  } catch (error) {
    if (!KeeperError.is(error, 'NoNode')) throw error;
  } finally {
    if (timer !== undefined) clock.cancel(timer);
  }
}

/** The caller of `revoke` receives the error. */
async function remove(source: SessionSource, path: string, limit: Limit): Promise<void> {
  const { signal } = limit;
  try {
    await inSessions(source, signal, (zk) => zk.delete(path, { ...untilTheEnd, signal, idempotent: true }));
  } catch (error) {
    if (!KeeperError.is(error, 'NoNode')) limit.end(error);
  }
}

function isRevocation(data: Data): boolean {
  if (typeof data === 'string') return data === revocation;
  return data !== null && new TextDecoder().decode(data) === revocation;
}
