/**
 * Runs seeds in child processes, one per processor. Each child runs this program; it receives seeds
 * and sends reports over the IPC channel.
 */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Detector } from '../mutants/mutant.ts';
import { emptyReport, type SeedReport } from './seed-report.ts';

const simulator = fileURLToPath(new URL('../../bin/sim.js', import.meta.url));
const loader = new URL('../../bin/mutant.js', import.meta.url).href;

export interface PoolOptions {
  readonly jobs: number;
  readonly mutant?: string | undefined;
  /** Default: seeds. */
  readonly detector?: Detector;
  /**
   * In milliseconds of real time. A process that needs longer for one seed is killed. Default: ten
   * times what the longest seed takes.
   */
  readonly seedMaxMs?: number;
  /**
   * The module that a child process runs: it receives seeds as messages and sends a report for
   * each. Default: the simulator's program.
   */
  readonly program?: string;
}

const seedMaxMsDefault = 240_000;

/**
 * All processors work on seeds, so parallel threads of the collector only compete with them; and a
 * seed leaves little garbage behind, so late collection is cheap. Saves a tenth of the time.
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

  /** Takes seeds from `next` until it returns undefined, and reports each. */
  async run(next: () => number | undefined, report: (report: SeedReport) => void): Promise<void> {
    const { jobs } = this.#options;
    await Promise.all(Array.from({ length: jobs }, () => this.#runChild(next, report)));
  }

  #runChild(next: () => number | undefined, report: (report: SeedReport) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      const { mutant, detector = 'seeds', seedMaxMs = seedMaxMsDefault, program = simulator } = this.#options;
      const child = fork(program, ['worker', '--detector', detector], {
        execArgv: mutant === undefined ? [...memoryFlags] : [...memoryFlags, '--import', loader],
        // The output of a mutant before it fails is of no interest.
        stdio: ['ignore', 'inherit', mutant === undefined ? 'inherit' : 'ignore', 'ipc'],
        env: mutant === undefined ? process.env : { ...process.env, TSKEEPER_MUTANT: mutant },
      });
      let current: number | undefined;
      let guard: NodeJS.Timeout | undefined;
      let isTooLong = false;
      const sendNextSeed = () => {
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
        sendNextSeed();
      });
      child.on('error', reject);
      child.on('exit', (code, signal) => {
        clearTimeout(guard);
        if (current === undefined) {
          resolve();
          return;
        }
        const end = isTooLong ? `was killed because it was still running after ${seedMaxMs} ms` : `ended with ${signal ?? `code ${code}`}`;
        report({ ...emptyReport, seed: current, findings: [`run: its process ${end}`] });
        this.#runChild(next, report).then(resolve, reject);
      });
      sendNextSeed();
    });
  }
}

/** The child's side: runs each seed that it receives. */
export function serveSeeds(run: (seed: number) => SeedReport | Promise<SeedReport>): void {
  const answer = async (seed: number): Promise<void> => {
    const report = await run(seed);
    // Otherwise the parent is gone.
    if (process.connected) process.send!(report);
  };
  process.on('message', ({ seed }: { readonly seed: number }) => void answer(seed));
}
