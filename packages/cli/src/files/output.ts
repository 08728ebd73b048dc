/** Where a tool's answer goes: gathered into large pieces, and held back when the reader does not keep up. */
import type { Terminal } from '../terminal.ts';

export type OutputFormat = 'text' | 'json';

/** Whoever read the answer has gone, as `head` does: no reason to go on, and none to complain. */
export class ReaderGone extends Error {
  override readonly name = 'ReaderGone';
}

const lineBreak = Buffer.from('\n');
const pieceLength = 64 * 1024;

export class Output {
  readonly format: OutputFormat;
  readonly #terminal: Terminal;
  #waiting = '';
  /** What comes before it. */
  #pieces: Uint8Array[] = [];

  constructor(terminal: Terminal, format: OutputFormat) {
    this.#terminal = terminal;
    this.format = format;
  }

  /** A line of the answer. */
  line(text: string): void {
    this.#waiting += `${text}\n`;
  }

  /** Data as they are, and a line break. */
  bytes(data: string | Uint8Array): void {
    if (typeof data === 'string') this.line(data);
    else this.#pieces.push(this.#takeText(), data, lineBreak);
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
    const bytes = Buffer.concat([...this.#pieces, this.#takeText()]);
    this.#pieces = [];
    if (bytes.length > 0 && !(await this.#terminal.write(bytes))) throw new ReaderGone('the reader of the answer has gone');
  }

  #takeText(): Uint8Array {
    const text = this.#waiting;
    this.#waiting = '';
    return Buffer.from(text);
  }
}
