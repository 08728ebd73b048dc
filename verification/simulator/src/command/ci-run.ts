/**
 * What CI runs for a change. The sources determine the seeds and the mutants, so a failing change
 * fails again.
 */
import { execFileSync } from 'node:child_process';
import type { Detector } from '../mutants/mutant.ts';
import { Pool } from './pool.ts';
import { failureText, freshSeedBase, replayLine } from './run.ts';
import type { SeedReport } from './seed-report.ts';
import type { Summary } from './summary.ts';
import { ciSeedsMax, seedsMax } from './detectors.ts';
import { detectorOf, mutantResultText, runMutants } from './run-mutants.ts';

/** One of so many seeds runs a second time. */
const repeatEvery = 20;
const shownMax = 5;

export interface CiSeeds {
  /**
   * Number of seeds that are the same for every change; they have shown that each mark can be hit.
   */
  readonly fixed: number;
  /** Number of seeds that differ for each change. */
  readonly fresh: number;
  readonly detector: Detector;
  readonly summary: Summary;
}

export class CiRun {
  readonly #jobs: number;
  readonly #begunMs = performance.now();
  readonly #seedBase = seedBaseOfTree() ?? freshSeedBase();
  #passed = 0;
  #failed = 0;
  #skipped = 0;

  constructor(jobs: number) {
    this.#jobs = jobs;
  }

  passed(): void {
    this.#passed++;
  }

  failed(text: string): void {
    this.#failed++;
    console.log(text);
  }

  /** Runs seeds, some of them twice with the same result expected; all marks must be hit. */
  async seeds({ fixed, fresh, detector, summary }: CiSeeds): Promise<void> {
    const ranges = [
      [1, fixed],
      [this.#seedBase, fresh],
    ] as const;
    const seeds = ranges.flatMap(([from, count]) => Array.from({ length: count }, (_, at) => from + at));
    console.log(`${seeds.length} seeds: ${ranges.map(([from, count]) => `${from} to ${from + count - 1}`).join(', ')}`);
    const traces = new Map<number, number>();
    const pool = new Pool({ jobs: this.#jobs, detector });
    await pool.run(iterate(seeds), (report) => {
      summary.add(report);
      traces.set(report.seed, report.traceHash);
      if (report.findings.length === 0) this.#passed++;
      else if (summary.failed <= shownMax) this.failed(failureText(report, replayLine(report)));
      else this.#failed++;
    });
    const again = iterate(seeds.filter((_, at) => at % repeatEvery === 0));
    const repeat = (report: SeedReport) => {
      if (report.traceHash === traces.get(report.seed)) this.#passed++;
      else this.failed(`seed ${report.seed} ran differently the second time; reproduce: ${replayLine(report)}`);
    };
    await new Pool({ jobs: this.#jobs, detector }).run(again, repeat);
    console.log(summary.text(performance.now() - this.#begunMs));
    const { missing } = summary;
    if (missing.length > 0) this.failed(`marks that no seed hit: ${missing.join(', ')}`);
    else this.#passed++;
  }

  /**
   * Runs `count` mutants, different ones for each change. Each must be caught, unless its detector may
   * use more seeds than CI has; such a mutant counts as skipped, and one at least must be caught.
   */
  async mutants(names: readonly string[], count: number): Promise<void> {
    const turn = (this.#seedBase / 1000) % names.length;
    const inRotation = [...names.slice(turn), ...names.slice(0, turn)].slice(0, count);
    let unfinished = 0;
    await runMutants(
      inRotation,
      this.#seedBase,
      (of) => ciSeedsMax[of],
      this.#jobs,
      (caught) => {
        const { name, seeds } = caught;
        if (caught.report === undefined && seeds < seedsMax[detectorOf(name)]) {
          unfinished++;
          this.#skipped++;
          console.log(`not caught in ${seeds} seeds: ${name}; npm run sim:mutants -- --mutant ${name} goes on`);
        } else if (caught.report === undefined) this.failed(mutantResultText(caught));
        else {
          this.#passed++;
          console.log(mutantResultText(caught));
        }
      },
    );
    if (unfinished === count) this.failed(`none of ${count} mutants was caught within the seeds of CI`);
  }

  /** Returns whether everything passed. */
  end(): boolean {
    console.log(`${((performance.now() - this.#begunMs) / 1000).toFixed(1)} s`);
    console.log(`${this.#passed} passed, ${this.#failed} failed, ${this.#skipped} skipped`);
    return this.#failed === 0;
  }
}

function iterate(seeds: readonly number[]): () => number | undefined {
  let at = 0;
  return () => seeds[at++];
}

/**
 * Derived from the sources: differs for each state of them, and is the same for each run of one
 * state.
 */
function seedBaseOfTree(): number | undefined {
  try {
    const tree = execFileSync('git', ['rev-parse', 'HEAD:packages'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    return Number.parseInt(tree.slice(0, 10), 16) * 1000;
  } catch {
    return undefined;
  }
}
