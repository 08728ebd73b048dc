/**
 * What must be true of an event (through):
 *
 * - that lets one through each time it is set: as many go through as have taken it away, and nobody takes it twice for one wait;
 * - that lets through everybody: whoever goes through has seen it set, or that it had been.
 */
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
