/** Adds up what seeds report, and says it in a few lines. */
import { electionMark, syncMarks } from '../story/ensemble-marks.ts';
import { marks } from '../story/marks.ts';
import type { SeedReport } from './seed-report.ts';

const faultPrefix = 'fault ';
const totalled = ['simulatedMs', 'txns', 'operations', 'writes', 'events', 'sessions', 'expired', 'restarts'] as const;

export class Summary {
  #seeds = 0;
  #failed = 0;
  readonly #totals = { simulatedMs: 0, txns: 0, operations: 0, writes: 0, events: 0, sessions: 0, expired: 0, restarts: 0 };
  readonly #marks: Map<string, number>;

  /** `wanted`: what must have been hit. */
  constructor(wanted: readonly string[] = Object.keys(marks)) {
    this.#marks = new Map(wanted.map((name) => [name, 0]));
  }

  add(report: SeedReport): void {
    this.#seeds++;
    if (report.findings.length > 0) this.#failed++;
    for (const key of totalled) this.#totals[key] += report[key];
    for (const [name, count] of Object.entries(report.marks)) this.#marks.set(name, (this.#marks.get(name) ?? 0) + count);
  }

  get seeds(): number {
    return this.#seeds;
  }

  get failed(): number {
    return this.#failed;
  }

  /** Marks that no seed has hit. */
  get missing(): string[] {
    return [...this.#marks].filter(([, count]) => count === 0).map(([name]) => name);
  }

  text(elapsedMs: number): string {
    const { simulatedMs, txns, operations, writes, events, sessions, expired, restarts } = this.#totals;
    const faults = [...this.#marks].filter(([name]) => name.startsWith(faultPrefix));
    const others = [...this.#marks].filter(([name]) => !name.startsWith(faultPrefix));
    const struck = faults.reduce((sum, [, count]) => sum + count, 0);
    const seconds = elapsedMs / 1000;
    const hits = (name: string) => this.#marks.get(name) ?? 0;
    const hours = simulatedMs / 3_600_000;
    const synced = syncMarks.filter((name) => this.#marks.has(name)).map((name) => `${name} ${hits(name)}`);
    const syncText = synced.length === 0 ? '' : `; learners brought up to date: ${synced.join(', ')}`;
    const rows = [
      `${this.#seeds} seeds, ${this.#failed} failed, in ${seconds.toFixed(1)} s`,
      `${hours < 1 ? `${Math.round(simulatedMs / 1000)} s` : `${hours.toFixed(2)} h`} simulated (${Math.round(simulatedMs / Math.max(1, elapsedMs))} times real time), ${restarts} restarts`,
      `${operations} requests, ${writes} of them writes; ${txns} committed txns; ${events} events; ${sessions} sessions, ${expired} expired`,
      `${hits(electionMark)} elections finished${syncText}`,
      `${struck} faults: ${faults.map(([name, count]) => `${name.slice(faultPrefix.length)} ${count}`).join(', ')}`,
      `${others.filter(([, count]) => count > 0).length} of ${others.length} marks hit: ${others.map(([name, count]) => `${name} ${count}`).join(', ')}`,
    ];
    return rows.join('\n');
  }
}
