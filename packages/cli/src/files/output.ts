/** The output of a tool: collects text into large pieces, and waits when the reader is slow. */
import type { Terminal } from '../terminal.ts';

export type OutputFormat = 'text' | 'json';

/** The reader has closed the pipe, as `head` does; the tool ends without an error. */
export class OutputClosed extends Error {
  override readonly name = 'OutputClosed';
}

const lineBreak = Buffer.from('\n');
const flushBytes = 64 * 1024;

export class Output {
  readonly format: OutputFormat;
  readonly #terminal: Terminal;
  #text = '';
  /** Output before the waiting text. */
  #chunks: Uint8Array[] = [];

  constructor(terminal: Terminal, format: OutputFormat) {
    this.#terminal = terminal;
    this.format = format;
  }

  /** Adds a line to the answer. */
  line(text: string): void {
    this.#text += `${text}\n`;
  }

  /** Adds data unchanged, plus a line break. */
  bytes(data: string | Uint8Array): void {
    if (typeof data === 'string') this.line(data);
    else this.#chunks.push(this.#takeText(), data, lineBreak);
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
    return this.#text.length >= flushBytes;
  }

  /** Resolves when the reader has received everything. */
  async flush(): Promise<void> {
    const bytes = Buffer.concat([...this.#chunks, this.#takeText()]);
    this.#chunks = [];
    if (bytes.length > 0 && !(await this.#terminal.write(bytes))) throw new OutputClosed('the reader of the answer has gone');
  }

  #takeText(): Uint8Array {
    const text = this.#text;
    this.#text = '';
    return Buffer.from(text);
  }
}
