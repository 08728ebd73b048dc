/** Lines typed in earlier shells, in `$XDG_STATE_HOME/tskeeper/history` (`~/.local/state` unless set), the newest last. */
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

  /** The newest first, as node:readline wants them. */
  load(): string[] {
    try {
      this.#earlier = readFileSync(this.#path, 'utf8')
        .split('\n')
        .filter((line) => line !== '');
    } catch {
      // There is none, or it may not be read: a shell works without.
    }
    return this.#earlier.toReversed();
  }

  /** Adds what was typed. Passwords are left out. */
  save(lines: readonly string[]): void {
    const kept = lines.filter((line) => !/^\s*addauth\b/.test(line));
    if (kept.length === 0) return;
    try {
      mkdirSync(dirname(this.#path), { recursive: true, mode: 0o700 });
      writeFileSync(this.#path, `${[...this.#earlier, ...kept].slice(-linesMax).join('\n')}\n`, { mode: 0o600 });
    } catch {
      // A history is a comfort, and no reason to fail.
    }
  }
}
