/**
 * What must be true of an event (through):
 *
 * - that lets one through each time it is set: as many go through as have taken it away, and nobody takes it twice for one wait;
 * - that lets through everybody: whoever goes through has seen it set, or that it had been;
 *
 * and of those who set it (set):
 *
 * - whoever is told that it is set has seen a moment in which it was;
 * - where it lets one through each time, a call sets it once at most, and never when it is said not to have been carried out.
 */
import { type Client, KeeperError } from '@tskeeper/client';
import { parentOf } from '../../replay/replay.ts';
import type { History, Written, ZnodeLife } from '../history.ts';

/** One wait, and what the client had seen before and behind it. */
export interface Passage {
  readonly process: string;
  readonly session: bigint;
  readonly fromZxid: bigint;
  /** undefined: it was given up, or nobody can say. */
  toZxid: bigint | undefined;
}

/** One call of `set`. */
export interface Setting {
  readonly process: string;
  readonly session: bigint;
  /** What the client had seen before. */
  readonly fromZxid: bigint;
  /** What it had seen when the call was over; undefined as long as it is open. */
  toZxid: bigint | undefined;
  /** `open` until the call is over, and for good when nobody can say. */
  state: 'open' | 'carried out' | 'not carried out';
}

/** Notes down what is known of it when it is over. */
export async function settled(setting: Setting, zk: Client, call: Promise<void>): Promise<void> {
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

export function judgeSettings(settings: readonly Setting[], path: string, autoReset: boolean, history: History): string[] {
  const times = history.below(path).filter((life) => life.path === `${path}/set`);
  const unset = settings.filter(
    ({ state, fromZxid, toZxid }) =>
      state === 'carried out' && !times.some(({ czxid, goneZxid }) => czxid <= toZxid! && goneZxid > fromZxid),
  );
  return [
    ...unset.map(
      ({ process, fromZxid, toZxid }) =>
        `set: ${process} was told that the event is set, and it never was between ${fromZxid} and ${toZxid}`,
    ),
    ...(autoReset ? setTooOften(settings, times) : []),
  ];
}

/** Each time that it was set belongs to one call of that session, which was under way then; one that is still open may have set it, or not. */
function setTooOften(settings: readonly Setting[], times: readonly ZnodeLife[]): string[] {
  const left = new Set(settings.filter(({ state }) => state !== 'not carried out'));
  return times.flatMap(({ czxid, session }) => {
    // The one that was over first, as those that go on may have done it later.
    const [own] = [...left]
      .filter((each) => each.session === session && each.fromZxid < czxid && untilOf(each) >= czxid)
      .sort((one, other) => untilOf(one) - untilOf(other));
    if (own !== undefined) left.delete(own);
    return own === undefined ? [`set: session ${session} has set the event at ${czxid}, which is once more than it was asked to`] : [];
  });
}

function untilOf({ toZxid }: Setting): number {
  return toZxid === undefined ? Infinity : Number(toZxid);
}

export function judgePassages(passages: readonly Passage[], path: string, autoReset: boolean, history: History): string[] {
  const times = history.below(path).filter((life) => life.path === `${path}/set`);
  return autoReset ? [...takenTwice(path, history), ...judgeTaken(passages, path, times, history)] : judgeOpen(passages, times);
}

/** What those who take it write along. */
function takings(event: string, { writes }: History): Written[] {
  return writes.filter(({ path, data }) => parentOf(path) === event && data === 'through');
}

function takenTwice(event: string, history: History): string[] {
  const takers = takings(event, history).map(({ path }) => path);
  return takers.filter((path, at) => takers.indexOf(path) !== at).map((path) => `through: ${path} has taken the event twice`);
}

function judgeTaken(passages: readonly Passage[], event: string, times: readonly ZnodeLife[], history: History): string[] {
  const taking = new Set(takings(event, history).map(({ zxid }) => zxid));
  return [...new Set(passages.map(({ session }) => session))].flatMap((session) => {
    const own = passages.filter((passage) => passage.session === session);
    const through = own.filter(({ toZxid }) => toZxid !== undefined).length;
    const taken = times.filter(({ goneBy, goneZxid }) => goneBy === session && taking.has(goneZxid)).length;
    if (taken >= through && taken <= own.length) return [];
    return [`through: ${own[0]!.process} went through ${through} times of ${own.length}, and has taken the event ${taken} times`];
  });
}

function judgeOpen(passages: readonly Passage[], times: readonly ZnodeLife[]): string[] {
  return passages.flatMap(({ process, fromZxid, toZxid }) => {
    if (toZxid === undefined || times.some(({ czxid, goneZxid }) => czxid <= toZxid && goneZxid > fromZxid)) return [];
    return [`through: ${process} was let through between ${fromZxid} and ${toZxid}, when the event was not set`];
  });
}
