import { PassThrough } from 'node:stream';
import { ManualClock } from '@tskeeper/runtime';
import type { Terminal } from '../../src/index.ts';

/**
 * A terminal in memory, and the signals and errors that a test sends to it. Its clock advances only
 * when the test says so: no command reaches a time limit because the machine is slow.
 */
export class FakeTerminal implements Terminal {
  isTty = true;
  errIsTty = true;
  readonly input = new PassThrough();
  prompt: PassThrough | undefined;
  environment: Record<string, string | undefined> = {};
  output = '';
  errors = '';
  exited: number[] = [];
  signal: (signal: string) => void = () => undefined;
  uncaught: (error: unknown) => void = () => undefined;
  listening = 0;
  readonly clock = new ManualClock();
  #look: () => void = () => undefined;

  out(text: string): void {
    this.output += text;
    this.changed();
  }
  /** Whether the reader has the pipe open. */
  reads = true;

  write(bytes: Uint8Array): Promise<boolean> {
    if (this.reads) this.output += Buffer.from(bytes).toString();
    this.changed();
    return Promise.resolve(this.reads);
  }
  err(text: string): void {
    this.errors += text;
    this.changed();
  }
  onSignal(callback: (signal: string) => void): () => void {
    this.signal = callback;
    this.listening++;
    return () => this.listening--;
  }
  hangUp: (hadTerminal: boolean) => void = () => undefined;
  npmGone: (pid: number | undefined) => void = () => undefined;

  onHangup(callback: (hadTerminal: boolean) => void): () => void {
    this.hangUp = callback;
    this.listening++;
    return () => this.listening--;
  }
  onNpmGone(callback: (pid: number | undefined) => void): () => void {
    this.npmGone = callback;
    this.listening++;
    return () => this.listening--;
  }
  onUncaught(callback: (error: unknown) => void): void {
    this.uncaught = callback;
  }
  exit(code: number): void {
    this.exited.push(code);
  }

  /** Resolves when a text has been written to either stream. */
  async shows(text: string): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#look = () => {
        if (this.hasShown(text)) resolve();
      };
      this.#look();
    });
  }
  protected hasShown(text: string): boolean {
    return this.output.includes(text) || this.errors.includes(text);
  }
  /** Called after each write. */
  protected changed(): void {
    this.#look();
  }
}
