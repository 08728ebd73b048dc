/** Where a tool's answer goes: gathered into large pieces, and held back when the reader does not keep up. */
import type { Terminal } from '../terminal.ts';

export type OutputFormat = 'text' | 'json';

/** Whoever read the answer has gone, as `head` does: no reason to go on, and none to complain. */
export class ReaderGone extends Error {
  override readonly name = 'ReaderGone';
}

const pieceLength = 64 * 1024;

export class Output {
  readonly format: OutputFormat;
  readonly #terminal: Terminal;
  #waiting = '';

  constructor(terminal: Terminal, format: OutputFormat) {
    this.#terminal = terminal;
    this.format = format;
  }

  /** A line of the answer. */
  line(text: string): void {
    this.#waiting += `${text}\n`;
  }

  /** One object, on a line of its own. */
  json(value: unknown): void {
    this.line(JSON.stringify(value));
  }

  /** Something about the answer that is not part of it. */
  note(text: string): void {
    this.#terminal.err(`${text}\n`);
  }

  /** Whether so much has been gathered that it is time for `flush`. */
  get isFull(): boolean {
    return this.#waiting.length >= pieceLength;
  }

  /** Resolves when the reader has taken everything. */
  async flush(): Promise<void> {
    const text = this.#waiting;
    this.#waiting = '';
    if (text !== '' && !(await this.#terminal.write(text))) throw new ReaderGone('the reader of the answer has gone');
  }
}
