/**
 * The lines typed in earlier shells, in `$XDG_STATE_HOME/tskeeper/history` (default
 * `~/.local/state`), oldest first.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';

const linesMax = 1000;

export class HistoryFile {
  readonly #path: string;
  #earlier: string[] = [];

  constructor(environment: Readonly<Record<string, string | undefined>>) {
    const home = environment['HOME'] ?? homedir();
    const state = environment['XDG_STATE_HOME'];
    this.#path = join(state === undefined || state === '' ? join(home, '.local', 'state') : state, 'tskeeper', 'history');
  }

  /** Newest first, as node:readline expects. */
  load(): string[] {
    try {
      this.#earlier = readFileSync(this.#path, 'utf8')
        .split('\n')
        .filter((line) => line !== '');
    } catch {
      // The file is missing or not readable: the shell works without it.
    }
    return this.#earlier.toReversed();
  }

  /** Appends typed lines, except those with passwords. */
  save(lines: readonly string[]): void {
    const kept = lines.filter((line) => !/^\s*addauth\b/.test(line));
    if (kept.length === 0) return;
    try {
      mkdirSync(dirname(this.#path), { recursive: true, mode: 0o700 });
      writeFileSync(this.#path, `${[...this.#earlier, ...kept].slice(-linesMax).join('\n')}\n`, { mode: 0o600 });
    } catch {
      // A failed write of the history must not fail the command.
    }
  }
}
