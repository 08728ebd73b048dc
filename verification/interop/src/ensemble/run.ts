/**
 * The part `ensemble` (F36): ensembles of our servers and ZooKeeper's, in every pair of roles.
 *
 * A casting says which server is of which kind and which one leads. Each casting runs the same
 * steps: requests through servers that forward them; what clients of two servers see of each other;
 * every learner away for a short time and for a long one; the leader killed, and stopped, and
 * killed with txns that no other server has. At the end all must hold the same, in memory and on
 * disk. After that reconfigurations, swaps, observers of followers, local sessions and read-only
 * mode, each with its own ensembles.
 */
import type { PeerSpec, ServerKind } from '@tskeeper/harness';
import type { Report } from '../report.ts';
import { compareLogs } from './agreement.ts';
import { restartLearner, restartWithUncommittedTail, replaceLeader } from './restarts.ts';
import { runElectionPort } from './election-port.ts';
import { createEnsemble, type InteropOptions } from './ensemble.ts';
import { runLearnerIntroductions } from './learner-introductions.ts';
import { runLocalSessions } from './local-sessions.ts';
import { runObserversOfFollowers } from './observer-masters.ts';
import { runOperations } from './operations.ts';
import { runPairs } from './pairs.ts';
import { runReadOnly } from './read-only.ts';
import { reconfigurationRuns } from './reconfiguration-runs.ts';
import { runReconfigurations } from './reconfigurations.ts';
import { runRollingSwap } from './rolling-swap.ts';
import { twoAtATime } from '../two-at-a-time.ts';

interface MixedEnsemble {
  /**
   * Voters, ordered by sid. The last one leads: among equals the largest sid wins. The one before
   * it takes over.
   */
  readonly voters: readonly ServerKind[];
  readonly observer: ServerKind;
  /**
   * How a learner synchronizes that has missed more than a leader keeps in memory: from the
   * leader's log, or with a snapshot.
   */
  readonly longAbsence: 'log' | 'snapshot';
  /**
   * The server that receives the differential stream. None where 3.8.0 takes part in the answers,
   * which are compared with 3.9.5.
   */
  readonly subjectSid?: number;
}

const ours: ServerKind = 'ours';
const java39: ServerKind = 'java-3.9.5';
const java38: ServerKind = 'java-3.8.0';

/** Those of the bounded form come first. */
const mixedEnsembles: readonly MixedEnsemble[] = [
  { voters: [java38, ours, java39], observer: ours, longAbsence: 'snapshot', subjectSid: 2 },
  { voters: [java38, java39, ours], observer: java39, longAbsence: 'snapshot', subjectSid: 2 },
  { voters: [java39, ours, java38], observer: ours, longAbsence: 'log' },
  { voters: [java39, java38, ours], observer: java39, longAbsence: 'log', subjectSid: 3 },
  { voters: [java38, ours, java39], observer: ours, longAbsence: 'log', subjectSid: 4 },
  { voters: [ours, ours, java38], observer: java38, longAbsence: 'snapshot' },
  { voters: [ours, java39, ours], observer: java39, longAbsence: 'log', subjectSid: 4 },
  { voters: [java39, ours, ours], observer: ours, longAbsence: 'snapshot', subjectSid: 2 },
];
const boundedEnsembles = 4;

/**
 * More than a leader keeps in memory for returning learners: 500, the minimum that ZooKeeper
 * allows.
 */
const longAbsenceTxns = 700;
const shortAbsenceTxns = 20;

export interface EnsembleSettings {
  readonly seed: number;
  readonly bounded: boolean;
  /** How often everything is done. */
  readonly rounds: number;
}

function specsOf({ voters, observer }: MixedEnsemble): PeerSpec[] {
  const participants = voters.map((kind, index): PeerSpec => ({ sid: index + 1, kind, role: 'participant' }));
  return [...participants, { sid: voters.length + 1, kind: observer, role: 'observer' }];
}

const observerSid = 4;
const leaderSid = 3;
const successorSid = 2;

