/**
 * Rules for events.
 *
 * through:
 *
 * - with auto-reset, as many waiters pass as have taken the event, and no waiter takes it twice for
 *   one wait;
 * - without, a waiter passes only if it has seen the event set during the wait.
 *
 * set:
 *
 * - after a successful `set` there was a moment during the call in which the event was set;
 * - with auto-reset, a call sets the event at most once, and never if it reports that it was not
 *   carried out.
 */
import { type Client, KeeperError } from '@tskeeper/client';
import { parentOf } from '../../record/parent-of.ts';
import type { ZnodeHistory, ZnodeWrite, ZnodeLife } from '../znode-history.ts';

/** One wait, and what the client had seen before and after it. */
export interface WaitCall {
  readonly process: string;
  readonly session: bigint;
  readonly fromZxid: bigint;
  /** Undefined if the wait failed, or its result is unknown. */
  toZxid: bigint | undefined;
}

/** One call of `set`. */
export interface SetCall {
  readonly process: string;
  readonly session: bigint;
  /** What the client had seen before. */
  readonly fromZxid: bigint;
  /** What it had seen when the call ended; undefined while it is open. */
  toZxid: bigint | undefined;
  /** `open` until the call ends, and for good if its outcome is unknown. */
  state: 'open' | 'carried out' | 'not carried out';
}

/** Records the outcome of a call. */
export async function recordOutcome(setting: SetCall, zk: Client, call: Promise<void>): Promise<void> {
  try {
    await call;
    setting.state = 'carried out';
  } catch (error) {
    if (!KeeperError.is(error) || error.outcome !== 'unknown') setting.state = 'not carried out';
    throw error;
  } finally {
    if (setting.state !== 'open') setting.toZxid = zk.lastZxid;
  }
}

export function checkSetCalls(settings: readonly SetCall[], path: string, autoReset: boolean, history: ZnodeHistory): string[] {
  const times = history.childrenOf(path).filter((life) => life.path === `${path}/set`);
  const unset = settings.filter(
    ({ state, fromZxid, toZxid }) =>
      state === 'carried out' && !times.some(({ czxid, deletedZxid }) => czxid <= toZxid! && deletedZxid > fromZxid),
  );
  return [
    ...unset.map(
      ({ process, fromZxid, toZxid }) => `set: ${process} observed the event as set, but it never was between ${fromZxid} and ${toZxid}`,
    ),
    ...(autoReset ? setTooOften(settings, times) : []),
  ];
}

/**
 * Each time that the event was set belongs to one call of that session which was in progress then;
 * an open call may have set it or not.
 */
function setTooOften(settings: readonly SetCall[], times: readonly ZnodeLife[]): string[] {
  const left = new Set(settings.filter(({ state }) => state !== 'not carried out'));
  return times.flatMap(({ czxid, session }) => {
    // The call that ended first, since later ones may have set it later.
    const [own] = [...left]
      .filter((each) => each.session === session && each.fromZxid < czxid && untilOf(each) >= czxid)
      .sort((one, other) => untilOf(one) - untilOf(other));
    if (own !== undefined) left.delete(own);
    return own === undefined ? [`set: session ${session} set the event at ${czxid}, once more than it was asked to`] : [];
  });
}

function untilOf({ toZxid }: SetCall): number {
  return toZxid === undefined ? Infinity : Number(toZxid);
}

export function checkWaitCalls(passages: readonly WaitCall[], path: string, autoReset: boolean, history: ZnodeHistory): string[] {
  const times = history.childrenOf(path).filter((life) => life.path === `${path}/set`);
  return autoReset ? [...takenTwice(path, history), ...checkAutoReset(passages, path, times, history)] : checkManualReset(passages, times);
}

/** The writes that waiters make when they take the event. */
function takesOf(event: string, { writes }: ZnodeHistory): ZnodeWrite[] {
  return writes.filter(({ path, data }) => parentOf(path) === event && data === 'through');
}

function takenTwice(event: string, history: ZnodeHistory): string[] {
  const takers = takesOf(event, history).map(({ path }) => path);
  return takers.filter((path, at) => takers.indexOf(path) !== at).map((path) => `through: ${path} took the event twice`);
}

function checkAutoReset(passages: readonly WaitCall[], event: string, times: readonly ZnodeLife[], history: ZnodeHistory): string[] {
  const taking = new Set(takesOf(event, history).map(({ zxid }) => zxid));
  return [...new Set(passages.map(({ session }) => session))].flatMap((session) => {
    const own = passages.filter((passage) => passage.session === session);
    const through = own.filter(({ toZxid }) => toZxid !== undefined).length;
    const taken = times.filter(({ deletedBy, deletedZxid }) => deletedBy === session && taking.has(deletedZxid)).length;
    if (taken >= through && taken <= own.length) return [];
    return [`through: ${own[0]!.process} passed ${through} times of ${own.length}, but took the event ${taken} times`];
  });
}

function checkManualReset(passages: readonly WaitCall[], times: readonly ZnodeLife[]): string[] {
  return passages.flatMap(({ process, fromZxid, toZxid }) => {
    if (toZxid === undefined || times.some(({ czxid, deletedZxid }) => czxid <= toZxid && deletedZxid > fromZxid)) return [];
    return [`through: ${process} passed between ${fromZxid} and ${toZxid}, when the event was not set`];
  });
}
