/**
 * Rules for observers (observed): each state shown was true at a moment that the client may have
 * seen, and states are shown in order. An observer that had to be up to date by then was.
 */
import type { Millis } from '@tskeeper/protocol';
import type { ZnodeHistory, ZnodeLife } from '../znode-history.ts';

/** What was shown, by key: `none` for what does not exist. */
export interface Observation {
  readonly values: ReadonlyMap<string, string>;
  /** Not earlier than this. */
  readonly fromZxid: bigint;
  /**
   * When it was shown. A zxid does not show this: a client tracks the zxids of replies, not those
   * of events.
   */
  readonly atMs: Millis;
}

/** A value, from the txn that caused it to the one that ended it. */
export interface Phase {
  readonly value: string;
  readonly fromZxid: number;
  /** It did not have the value earlier than this. */
  readonly fromMs: Millis;
  /** Infinity: to the end. */
  toZxid: number;
}

/** A txn that may have changed a value. */
export interface Change {
  readonly zxid: number;
  readonly atMs: Millis;
}

export const none = 'none';

/** From beginning to end, each different from the one before. */
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

/** The creation and the end of a znode. */
export function creationAndDeletion({ czxid, createdMs, deletedZxid, deletedMs }: ZnodeLife): Change[] {
  return [
    { zxid: czxid, atMs: createdMs },
    { zxid: deletedZxid, atMs: deletedMs },
  ];
}

/** The values of a znode while it existed. */
export function phasesOfZnode(path: string, { lives, writes }: ZnodeHistory, valueOf: (data: string) => string): Phase[] {
  const own = lives.filter((life) => life.path === path);
  const written = writes.filter((write) => write.path === path);
  return phasesOf([...own.flatMap(creationAndDeletion), ...written], (at) =>
    own.some((life) => isThere(life, at)) ? valueOf(written.findLast(({ zxid }) => zxid <= at)!.data) : none,
  );
}

export function isThere({ czxid, deletedZxid }: ZnodeLife, atZxid: number): boolean {
  return czxid <= atZxid && deletedZxid > atZxid;
}

/** `sightings` of one loop or one copy, in order. */
export function checkObservations(
  process: string,
  sightings: readonly Observation[],
  phasesBy: ReadonlyMap<string, readonly Phase[]>,
): string[] {
  const shown = new Set(sightings.flatMap(({ values }) => [...values.keys()]));
  return [...new Set([...phasesBy.keys(), ...shown])].flatMap((key) =>
    checkObservationsOf(process, key, sightings, phasesBy.get(key) ?? never),
  );
}

const never: readonly Phase[] = [{ value: none, fromZxid: 0, fromMs: 0, toZxid: Infinity }];

/**
 * Assigns each sighting to the earliest phase that fits, which leaves the most to the later ones.
 */
function checkObservationsOf(process: string, key: string, sightings: readonly Observation[], phases: readonly Phase[]): string[] {
  let atZxid = 0;
  for (const { values, fromZxid, atMs } of sightings) {
    atZxid = Math.max(atZxid, Number(fromZxid));
    const value = values.get(key) ?? none;
    const phase = phases.find((each) => each.value === value && each.toZxid > atZxid && each.fromMs <= atMs);
    if (phase === undefined)
      return [
        `observed: ${process} was shown ${value} for ${key} at ${atMs.toFixed(3)}, which was not its value at any time since ${atZxid}`,
      ];
    atZxid = Math.max(atZxid, phase.fromZxid);
  }
  return [];
}
