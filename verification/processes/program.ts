/** Examples as running processes. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';

const examples = path.resolve(import.meta.dirname, '../../examples/dist');

/** One running example. */
export class Program {
  readonly lines: string[] = [];
  readonly ended: Promise<number | null>;
  readonly #child: ChildProcess;
  #errors = '';
  /** It has ended, and its whole output has been read. */
  #isOver = false;
  #waiting: (() => void)[] = [];

  constructor(example: string, args: readonly string[]) {
    this.#child = spawn(process.execPath, [path.join(examples, example, 'main.js'), ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child.stderr!.on('data', (bytes: Buffer) => (this.#errors += bytes.toString()));
    createInterface(this.#child.stdout!).on('line', (line) => {
      this.lines.push(line);
      this.#tell();
    });
    this.ended = once(this.#child, 'close').then(([code]) => {
      this.#isOver = true;
      this.#tell();
      return code as number | null;
    });
  }

  #tell(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  /** Resolves with the first line from `from` on that contains `text`. */
  async line(text: string, from = 0): Promise<string> {
    for (;;) {
      const found = this.lines.slice(from).find((line) => line.includes(text));
      if (found !== undefined) return found;
      if (this.#isOver) throw new Error(`the program ended without printing ${text}:\n${this.lines.join('\n')}\n${this.#errors}`);
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async output(): Promise<{ code: number | null; out: string; err: string }> {
    const code = await this.ended;
    return { code, out: this.lines.join('\n'), err: this.#errors.trim() };
  }
}
