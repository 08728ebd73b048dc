/**
 * Checks the rounds of a double barrier against the history: `ready` names the openers of a round,
 * and a latecomer has written to its own znode.
 */
import type { Zxid } from '@tskeeper/protocol';
import type { ZnodeHistory, ZnodeLife } from '../znode-history.ts';

export const barrierPath = '/recipes/barrier';
const readyPath = `${barrierPath}/ready`;

/** A process that entered. Zxids are what its client had seen by then. */
export interface DoubleBarrierPassage {
  readonly process: string;
  readonly path: string;
  readonly enteredZxid: bigint;
  /** When it called `leave`. */
  leavingZxid: bigint | undefined;
  /** When `leave` resolved. */
  leftZxid: bigint | undefined;
}

interface Round {
  readonly ready: ZnodeLife;
  readonly openers: readonly ZnodeLife[];
  /**
   * Openers that were deleted by hand during the round and recreated with the same name, which
   * `ready` has.
   */
  readonly remade: readonly ZnodeLife[];
}

/** A participant, and its round. */
interface Participant {
  readonly life: ZnodeLife;
  readonly round: Round;
  readonly sinceZxid: Zxid;
}

export function checkRounds(passages: readonly DoubleBarrierPassage[], size: number, history: ZnodeHistory): readonly string[] {
  const all = history.childrenOf(barrierPath);
  const lives = new Map(all.map((life) => [life.path, life]));
  // A znode that was deleted by hand while its owner waited for the reply to its create is
  // recreated with the same name.
  const lifeAt = (path: string, at: Zxid) =>
    all.find((life) => life.path === path && life.czxid <= at && at < life.deletedZxid) ?? lives.get(path);
  const rounds: Round[] = history.lives
    .filter(({ path }) => path === readyPath)
    .map((ready) => {
      const paths = openersOf(ready).map((name) => `${barrierPath}/${name}`);
      const openers = paths.flatMap((path) => lifeAt(path, ready.czxid) ?? []);
      const remade = all.filter(({ path, czxid }) => paths.includes(path) && czxid > ready.czxid && czxid < ready.deletedZxid);
      return { ready, openers, remade };
    });
  const marks = new Map<string, Zxid>();
  for (const { path, zxid } of history.writes) {
    const life = lives.get(path);
    if (life !== undefined && zxid > life.czxid && !marks.has(path)) marks.set(path, zxid);
  }
  const inside = new Map<string, Participant>();
  const findings = rounds.flatMap((round, at) => checkRoundStart(round, rounds.slice(0, at), size, marks));
  for (const round of rounds) for (const life of round.openers) inside.set(life.path, { life, round, sinceZxid: round.ready.czxid });
  for (const [path, zxid] of marks) {
    const life = lives.get(path)!;
    const round = rounds.findLast(({ ready }) => ready.czxid < zxid);
    if (inside.has(path)) continue;
    if (round === undefined) findings.push(`entered: ${path} joined late at ${zxid}, when there was no round`);
    // By itself, if it was there when a round began that is over by now.
    else if (isOn(round, zxid) || round.ready.czxid > life.czxid) inside.set(path, { life, round, sinceZxid: zxid });
    else findings.push(`entered: ${path} joined late at ${zxid} a round that was over`);
  }
  return [...findings, ...passages.flatMap((passage) => checkPassage(passage, inside)), ...checkNoReturn(passages, inside)];
}

/**
 * A round begins with enough participants that are present and in no round, and after the round
 * before.
 */
function checkRoundStart({ ready, openers }: Round, before: readonly Round[], size: number, marks: ReadonlyMap<string, Zxid>): string[] {
  const at = ready.czxid;
  const findings: string[] = [];
  const names = openersOf(ready);
  if (names.length < size || openers.length < names.length || new Set(names).size < names.length)
    findings.push(`early: a round begins at ${at} with ${openers.length} of ${size}`);
  for (const opener of openers) {
    const { path, czxid, deletedZxid } = opener;
    if (czxid > at || deletedZxid <= at) findings.push(`early: ${path} opens a round at ${at}, but does not exist then`);
    if ((marks.get(path) ?? Infinity) < at) findings.push(`early: ${path} opens a round at ${at}, but is in another`);
    // A znode that was deleted by hand before its create had a reply has another life with the same
    // name.
    if (before.some((other) => other.openers.includes(opener))) findings.push(`early: ${path} opens two rounds`);
  }
  const last = before.at(-1);
  if (last !== undefined && isOn(last, at)) findings.push(`early: a round begins at ${at} before the one of ${last.ready.czxid} is over`);
  if (openers.some(({ deletedZxid }) => deletedZxid > ready.deletedZxid))
    findings.push(`ready: that of ${at} was deleted before its round was over`);
  return findings;
}

/** A round lasts as long as one of its openers is there. */
function isOn({ ready, openers, remade }: Round, zxid: Zxid): boolean {
  return ready.czxid < zxid && [...openers, ...remade.filter(({ czxid }) => czxid < zxid)].some(({ deletedZxid }) => deletedZxid > zxid);
}

function checkPassage(
  { process, path, enteredZxid, leavingZxid, leftZxid }: DoubleBarrierPassage,
  inside: ReadonlyMap<string, Participant>,
): string[] {
  const own = inside.get(path);
  if (own === undefined || own.sinceZxid > enteredZxid)
    return [`entered: ${process} entered by ${enteredZxid}, but ${path} is in no round`];
  if (leavingZxid === undefined || leftZxid === undefined) return [];
  return [...inside.values()]
    .filter(
      ({ round, sinceZxid, life }) => round === own.round && life !== own.life && sinceZxid <= leavingZxid && life.deletedZxid > leftZxid,
    )
    .map(({ life }) => `left: ${process} left by ${leftZxid}, while ${life.path} was inside`);
}

/** A process that has left a round does not enter it again. */
function checkNoReturn(passages: readonly DoubleBarrierPassage[], inside: ReadonlyMap<string, Participant>): string[] {
  const last = new Map<string, DoubleBarrierPassage>();
  const findings: string[] = [];
  for (const passage of passages) {
    const before = last.get(passage.process);
    last.set(passage.process, passage);
    const round = inside.get(passage.path)?.round;
    if (before?.leftZxid === undefined || round === undefined || inside.get(before.path)?.round !== round) continue;
    findings.push(`again: ${passage.process} left the round of ${round.ready.czxid} and entered it again`);
  }
  return findings;
}

function openersOf({ data }: ZnodeLife): readonly string[] {
  return JSON.parse(data) as readonly string[];
}