async function runMixedEnsemble(casting: MixedEnsemble, operations: number, seed: number, report: Report): Promise<void> {
  const specs = specsOf(casting);
  const name = `${casting.voters.join(', ')} with observer ${casting.observer}, ${casting.longAbsence}`;
  const options: InteropOptions = {
    config: { enforceQuota: true },
    // Below 0 the leader does not read the log on disk for a learner; at this size, the log is
    // never too long.
    properties: { 'zookeeper.snapshotSizeFactor': casting.longAbsence === 'log' ? 100_000 : -1 },
  };
  const ensemble = await createEnsemble(specs, options);
  try {
    // The intended leader is in the first quorum.
    await ensemble.launch([successorSid, leaderSid]);
    await ensemble.untilServing([successorSid, leaderSid]);
    await ensemble.launch([1, observerSid]);
    const leader = await ensemble.untilServing([1, observerSid]);
    if (leader.sid !== leaderSid) throw new Error(`server ${leader.sid} leads instead of server ${leaderSid}`);
    report.pass(`${name}: all servers have formed an ensemble`);
    const { subjectSid } = casting;
    if (subjectSid !== undefined)
      await runOperations({ name, ensemble, subject: ensemble.peer(subjectSid), seed, operations, options }, report);
    await runPairs(
      ensemble,
      [
        [1, leaderSid],
        [leaderSid, successorSid],
        [successorSid, 1],
        [observerSid, 1],
      ],
      name,
      report,
    );
    const cycles = { ensemble, report, name };
    const long = casting.longAbsence === 'log' ? 'DIFF' : 'SNAP';
    for (const sid of [1, successorSid, observerSid]) {
      await restartLearner(cycles, { sid, end: 'kill', writes: shortAbsenceTxns, expect: 'DIFF' });
      await restartLearner(cycles, { sid, end: 'stop', writes: longAbsenceTxns, expect: long });
    }
    await replaceLeader(cycles, 'kill', successorSid);
    await replaceLeader(cycles, 'stop', leaderSid);
    await restartWithUncommittedTail(cycles, { tail: 5, writes: 0 });
    await replaceLeader(cycles, 'kill', leaderSid);
    await restartWithUncommittedTail(cycles, { tail: 5, writes: 5 });
    const { differences, compared } = await compareLogs(ensemble);
    if (differences.length > 0) report.fail(`${name}: the logs`, `\n    ${differences.join('\n    ')}`);
    else report.pass(`${name}: ${compared} txns are the same bytes in the logs of more than one server`);
  } catch (error) {
    report.fail(name, error instanceof Error ? error.message : String(error));
  } finally {
    await ensemble[Symbol.asyncDispose]();
  }
}

export async function runEnsembles({ seed, bounded, rounds }: EnsembleSettings, report: Report): Promise<void> {
  let cycles = 0;
  for (let round = 0; round < rounds; round++) {
    await runElectionPort(report);
    await runLearnerIntroductions(report);
    const chosen = bounded ? mixedEnsembles.slice(0, boundedEnsembles) : mixedEnsembles;
    for (const [index, casting] of chosen.entries())
      await runMixedEnsemble(casting, bounded ? 1000 : 5000, seed + 100 * round + index, report);
    const swaps: (() => Promise<void>)[] = [
      () => runRollingSwap([java39, ours, java39], 'stop', 'static', report),
      () => runRollingSwap([java39, ours, java39], 'kill', 'dynamic', report),
    ];
    if (!bounded) {
      swaps.push(() => runRollingSwap([java38, ours, java39], 'stop', 'static', report));
      swaps.push(() => runRollingSwap([java39, ours, java39], 'kill', 'static', report));
    }
    const reconfigurations = reconfigurationRuns(seed + 1000 * round, bounded).map((settings) => async (): Promise<void> => {
      const agreed = await runReconfigurations(settings, report);
      cycles += agreed;
    });
    await twoAtATime(
      [
        ...reconfigurations,
        () => runObserversOfFollowers(bounded, report),
        ...swaps,
        () => runReadOnly(bounded, report),
        () => runLocalSessions(bounded, report),
      ],
      (run) => run(),
    );
  }
  report.note(`${cycles} cycles with reconfiguration`);
}
