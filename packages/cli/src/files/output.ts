/** The output of a tool: collects text into large pieces, and waits when the reader is slow. */
import type { Terminal } from '../terminal.ts';

export type OutputFormat = 'text' | 'json';

/** The reader has closed the pipe, as `head` does; the tool ends without an error. */
export class ReaderGone extends Error {
  override readonly name = 'ReaderGone';
}

const lineBreak = Buffer.from('\n');
const pieceLength = 64 * 1024;

export class Output {
  readonly format: OutputFormat;
  readonly #terminal: Terminal;
  #waiting = '';
  /** Output before the waiting text. */
  #pieces: Uint8Array[] = [];

  constructor(terminal: Terminal, format: OutputFormat) {
    this.#terminal = terminal;
    this.format = format;
  }

  /** Adds a line to the answer. */
  line(text: string): void {
    this.#waiting += `${text}\n`;
  }

  /** Adds data unchanged, plus a line break. */
  bytes(data: string | Uint8Array): void {
    if (typeof data === 'string') this.line(data);
    else this.#pieces.push(this.#takeText(), data, lineBreak);
  }

  /** Adds one object on its own line. */
  json(value: unknown): void {
    this.line(JSON.stringify(value));
  }

  /** Prints a remark on standard error. */
  note(text: string): void {
    this.#terminal.err(`${text}\n`);
  }

  /** Whether enough output is collected to call `flush`. */
  get isFull(): boolean {
    return this.#waiting.length >= pieceLength;
  }

  /** Resolves when the reader has received everything. */
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
