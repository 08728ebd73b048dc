/** Adds up the reports of seeds and prints a few lines. */
import { electionMark, syncMarks } from '../run/ensemble-marks.ts';
import { marks, rareMarks } from '../run/marks.ts';
import type { SeedReport } from './seed-report.ts';

const faultPrefix = 'fault ';
const summedFields = ['simulatedMs', 'txns', 'operations', 'writes', 'events', 'sessions', 'expired', 'restarts'] as const;

/** A mark that is hit less often is rare: a thousand seeds may miss it, a long run may not. */
export const rareHits = 20;
const rarePerSeeds = 1000;
/** Number of seeds of a long run. */
export const longRunSeeds = 20_000;

export class Summary {
  #seeds = 0;
  #failed = 0;
  readonly #totals = { simulatedMs: 0, txns: 0, operations: 0, writes: 0, events: 0, sessions: 0, expired: 0, restarts: 0 };
  readonly #marks: Map<string, number>;
  /**
   * By checker: the number of seeds in which it had something to check, and how many of them had
   * one server.
   */
  readonly #exercised = new Map<string, { seeds: number; standalone: number }>();
  /** By kind of load and of servers. */
  readonly #kinds = new Map<string, { seeds: number; operations: number; txns: number; sessions: number }>();

  /** `wanted` are the marks that must be hit. */
  constructor(wanted: readonly string[] = Object.keys(marks)) {
    this.#marks = new Map(wanted.map((name) => [name, 0]));
  }

  add(report: SeedReport): void {
    this.#seeds++;
    if (report.findings.length > 0) this.#failed++;
    for (const key of summedFields) this.#totals[key] += report[key];
    for (const name of report.exercised ?? []) {
      const sum = this.#exercised.get(name) ?? { seeds: 0, standalone: 0 };
      sum.seeds++;
      if (report.kinds?.includes('standalone') === true) sum.standalone++;
      this.#exercised.set(name, sum);
    }
    for (const kind of report.kinds ?? []) {
      const sum = this.#kinds.get(kind) ?? { seeds: 0, operations: 0, txns: 0, sessions: 0 };
      sum.seeds++;
      for (const key of ['operations', 'txns', 'sessions'] as const) sum[key] += report[key];
      this.#kinds.set(kind, sum);
    }
    for (const [name, count] of Object.entries(report.marks)) this.#marks.set(name, (this.#marks.get(name) ?? 0) + count);
  }

  get seeds(): number {
    return this.#seeds;
  }

  get failed(): number {
    return this.#failed;
  }

  /**
   * Marks that were missed: in a long run those hit fewer than 20 times, in any other run those
   * never hit, except rare ones.
   */
  get missing(): string[] {
    const isMissing = (name: string, count: number): boolean =>
      this.#seeds >= longRunSeeds ? count < rareHits : count === 0 && !rareMarks.has(name);
    return [...this.#marks].filter(([name, count]) => isMissing(name, count)).map(([name, count]) => `${name} ${count}`);
  }

  /** Marks hit so seldom that even a long run says little about them. */
  get rare(): string[] {
    const wanted = (rareHits * this.#seeds) / rarePerSeeds;
    return [...this.#marks].filter(([, count]) => count < wanted).map(([name, count]) => `${name} ${count}`);
  }

  #detailRows(): string[] {
    const rows = [...this.#kinds].map(
      ([kind, { seeds, operations, txns, sessions }]) =>
        `${kind}: ${seeds} seeds, ${operations} requests, ${txns} txns, ${sessions} sessions`,
    );
    // A checker with something to check in no seed with one server is about ensembles.
    const ensembles = this.#kinds.get('ensemble')?.seeds ?? 0;
    const judged = [...this.#exercised].map(([name, { seeds, standalone }]) => ({
      name,
      seeds,
      isOfEnsembles: ensembles > 0 && standalone === 0,
    }));
    for (const ensemblesOnly of [false, true]) {
      const those = judged.filter((each) => each.isOfEnsembles === ensemblesOnly);
      const share = (seeds: number) => Math.floor((100 * seeds) / Math.max(1, ensemblesOnly ? ensembles : this.#seeds));
      if (those.length === 0) continue;
      const texts = those.map(({ name, seeds }) => `${name} ${share(seeds)}`).join(', ');
      rows.push(`checkers with something to check, in percent of the ${ensemblesOnly ? 'ensembles' : 'seeds'}: ${texts}`);
    }
    const { rare } = this;
    if (this.#seeds >= rarePerSeeds / rareHits && rare.length > 0)
      rows.push(`rare marks, fewer than ${rareHits} hits in ${rarePerSeeds} seeds: ${rare.join(', ')}`);
    return rows;
  }

  text(elapsedMs: number): string {
    const { simulatedMs, txns, operations, writes, events, sessions, expired, restarts } = this.#totals;
    const faults = [...this.#marks].filter(([name]) => name.startsWith(faultPrefix));
    const others = [...this.#marks].filter(([name]) => !name.startsWith(faultPrefix));
    const injectedFaults = faults.reduce((sum, [, count]) => sum + count, 0);
    const seconds = elapsedMs / 1000;
    const hits = (name: string) => this.#marks.get(name) ?? 0;
    const hours = simulatedMs / 3_600_000;
    const synced = syncMarks.filter((name) => this.#marks.has(name)).map((name) => `${name} ${hits(name)}`);
    const syncText = synced.length === 0 ? '' : `; learners synchronised: ${synced.join(', ')}`;
    const rows = [
      `${this.#seeds} seeds, ${this.#failed} failed, in ${seconds.toFixed(1)} s`,
      `${hours < 1 ? `${Math.round(simulatedMs / 1000)} s` : `${hours.toFixed(2)} h`} simulated (${Math.round(simulatedMs / Math.max(1, elapsedMs))} times real time), ${restarts} restarts`,
      `${operations} requests, ${writes} of them writes; ${txns} committed txns; ${events} events; ${sessions} sessions, ${expired} expired`,
      `${hits(electionMark)} elections finished${syncText}`,
      `${injectedFaults} faults: ${faults.map(([name, count]) => `${name.slice(faultPrefix.length)} ${count}`).join(', ')}`,
      `${others.filter(([, count]) => count > 0).length} of ${others.length} marks hit: ${others.map(([name, count]) => `${name} ${count}`).join(', ')}`,
    ];
    return [...rows, ...this.#detailRows()].join('\n');
  }
}
