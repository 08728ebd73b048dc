/**
 * Enumerates what a power loss can leave at each moment of joining. Each state is a disk of its
 * own, from which a start must lead to an allowed state. Then, from every distinct folder that such
 * a start left, the server votes and joins again in the same world.
 */
import { crc32 } from 'node:zlib';
import { crashChoices, MemoryDisk, SeededRandom, type Unsynced } from '@tskeeper/runtime';
import { readFolder } from './folder-history.ts';
import { complaintOf, complaintOfVote } from './judge.ts';
import { folderKinds, type JoinCase, type Joining, type JoinPoint, JoinWorld, syncKinds } from './joining.ts';

export interface CaseResult {
  readonly case: JoinCase;
  /** DIFF, TRUNC or SNAP. */
  readonly opening: string;
  /** Moments that were captured. */
  readonly points: number;
  /** Distinct combinations of a disk and of what the server had promised by then. */
  readonly states: number;
  /** How many of them hold some but not all of what the leader sent. */
  readonly partial: number;
  /** Distinct folders after a start, from which the server joined again. */
  readonly joins: number;
  /** The first violation. */
  readonly finding: string | undefined;
}

/** After this many joins the world is rebuilt, since it keeps a recording of everything. */
const joinsPerWorld = 300;
const sid = 3;

/** Every kind of folder with every kind of synchronisation, once per seed. */
export function* joinCases(firstSeed: number): Generator<JoinCase> {
  for (let seed = firstSeed; ; seed++) {
    for (const folder of folderKinds) for (const sync of syncKinds) yield { folder, sync, seed };
  }
}

/** Enumerates at most `statesMax` states of a case, spread over its moments. */
export async function runCase(joinCase: JoinCase, statesMax: number): Promise<CaseResult> {
  const rig = new Rig(joinCase);
  let joining: Joining;
  try {
    joining = await rig.begin();
  } catch (error) {
    const finding = `without a crash: ${error instanceof Error ? error.message : String(error)}`;
    return { case: joinCase, opening: 'nothing', points: 0, states: 0, partial: 0, joins: 0, finding };
  }
  const { points, opening } = joining;
  const random = new SeededRandom(joinCase.seed);
  const seen = new Set<string>();
  const result = { case: joinCase, opening, points: points.length };
  let partial = 0;
  // Moment after moment would reach the limit before the last one; so each gets its share per
  // round.
  let waiting = points.map((point) => ({ point, choices: crashChoices(point.image, random) }));
  const share = Math.max(1, Math.ceil(statesMax / points.length / 4));
  while (waiting.length > 0) {
    const unfinished: typeof waiting = [];
    for (const each of waiting) {
      const { point, choices } = each;
      for (let left = share; ; left--) {
        if (seen.size >= statesMax) return { ...result, states: seen.size, partial, joins: rig.joins, finding: undefined };
        if (left === 0) {
          unfinished.push(each);
          break;
        }
        const { value: choice, done } = choices.next();
        if (done === true) break;
        const disk = new MemoryDisk(point.image, (_item, index) => choice[index]!);
        const { accepted, epoch, acked } = point.promises;
        const key = `${accepted} ${epoch} ${acked} ${contentsOf(disk)}`;
        if (seen.has(key)) continue;
        seen.add(key);
        const judged = await rig.judge(disk, point, choice);
        if (judged.isPartial) partial++;
        if (judged.complaint === undefined) continue;
        return { ...result, states: seen.size, partial, joins: rig.joins, finding: findingText(joinCase, point, choice, judged.complaint) };
      }
    }
    waiting = unfinished;
  }
  return { ...result, states: seen.size, partial, joins: rig.joins, finding: undefined };
}

/** A hash over names and contents of all files. */
function contentsOf(disk: MemoryDisk): string {
  return String(crc32(disk.fingerprint((bytes) => crc32(bytes))));
}

class Rig {
  readonly #case: JoinCase;
  #world: JoinWorld;
  #joining!: Joining;
  joins = 0;
  /** Folders after a start from which the server has joined. */
  readonly #joined = new Set<string>();

  constructor(joinCase: JoinCase) {
    this.#case = joinCase;
    this.#world = new JoinWorld(joinCase);
  }

  async begin(): Promise<Joining> {
    this.#joining = await this.#world.record();
    return this.#joining;
  }

  async judge(
    disk: MemoryDisk,
    { image, promises }: JoinPoint,
    choice: readonly number[],
  ): Promise<{ complaint: string | undefined; isPartial: boolean }> {
    const joining = this.#joining;
    const { learner } = this.#world;
    let isPartial = false;
    try {
      const found = await readFolder(disk, learner.core, learner.options);
      isPartial = found.lastZxid > joining.before.lastZxid && found.lastZxid < joining.leader.lastZxid;
      const complaint = complaintOf(found, promises, joining);
      if (complaint !== undefined) return { complaint, isPartial };
      // The start has removed torn and unfinished files. From equal folders everything continues in
      // the same way.
      const folder = contentsOf(disk);
      if (this.#joined.has(folder)) return { complaint: undefined, isPartial };
      this.#joined.add(folder);
      if (++this.joins % joinsPerWorld === 0) {
        this.#world = new JoinWorld(this.#case);
        await this.#world.record();
      }
      const words = await this.#world.joinAgain(image, choice, joining);
      return { complaint: complaintOfVote(words.firstVote, sid, found), isPartial };
    } catch (error) {
      return { complaint: error instanceof Error ? error.message : String(error), isPartial };
    }
  }
}

function findingText(
  { folder, sync, seed }: JoinCase,
  { image, promises }: JoinPoint,
  choice: readonly number[],
  complaint: string,
): string {
  const fates = image.unsynced.map((item, index) => {
    const bytes = choice[index]!;
    const all = item.kind === 'bytes' ? item.length : 1;
    const fate = bytes === 0 ? 'lost' : bytes < all ? `first ${bytes} bytes of` : 'kept';
    return `    ${fate} ${whatIs(item)} of ${item.path}`;
  });
  const said = `accepted epoch ${promises.accepted}, part of epoch ${promises.epoch}, acknowledged 0x${promises.acked.toString(16)}`;
  return [complaint, `  folder ${folder}, sync ${sync}, seed ${seed}; the server had sent: ${said}`, ...fates].join('\n');
}

function whatIs(item: Unsynced): string {
  if (item.kind === 'bytes') return `bytes ${item.position} to ${item.position + item.length}`;
  return item.kind === 'size' ? `size ${item.size}` : item.change;
}
