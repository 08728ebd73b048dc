/**
 * What must be true of what those who look on were shown of others (observed): it was so in a moment that their client may have seen, and each moment is the one
 * before or a later one. Whoever had to be up to date by then was.
 */
import type { Millis } from '@tskeeper/protocol';
import type { History, ZnodeLife } from '../history.ts';

/** What was shown, by what it is of: `none` of what is not there. */
export interface Sighting {
  readonly values: ReadonlyMap<string, string>;
  /** Not of a moment ahead of this. */
  readonly fromZxid: bigint;
  /** When it was shown. By zxids that cannot be said, as a client counts those of answers, and not those of events. */
  readonly atMs: Millis;
}

/** What something was from one txn to the next that changed it. */
export interface Phase {
  readonly value: string;
  readonly fromZxid: number;
  /** It was not so earlier than that. */
  readonly fromMs: Millis;
  /** Infinity: to the end. */
  toZxid: number;
}

/** A txn by which something may have become another. */
export interface Change {
  readonly zxid: number;
  readonly atMs: Millis;
}

export const none = 'none';

/** From beginning to end, each another than the one before. */
export function phasesOf(changes: readonly Change[], valueAt: (zxid: number) => string): Phase[] {
  const phases: Phase[] = [{ value: none, fromZxid: 0, fromMs: 0, toZxid: Infinity }];
  for (const { zxid, atMs } of changes.toSorted((one, other) => one.zxid - other.zxid)) {
    const last = phases.at(-1)!;
    const value = valueAt(zxid);
    if (value === last.value || zxid === Infinity) continue;
    last.toZxid = zxid;
    phases.push({ value, fromZxid: zxid, fromMs: atMs, toZxid: Infinity });
  }
  return phases;
}

/** Its beginning and its end. */
export function endsOf({ czxid, madeMs, goneZxid, goneMs }: ZnodeLife): Change[] {
  return [
    { zxid: czxid, atMs: madeMs },
    { zxid: goneZxid, atMs: goneMs },
  ];
}

/** What a znode said, as long as it was there. */
export function phasesOfZnode(path: string, { lives, writes }: History, valueOf: (data: string) => string): Phase[] {
  const own = lives.filter((life) => life.path === path);
  const written = writes.filter((write) => write.path === path);
  return phasesOf([...own.flatMap(endsOf), ...written], (at) =>
    own.some((life) => isThere(life, at)) ? valueOf(written.findLast(({ zxid }) => zxid <= at)!.data) : none,
  );
}

export function isThere({ czxid, goneZxid }: ZnodeLife, atZxid: number): boolean {
  return czxid <= atZxid && goneZxid > atZxid;
}

/** `sightings` of one loop or one copy, as they came. */
export function judgeSightings(process: string, sightings: readonly Sighting[], phasesBy: ReadonlyMap<string, readonly Phase[]>): string[] {
  const shown = new Set(sightings.flatMap(({ values }) => [...values.keys()]));
  return [...new Set([...phasesBy.keys(), ...shown])].flatMap((key) => judgeOne(process, key, sightings, phasesBy.get(key) ?? never));
}

const never: readonly Phase[] = [{ value: none, fromZxid: 0, fromMs: 0, toZxid: Infinity }];

/** Each is taken to be of the earliest moment that fits, which leaves most to those that follow. */
function judgeOne(process: string, key: string, sightings: readonly Sighting[], phases: readonly Phase[]): string[] {
  let atZxid = 0;
  for (const { values, fromZxid, atMs } of sightings) {
    atZxid = Math.max(atZxid, Number(fromZxid));
    const value = values.get(key) ?? none;
    const phase = phases.find((each) => each.value === value && each.toZxid > atZxid && each.fromMs <= atMs);
    if (phase === undefined)
      return [`observed: ${process} was shown ${value} as ${key} at ${atMs.toFixed(3)}, and it was not so at any time since ${atZxid}`];
    atZxid = Math.max(atZxid, phase.fromZxid);
  }
  return [];
}
