/** From the end of a line to its head: what an acquire is, whatever is had there. */
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

/** How to wait for one's turn. */
export interface AcquireOptions extends WaitOptions {
  /**
   * Makes the hold one that others may ask back, by `revoke`: is called when somebody does, once, with the hold, which is given back as soon as it returns or its
   * promise is settled. So it may finish its work first. A wait that is revoked rejects with a RecipeError, Revoked. Default: nobody listens,
   * and `revoke` is of no effect until its `deleteAfterMs`. (ZooKeeper's recipes, "Revocable Shared Locks".)
   */
  readonly onRevocation?: ((held: Held) => void | Promise<void>) | undefined;
}

/** How to ask for a hold back. */
export interface RevokeOptions extends WaitOptions {
  /**
   * After so many milliseconds the znode of the hold is deleted, whether its holder consents or not: the holder hears of it, and may be writing still,
   * so what it writes has to be fenced. Default: never.
   */
  readonly deleteAfterMs?: number | undefined;
}

/** Who contends, and for what. */
export interface Claim {
  readonly line: Line;
  readonly kind: string;
  readonly data: Data;
  readonly ahead: Ahead;
  /** `the lock /a`, for people. */
  readonly what: string;
}

/** What is written to a znode to ask for it back. */
const revocation = 'unlock';

/** With `Sessions` a wait goes on when its session ends: in the next one, from the end of the line. */
export async function acquire(source: SessionSource, claim: Claim, options: AcquireOptions): Promise<Held> {
  using limit = new Limit(source, options, claim.what, callOptions.acquire);
  const { onRevocation } = options;
  if (onRevocation !== undefined) checkFunction(onRevocation, 'onRevocation');
  if (onRevocation !== undefined && isRevocation(claim.data))
    throw new TypeError(`the data of a hold that can be revoked are not "${revocation}", which asks for it back`);
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

/** undefined when somebody is ahead. */
export async function tryAcquire(source: SessionSource, claim: Claim, options: WaitOptions): Promise<Held | undefined> {
  using limit = new Limit(source, options, `an answer about ${claim.what}`);
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

/** What the one who holds, or waits, does about being asked for it back. */
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
    if (this.#held === undefined) this.#limit.end(new RecipeError('Revoked', 'somebody has asked for the place in line back'));
    else void this.#yield(this.#held);
  }

  holds(held: Held): void {
    this.#held = held;
    if (this.#isAsked) void this.#yield(held);
  }

  /** What the program throws in it is its own error, and becomes an unhandled rejection; the hold is given back all the same. */
  async #yield(held: Held): Promise<void> {
    try {
      await this.#consent(held);
    } finally {
      await held.release();
    }
  }
}

/**
 * Asks a contender for its place back, and resolves when it is gone: at once if it is. Rejects with a RecipeError, TimedOut, and with the signal's
 * reason; the request stands all the same.
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
    throw new RangeError(`nothing is deleted after ${deleteAfterMs} ms by a call that ends after ${timeoutMs} ms; let timeoutMs be longer`);
  using limit = new Limit(source, options, `the end of ${path}`, callOptions.revoke);
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

/** What speaks against it is told to whoever waits. */
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
