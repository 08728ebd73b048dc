/**
 * Enumerates what a power loss can leave at each moment of joining. Each state is a disk of its
 * own, from which a start must lead to an allowed state. Then, from every distinct folder that such
 * a start left, the server votes and joins again in the same world.
 */
import { crc32 } from 'node:zlib';
import { crashChoices, VirtualDisk, SeededRandom, type Unsynced } from '@tskeeper/runtime';
import { readFolder } from './folder-history.ts';
import { checkFolder, checkFirstVote } from './folder-check.ts';
import { folderKinds, type JoinCase, type JoinRecording, type JoinPoint, JoinWorld, syncKinds } from './join-world.ts';

export interface CaseResult {
  readonly case: JoinCase;
  /** DIFF, TRUNC or SNAP. */
  readonly syncPacket: string;
  /** Moments that were captured. */
  readonly points: number;
  /** Distinct combinations of a disk and of what the server had promised by then. */
  readonly states: number;
  /** How many of them hold some but not all of what the leader sent. */
  readonly partialStates: number;
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
  const runner = new CaseRunner(joinCase);
  let joining: JoinRecording;
  try {
    joining = await runner.begin();
  } catch (error) {
    const finding = `without a crash: ${error instanceof Error ? error.message : String(error)}`;
    return { case: joinCase, syncPacket: 'nothing', points: 0, states: 0, partialStates: 0, joins: 0, finding };
  }
  const { points, syncPacket } = joining;
  const random = new SeededRandom(joinCase.seed);
  const seen = new Set<string>();
  const result = { case: joinCase, syncPacket, points: points.length };
  let partialStates = 0;
  // Moment after moment would reach the limit before the last one; so each gets its share per
  // round.
  let waiting = points.map((point) => ({ point, choices: crashChoices(point.image, random) }));
  const statesPerPoint = Math.max(1, Math.ceil(statesMax / points.length / 4));
  while (waiting.length > 0) {
    const unfinished: typeof waiting = [];
    for (const each of waiting) {
      const { point, choices } = each;
      for (let left = statesPerPoint; ; left--) {
        if (seen.size >= statesMax) return { ...result, states: seen.size, partialStates, joins: runner.joins, finding: undefined };
        if (left === 0) {
          unfinished.push(each);
          break;
        }
        const { value: choice, done } = choices.next();
        if (done === true) break;
        const disk = new VirtualDisk(point.image, (_item, index) => choice[index]!);
        const { accepted, epoch, acked } = point.commitments;
        const key = `${accepted} ${epoch} ${acked} ${contentsOf(disk)}`;
        if (seen.has(key)) continue;
        seen.add(key);
        const checked = await runner.checkState(disk, point, choice);
        if (checked.isPartial) partialStates++;
        if (checked.complaint === undefined) continue;
        return {
          ...result,
          states: seen.size,
          partialStates,
          joins: runner.joins,
          finding: findingText(joinCase, point, choice, checked.complaint),
        };
      }
    }
    waiting = unfinished;
  }
  return { ...result, states: seen.size, partialStates, joins: runner.joins, finding: undefined };
}

/** A hash over names and contents of all files. */
function contentsOf(disk: VirtualDisk): string {
  return String(crc32(disk.fingerprint((bytes) => crc32(bytes))));
}

class CaseRunner {
  readonly #case: JoinCase;
  #world: JoinWorld;
  #joining!: JoinRecording;
  joins = 0;
  /** Folders after a start from which the server has joined. */
  readonly #joinedFolders = new Set<string>();

  constructor(joinCase: JoinCase) {
    this.#case = joinCase;
    this.#world = new JoinWorld(joinCase);
  }

  async begin(): Promise<JoinRecording> {
    this.#joining = await this.#world.record();
    return this.#joining;
  }

  async checkState(
    disk: VirtualDisk,
    { image, commitments }: JoinPoint,
    choice: readonly number[],
  ): Promise<{ complaint: string | undefined; isPartial: boolean }> {
    const joining = this.#joining;
    const { learner } = this.#world;
    let isPartial = false;
    try {
      const found = await readFolder(disk, learner.core, learner.options);
      isPartial = found.lastZxid > joining.before.lastZxid && found.lastZxid < joining.leader.lastZxid;
      const complaint = checkFolder(found, commitments, joining);
      if (complaint !== undefined) return { complaint, isPartial };
      // The start has removed torn and unfinished files. From equal folders everything continues in
      // the same way.
      const folder = contentsOf(disk);
      if (this.#joinedFolders.has(folder)) return { complaint: undefined, isPartial };
      this.#joinedFolders.add(folder);
      if (++this.joins % joinsPerWorld === 0) {
        this.#world = new JoinWorld(this.#case);
        await this.#world.record();
      }
      const words = await this.#world.joinAgain(image, choice, joining);
      return { complaint: checkFirstVote(words.firstVote, sid, found), isPartial };
    } catch (error) {
      return { complaint: error instanceof Error ? error.message : String(error), isPartial };
    }
  }
}

function findingText(
  { folder, sync, seed }: JoinCase,
  { image, commitments }: JoinPoint,
  choice: readonly number[],
  complaint: string,
): string {
  const fates = image.unsynced.map((item, index) => {
    const bytes = choice[index]!;
    const all = item.kind === 'bytes' ? item.length : 1;
    const fate = bytes === 0 ? 'lost' : bytes < all ? `first ${bytes} bytes of` : 'kept';
    return `    ${fate} ${unsyncedText(item)} of ${item.path}`;
  });
  const committed = `accepted epoch ${commitments.accepted}, part of epoch ${commitments.epoch}, acknowledged 0x${commitments.acked.toString(16)}`;
  return [complaint, `  folder ${folder}, sync ${sync}, seed ${seed}; the server had sent: ${committed}`, ...fates].join('\n');
}

function unsyncedText(item: Unsynced): string {
  if (item.kind === 'bytes') return `bytes ${item.position} to ${item.position + item.length}`;
  return item.kind === 'size' ? `size ${item.size}` : item.change;
}
