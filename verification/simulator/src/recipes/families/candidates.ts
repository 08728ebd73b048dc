/**
 * One election, with candidates that last as long as their processes, through all of their
 * sessions: as a latch, or with work that is called whenever they lead.
 */
import type { Client } from '@tskeeper/client';
import { LeaderLatch, Election, type Leadership, RecipeError, Sessions } from '@tskeeper/recipes';
import type { SeededRandom } from '@tskeeper/runtime';
import type { Evidence, Family, FamilyRun } from '../family.ts';
import { MutualExclusionChecker, type WaitQueueRules } from '../mutual-exclusion.ts';
import type { RecipeProcess } from '../recipe-process.ts';
import { drawWaitOptions, workUnderHold } from './work-under-hold.ts';
import { deleteAsOperator, waitQueuePath, storePath } from './family-helpers.ts';

export const candidates: Family = {
  description: 'processes stand for the lead, and again whenever they have lost it',
  marks: [
    'a candidate led',
    'a candidate led in a later session',
    'a candidate was given work',
    'a candidate was closed while leading',
    'a candidate was closed',
    'an operator removed a candidate',
    'a hold was lost',
    'gave up: TimedOut',
  ],
  drawRun: (random) => new CandidateRun(random),
};

interface ActiveCandidate {
  readonly sessions: Sessions;
  readonly candidate: LeaderLatch;
  readonly firstSession: bigint;
  /** Each leadership is handed out once, until it is over. */
  readonly usedPaths: Set<string>;
}

class CandidateRun implements FamilyRun {
  readonly processes: number;
  readonly pauseMsMax: number;
  readonly #holds = new MutualExclusionChecker();
  readonly #candidates = new WeakMap<RecipeProcess, ActiveCandidate>();

  constructor(random: SeededRandom) {
    this.processes = 2 + random.below(3);
    this.pauseMsMax = 1 + random.below(400);
  }

  prepare(zk: Client): Promise<unknown> {
    return zk.ensurePath(storePath);
  }

  async turn(process: RecipeProcess): Promise<boolean> {
    const standing = this.#candidates.get(process) ?? (await this.#startCandidate(process));
    const { candidate, sessions } = standing;
    try {
      if (process.below(2) === 0) await this.#leadOnce(process, standing);
      else await this.#runWork(process, standing);
      return true;
    } finally {
      if (candidate.signal.aborted) this.#candidates.delete(process);
      if (hasFailed(standing) && !process.stopping.aborted)
        process.reportViolation(
          `its candidate was ended by ${String(candidate.signal.reason)}, while its client is ${sessions.client.endReason}`,
        );
    }
  }

  async #startCandidate(process: RecipeProcess): Promise<ActiveCandidate> {
    const sessions = await Sessions.start(() => process.session());
    const candidate = new LeaderLatch(sessions, waitQueuePath, { data: process.name });
    const standing = { sessions, candidate, firstSession: sessions.client.sessionId, usedPaths: new Set<string>() };
    this.#candidates.set(process, standing);
    process.stopping.addEventListener('abort', () => void candidate.close(), { signal: candidate.signal });
    return standing;
  }

  /** Waits until it leads, and resigns or closes the candidate. */
  async #leadOnce(process: RecipeProcess, standing: ActiveCandidate): Promise<void> {
    const { candidate } = standing;
    const leadership = await candidate.waitForLeadership(waitOf(process));
    try {
      await this.#lead(process, standing, leadership);
    } finally {
      if (process.below(5) === 0) {
        process.hitMark('a candidate was closed');
        await candidate.close();
      } else {
        await leadership.resign();
      }
    }
  }

  /** Has its work called once. */
  async #runWork(process: RecipeProcess, standing: ActiveCandidate): Promise<void> {
    const { candidate } = standing;
    const enough = new AbortController();
    const { signal, timeoutMs } = waitOf(process);
    if (timeoutMs !== undefined) process.clock.after(timeoutMs, () => enough.abort(enough));
    signal?.addEventListener('abort', () => enough.abort(enough), { signal: enough.signal });
    const work = async (leadership: Leadership, stop: AbortSignal) => {
      process.hitMark('a candidate was given work');
      await this.#lead(process, standing, leadership, stop);
      enough.abort(enough);
    };
    try {
      await candidate.run(work, { signal: enough.signal });
    } catch (error) {
      if (error !== enough) throw error;
    } finally {
      enough.abort(enough);
    }
    process.stopping.throwIfAborted();
  }

  async #lead(process: RecipeProcess, standing: ActiveCandidate, leadership: Leadership, stop?: AbortSignal): Promise<void> {
    const { sessions, candidate, firstSession, usedPaths } = standing;
    if (usedPaths.has(leadership.path)) process.reportViolation(`received ${leadership.path} again after it had resigned or lost it`);
    usedPaths.add(leadership.path);
    process.hitMark(sessions.client.sessionId === firstSession ? 'a candidate led' : 'a candidate led in a later session');
    const hold = this.#holds.acquired(process, sessions.client, leadership, 'n_');
    try {
      if (stop !== undefined) await workUntilStopped(process, candidate, leadership, stop);
      await workUnderHold(process, this.#holds, hold, storePath);
    } finally {
      hold.end();
    }
  }

  async operatorAction(operator: RecipeProcess, zk: Client): Promise<void> {
    const line = await new Election(zk, waitQueuePath).contenders();
    const victim = line[operator.below(4)];
    if (victim === undefined) return;
    operator.hitMark('an operator removed a candidate');
    await deleteAsOperator(zk, victim.path);
  }

  async leftovers(zk: Client): Promise<readonly string[]> {
    return (await new Election(zk, waitQueuePath).contenders()).map(({ path }) => path);
  }

  check({ history, recording }: Evidence): readonly string[] {
    return this.#holds.check(candidateRules, history, recording);
  }
}

const candidateRules: WaitQueueRules = { path: waitQueuePath, kinds: ['n_'], storePath: storePath, goesFirst: () => true };

/** The candidate has ended although it was not closed and there are still sessions. */
function hasFailed({ candidate: { signal }, sessions }: ActiveCandidate): boolean {
  if (!signal.aborted) return false;
  const { reason } = signal as { readonly reason: unknown };
  if (!(reason instanceof RecipeError && reason.code === 'Closed')) return true;
  return sessions.signal.aborted && sessions.client.endReason !== 'moved';
}

function waitOf(process: RecipeProcess): { timeoutMs?: number; signal?: AbortSignal } {
  return { signal: process.stopping, ...drawWaitOptions(process) };
}

/**
 * Leads as long as possible, and takes a moment to stop. Its candidate may be closed meanwhile,
 * which must wait for the work.
 */
async function workUntilStopped(process: RecipeProcess, candidate: LeaderLatch, leadership: Leadership, stop: AbortSignal): Promise<void> {
  if (process.isHealed || process.below(3) > 0) return;
  if (process.below(2) === 0) {
    process.clock.after(process.below(1000), () => {
      process.hitMark('a candidate was closed while leading');
      void candidate.close();
    });
  }
  while (!stop.aborted && !process.isHealed) {
    await process.sleep(100);
    if (leadership.signal.aborted && !stop.aborted)
      process.reportViolation(`${leadership.path} is lost, but the signal of its work was not aborted`);
  }
  await process.sleep(process.below(200));
  if (leadership.state === 'released') process.reportViolation(`${leadership.path} was released while the work was in progress`);
}
