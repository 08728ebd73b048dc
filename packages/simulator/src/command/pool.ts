/**
 * Runs seeds in child processes, as many at a time as there are processors. Each child is this program again; what it is told comes over
 * the channel, and so do its reports.
 */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Hunter } from '../mutants/mutant.ts';
import { nothingReported, type SeedReport } from './seed-report.ts';

const simulator = fileURLToPath(new URL('../../bin/sim.js', import.meta.url));
const loader = new URL('../../bin/mutant.js', import.meta.url).href;

export interface PoolOptions {
  readonly jobs: number;
  readonly mutant?: string | undefined;
  /** Default: seeds. */
  readonly hunter?: Hunter;
  /** In milliseconds of real time. A process that takes longer for one seed spins, and is killed. Default: ten times what the longest seed takes. */
  readonly seedMaxMs?: number;
  /** The module that a child process runs: it receives seeds as messages and sends a report for each. Default: the simulator's program. */
  readonly program?: string;
}

const seedMaxMsDefault = 240_000;

/**
 * All processors are at work on seeds, so threads of the collector only get in their way; and a seed leaves little behind, so it is cheap to
 * collect late. It saves a tenth of the time.
 */
const memoryFlags: readonly string[] = [
  '--single-threaded-gc',
  '--min-semi-space-size=32',
  '--max-semi-space-size=64',
  '--initial-old-space-size=512',
];

export class Pool {
  readonly #options: PoolOptions;

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  /** Takes seeds from `next` until it gives none, and reports each. */
  async run(next: () => number | undefined, report: (report: SeedReport) => void): Promise<void> {
    const { jobs } = this.#options;
    await Promise.all(Array.from({ length: jobs }, () => this.#work(next, report)));
  }

  #work(next: () => number | undefined, report: (report: SeedReport) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      const { mutant, hunter = 'seeds', seedMaxMs = seedMaxMsDefault, program = simulator } = this.#options;
      const child = fork(program, ['worker', '--hunter', hunter], {
        execArgv: mutant === undefined ? [...memoryFlags] : [...memoryFlags, '--import', loader],
        // What a mutant has to say before it falls is not what anyone waits for.
        stdio: ['ignore', 'inherit', mutant === undefined ? 'inherit' : 'ignore', 'ipc'],
        env: mutant === undefined ? process.env : { ...process.env, TSKEEPER_MUTANT: mutant },
      });
      let current: number | undefined;
      let guard: NodeJS.Timeout | undefined;
      let isTooLong = false;
      const give = () => {
        clearTimeout(guard);
        current = next();
        if (current === undefined) {
          child.disconnect();
          return;
        }
        guard = setTimeout(() => {
          isTooLong = true;
          child.kill('SIGKILL');
        }, seedMaxMs);
        child.send({ seed: current });
      };
      child.on('message', (message: SeedReport) => {
        report(message);
        give();
      });
      child.on('error', reject);
      child.on('exit', (code, signal) => {
        clearTimeout(guard);
        if (current === undefined) {
          resolve();
          return;
        }
        const end = isTooLong ? `was still busy after ${seedMaxMs} ms, and was killed` : `has ended with ${signal ?? `code ${code}`}`;
        report({ ...nothingReported, seed: current, findings: [`story: its process ${end}`] });
        this.#work(next, report).then(resolve, reject);
      });
      give();
    });
  }
}

/** The other end: runs whatever seed it is sent. */
export function work(run: (seed: number) => SeedReport | Promise<SeedReport>): void {
  const answer = async (seed: number): Promise<void> => {
    const report = await run(seed);
    // Otherwise whoever asked is gone.
    if (process.connected) process.send!(report);
  };
  process.on('message', ({ seed }: { readonly seed: number }) => void answer(seed));
}
