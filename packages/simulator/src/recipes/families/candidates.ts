/**
 * One election, with candidates that last as long as their processes, through all of their
 * sessions: as a latch, or with work that is called whenever they lead.
 */
import type { Client } from '@tskeeper/client';
import { Candidate, Election, type Leadership, RecipeError, Sessions } from '@tskeeper/recipes';
import type { SeededRandom } from '@tskeeper/runtime';
import type { Evidence, Family, RecipeStory } from '../family.ts';
import { Holds, type LineRules } from '../holds.ts';
import type { RecipeProcess } from '../recipe-process.ts';
import { drawWait, workWith } from './holding.ts';
import { deleteByHand, linePath, storePath } from './line-of-story.ts';

export const candidates: Family = {
  what: 'processes stand for the lead, and again whenever they have lost it',
  marks: [
    'a candidate led',
    'a candidate led in a later session',
    'a candidate was given work',
    'a candidate was closed at its work',
    'a candidate was closed',
    'a candidate was removed by hand',
    'a hold was lost',
    'gave up: TimedOut',
  ],
  draw: (random) => new CandidateStory(random),
};

interface Standing {
  readonly sessions: Sessions;
  readonly candidate: Candidate;
  readonly firstSession: bigint;
  /** Each leadership is handed out once, until it is over. */
  readonly had: Set<string>;
}

class CandidateStory implements RecipeStory {
  readonly processes: number;
  readonly restMsMax: number;
  readonly #holds = new Holds();
  readonly #standing = new WeakMap<RecipeProcess, Standing>();

  constructor(random: SeededRandom) {
    this.processes = 2 + random.below(3);
    this.restMsMax = 1 + random.below(400);
  }

  prepare(zk: Client): Promise<unknown> {
    return zk.ensurePath(storePath);
  }

  async turn(process: RecipeProcess): Promise<boolean> {
    const standing = this.#standing.get(process) ?? (await this.#stand(process));
    const { candidate, sessions } = standing;
    try {
      if (process.below(2) === 0) await this.#latch(process, standing);
      else await this.#select(process, standing);
      return true;
    } finally {
      if (candidate.signal.aborted) this.#standing.delete(process);
      if (hasFailed(standing) && !process.stopping.aborted)
        process.complain(
          `its candidate was ended by ${String(candidate.signal.reason)}, while its client is ${sessions.client.closedBecause}`,
        );
    }
  }

  async #stand(process: RecipeProcess): Promise<Standing> {
    const sessions = await Sessions.start(() => process.session());
    const candidate = new Candidate(sessions, linePath, { data: process.name });
    const standing = { sessions, candidate, firstSession: sessions.client.sessionId, had: new Set<string>() };
    this.#standing.set(process, standing);
    process.stopping.addEventListener('abort', () => void candidate.close(), { signal: candidate.signal });
    return standing;
  }

  /** Waits until it leads, and resigns or closes the candidate. */
  async #latch(process: RecipeProcess, standing: Standing): Promise<void> {
    const { candidate } = standing;
    const leadership = await candidate.leading(waitOf(process));
    try {
      await this.#lead(process, standing, leadership);
    } finally {
      if (process.below(5) === 0) {
        process.note('a candidate was closed');
        await candidate.close();
      } else {
        await leadership.resign();
      }
    }
  }

  /** Has its work called once. */
  async #select(process: RecipeProcess, standing: Standing): Promise<void> {
    const { candidate } = standing;
    const enough = new AbortController();
    const { signal, timeoutMs } = waitOf(process);
    if (timeoutMs !== undefined) process.clock.after(timeoutMs, () => enough.abort(enough));
    signal?.addEventListener('abort', () => enough.abort(enough), { signal: enough.signal });
    const work = async (leadership: Leadership, stop: AbortSignal) => {
      process.note('a candidate was given work');
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

  async #lead(process: RecipeProcess, standing: Standing, leadership: Leadership, stop?: AbortSignal): Promise<void> {
    const { sessions, candidate, firstSession, had } = standing;
    if (had.has(leadership.path)) process.complain(`received ${leadership.path} again after it had resigned or lost it`);
    had.add(leadership.path);
    process.note(sessions.client.sessionId === firstSession ? 'a candidate led' : 'a candidate led in a later session');
    const hold = this.#holds.enter(process, sessions.client, leadership, 'n_');
    try {
      if (stop !== undefined) await workUntilTold(process, candidate, leadership, stop);
      await workWith(process, this.#holds, hold, storePath);
    } finally {
      hold.over();
    }
  }

  async meddle(operator: RecipeProcess, zk: Client): Promise<void> {
    const line = await new Election(zk, linePath).candidates();
    const victim = line[operator.below(4)];
    if (victim === undefined) return;
    operator.note('a candidate was removed by hand');
    await deleteByHand(zk, victim.path);
  }

  async left(zk: Client): Promise<readonly string[]> {
    return (await new Election(zk, linePath).candidates()).map(({ path }) => path);
  }

  judge({ history, recording }: Evidence): readonly string[] {
    return this.#holds.judge(candidateRules, history, recording);
  }
}

const candidateRules: LineRules = { path: linePath, kinds: ['n_'], store: storePath, goesFirst: () => true };

/** The candidate has ended although it was not closed and there are still sessions. */
function hasFailed({ candidate: { signal }, sessions }: Standing): boolean {
  if (!signal.aborted) return false;
  const { reason } = signal as { readonly reason: unknown };
  if (!(reason instanceof RecipeError && reason.code === 'Closed')) return true;
  return sessions.signal.aborted && sessions.client.closedBecause !== 'moved';
}

function waitOf(process: RecipeProcess): { timeoutMs?: number; signal?: AbortSignal } {
  return { signal: process.stopping, ...drawWait(process) };
}

/**
 * Leads as long as possible, and takes a moment to stop. Its candidate may be closed meanwhile,
 * which must wait for the work.
 */
async function workUntilTold(process: RecipeProcess, candidate: Candidate, leadership: Leadership, stop: AbortSignal): Promise<void> {
  if (process.isHealed || process.below(3) > 0) return;
  if (process.below(2) === 0) {
    process.clock.after(process.below(1000), () => {
      process.note('a candidate was closed at its work');
      void candidate.close();
    });
  }
  while (!stop.aborted && !process.isHealed) {
    await process.pause(100);
    if (leadership.signal.aborted && !stop.aborted) process.complain(`${leadership.path} is lost, but its work was not told to stop`);
  }
  await process.pause(process.below(200));
  if (leadership.state === 'released') process.complain(`${leadership.path} was released while the work was in progress`);
}
