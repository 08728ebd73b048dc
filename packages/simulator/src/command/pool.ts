/**
 * Runs seeds in child processes, as many at a time as there are processors. Each child is this program again; what it is told comes over
 * the channel, and so do its reports.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { SeedReport } from './seed-report.ts';

const program = fileURLToPath(new URL('../../bin/sim.js', import.meta.url));
const loader = new URL('../mutants/loader.js', import.meta.url).href;

export interface PoolOptions {
  readonly jobs: number;
  readonly mutant?: string | undefined;
}

export class Pool {
  readonly #options: PoolOptions;
  readonly #children = new Set<ChildProcess>();

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
      const { mutant } = this.#options;
      const child = fork(program, ['worker'], {
        execArgv: mutant === undefined ? [] : ['--import', loader],
        env: mutant === undefined ? process.env : { ...process.env, TSKEEPER_MUTANT: mutant },
      });
      this.#children.add(child);
      let current: number | undefined;
      const give = () => {
        current = next();
        if (current === undefined) child.disconnect();
        else child.send({ seed: current });
      };
      child.on('message', (message: SeedReport) => {
        report(message);
        give();
      });
      child.on('error', reject);
      child.on('exit', (code) => {
        this.#children.delete(child);
        if (current === undefined || code === null) resolve();
        else reject(new Error(`the process that ran seed ${current} has ended with code ${code}`));
      });
      give();
    });
  }

  /** Ends what is under way. */
  stop(): void {
    for (const child of this.#children) child.kill();
  }
}

/** The other end: runs whatever seed it is sent. */
export function work(run: (seed: number) => Promise<SeedReport>): void {
  process.on('message', ({ seed }: { readonly seed: number }) => {
    void run(seed).then((report) => process.send?.(report));
  });
}
