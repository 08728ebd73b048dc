/**
 * Judges the rounds of a double barrier by what the ensemble has agreed on: `ready` names those who opened a round, and a participant that has come late has
 * written to its own znode.
 */
import type { Zxid } from '@tskeeper/protocol';
import type { History, ZnodeLife } from '../history.ts';

export const barrierPath = '/recipes/barrier';
const readyPath = `${barrierPath}/ready`;

/** A process that was let in. Zxids are what its client had seen by then. */
export interface Passage {
  readonly who: string;
  readonly path: string;
  readonly enteredZxid: bigint;
  /** When it called `leave`. */
  leavingZxid: bigint | undefined;
  /** When that had resolved. */
  leftZxid: bigint | undefined;
}

interface Round {
  readonly ready: ZnodeLife;
  readonly openers: readonly ZnodeLife[];
  /** Openers that were deleted by hand during the round and made once more by the same name, which `ready` has. */
  readonly remade: readonly ZnodeLife[];
}

/** A participant, and the round it is in. */
interface Inside {
  readonly life: ZnodeLife;
  readonly round: Round;
  readonly sinceZxid: Zxid;
}

export function judgeRounds(passages: readonly Passage[], size: number, history: History): readonly string[] {
  const all = history.below(barrierPath);
  const lives = new Map(all.map((life) => [life.path, life]));
  // One that was deleted by hand while its maker waited for the answer to its making is made once more, by the same name.
  const lifeAt = (path: string, at: Zxid) =>
    all.find((life) => life.path === path && life.czxid <= at && at < life.goneZxid) ?? lives.get(path);
  const rounds: Round[] = history.lives
    .filter(({ path }) => path === readyPath)
    .map((ready) => {
      const paths = openersOf(ready).map((name) => `${barrierPath}/${name}`);
      const openers = paths.flatMap((path) => lifeAt(path, ready.czxid) ?? []);
      const remade = all.filter(({ path, czxid }) => paths.includes(path) && czxid > ready.czxid && czxid < ready.goneZxid);
      return { ready, openers, remade };
    });
  const marks = new Map<string, Zxid>();
  for (const { path, zxid } of history.writes) {
    const life = lives.get(path);
    if (life !== undefined && zxid > life.czxid && !marks.has(path)) marks.set(path, zxid);
  }
  const inside = new Map<string, Inside>();
  const findings = rounds.flatMap((round, at) => beginning(round, rounds.slice(0, at), size, marks));
  for (const round of rounds) for (const life of round.openers) inside.set(life.path, { life, round, sinceZxid: round.ready.czxid });
  for (const [path, zxid] of marks) {
    const life = lives.get(path)!;
    const round = rounds.findLast(({ ready }) => ready.czxid < zxid);
    if (inside.has(path)) continue;
    if (round === undefined) findings.push(`entered: ${path} has come late at ${zxid}, and there was no round`);
    // Of its own accord, if it was there when a round began that is over by now.
    else if (isOn(round, zxid) || round.ready.czxid > life.czxid) inside.set(path, { life, round, sinceZxid: zxid });
    else findings.push(`entered: ${path} has come late at ${zxid} into a round that was over`);
  }
  return [...findings, ...passages.flatMap((passage) => passing(passage, inside)), ...returning(passages, inside)];
}

/** Rounds begin with as many as it takes, who are there and have been in none, and one by one. */
function beginning({ ready, openers }: Round, before: readonly Round[], size: number, marks: ReadonlyMap<string, Zxid>): string[] {
  const at = ready.czxid;
  const findings: string[] = [];
  const names = openersOf(ready);
  if (names.length < size || openers.length < names.length || new Set(names).size < names.length)
    findings.push(`early: a round begins at ${at} with ${openers.length} of ${size}`);
  for (const opener of openers) {
    const { path, czxid, goneZxid } = opener;
    if (czxid > at || goneZxid <= at) findings.push(`early: ${path} opens a round at ${at}, and is not there`);
    if ((marks.get(path) ?? Infinity) < at) findings.push(`early: ${path} opens a round at ${at}, and is in another`);
    // One that was deleted by hand before its making was known has another life by the same name.
    if (before.some((other) => other.openers.includes(opener))) findings.push(`early: ${path} opens two rounds`);
  }
  const last = before.at(-1);
  if (last !== undefined && isOn(last, at)) findings.push(`early: a round begins at ${at} while the one of ${last.ready.czxid} is on`);
  if (openers.some(({ goneZxid }) => goneZxid > ready.goneZxid)) findings.push(`ready: of ${at} was taken away while its round was on`);
  return findings;
}

/** As long as a participant is there that has opened it. */
function isOn({ ready, openers, remade }: Round, zxid: Zxid): boolean {
  return ready.czxid < zxid && [...openers, ...remade.filter(({ czxid }) => czxid < zxid)].some(({ goneZxid }) => goneZxid > zxid);
}

function passing({ who, path, enteredZxid, leavingZxid, leftZxid }: Passage, inside: ReadonlyMap<string, Inside>): string[] {
  const own = inside.get(path);
  if (own === undefined || own.sinceZxid > enteredZxid) return [`entered: ${who} was let in by ${enteredZxid}, and ${path} is in no round`];
  if (leavingZxid === undefined || leftZxid === undefined) return [];
  return [...inside.values()]
    .filter(
      ({ round, sinceZxid, life }) => round === own.round && life !== own.life && sinceZxid <= leavingZxid && life.goneZxid > leftZxid,
    )
    .map(({ life }) => `left: ${who} has left by ${leftZxid}, and ${life.path} was inside`);
}

/** Who has left a round does not come into it again. */
function returning(passages: readonly Passage[], inside: ReadonlyMap<string, Inside>): string[] {
  const last = new Map<string, Passage>();
  const findings: string[] = [];
  for (const passage of passages) {
    const before = last.get(passage.who);
    last.set(passage.who, passage);
    const round = inside.get(passage.path)?.round;
    if (before?.leftZxid === undefined || round === undefined || inside.get(before.path)?.round !== round) continue;
    findings.push(`again: ${passage.who} has left the round of ${round.ready.czxid}, and comes into it once more`);
  }
  return findings;
}

function openersOf({ data }: ZnodeLife): readonly string[] {
  return JSON.parse(data) as readonly string[];
}
