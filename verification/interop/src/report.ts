/** Counts checks and prints each: failures with their reason, successes by name. */

export interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

export class Report {
  readonly counts: Counts = { passed: 0, failed: 0, skipped: 0 };
  readonly #print: (line: string) => void;
  readonly #verbose: boolean;

  constructor(print: (line: string) => void, verbose: boolean) {
    this.#print = print;
    this.#verbose = verbose;
  }

  pass(name: string): void {
    this.counts.passed += 1;
    if (this.#verbose) this.#print(`  ok      ${name}`);
  }

  fail(name: string, detail: string): void {
    this.counts.failed += 1;
    this.#print(`  FAILED  ${name}: ${detail}`);
  }

  /** Passes when `work` does not throw. */
  async check(name: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.pass(name);
    } catch (error) {
      this.fail(name, error instanceof Error ? (error.stack ?? error.message) : String(error));
    }
  }

  skip(name: string, reason: string): void {
    this.counts.skipped += 1;
    this.#print(`  skipped ${name}: ${reason}`);
  }

  note(line: string): void {
    this.#print(`  ${line}`);
  }

  get summary(): string {
    return summaryOf(this.counts);
  }
}

export function summaryOf({ passed, failed, skipped }: Counts): string {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`;
}
