/**
 * How a learner was synchronized, from the output of ZooKeeper's servers: as learners they log what
 * they received, as leaders what they send. Two servers of ours log neither.
 */
import { type EnsemblePeer } from '@tskeeper/harness';

export type SyncMode = 'DIFF' | 'TRUNC' | 'SNAP';

const learnerLogPatterns: readonly (readonly [RegExp, SyncMode])[] = [
  [/Getting a diff from the leader/, 'DIFF'],
  [/Truncating log to get in sync with the leader/, 'TRUNC'],
  [/Getting a snapshot from leader/, 'SNAP'],
];
const leaderLogPatterns: readonly (readonly [RegExp, SyncMode])[] = [
  [/Sending DIFF/, 'DIFF'],
  [/Sending TRUNC/, 'TRUNC'],
  [/Sending snapshot/, 'SNAP'],
];

function modeIn(line: string, patterns: readonly (readonly [RegExp, SyncMode])[]): SyncMode | undefined {
  return patterns.find(([pattern]) => pattern.test(line))?.[1];
}

/** The last line of a learner about what it received. */
export function modeFromLearnerLog(lines: readonly string[]): SyncMode | undefined {
  const modes = lines.map((line) => modeIn(line, learnerLogPatterns)).filter((mode) => mode !== undefined);
  return modes.at(-1);
}

/**
 * The last line of a leader about what it sent to this learner. Each learner has its own thread
 * there, whose name is in the line, and which names the learner before it logs what it sends.
 */
export function modeFromLeaderLog(lines: readonly string[], sid: number): SyncMode | undefined {
  const sidOf = new Map<string, number>();
  let last: SyncMode | undefined;
  for (const line of lines) {
    const thread = /\[(LearnerHandler-[^\]]*)\]/.exec(line)?.[1];
    if (thread === undefined) continue;
    const named = /Synchronizing with Learner sid: (\d+)/.exec(line)?.[1];
    if (named !== undefined) sidOf.set(thread, Number(named));
    const mode = modeIn(line, leaderLogPatterns);
    if (mode !== undefined && sidOf.get(thread) === sid) last = mode;
  }
  return last;
}

/** How `learner` was last synchronized by `leader`; undefined if neither logs it. */
export async function syncModeOf(learner: EnsemblePeer, leader: EnsemblePeer): Promise<SyncMode | undefined> {
  if (learner.kind !== 'ours') return modeFromLearnerLog(await learner.log());
  return leader.kind === 'ours' ? undefined : modeFromLeaderLog(await leader.log(), learner.sid);
}
