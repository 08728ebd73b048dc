import { PassThrough } from 'node:stream';
import type { Terminal } from '../../src/index.ts';

/** A terminal in memory, and the signals and errors a test sends to it. */
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

  out(text: string): void {
    this.output += text;
  }
  /** Whether anybody reads the answers. */
  reads = true;

  write(bytes: Uint8Array): Promise<boolean> {
    if (this.reads) this.output += Buffer.from(bytes).toString();
    return Promise.resolve(this.reads);
  }
  err(text: string): void {
    this.errors += text;
  }
  onSignal(callback: (signal: string) => void): () => void {
    this.signal = callback;
    this.listening++;
    return () => this.listening--;
  }
  hangUp: (hadTerminal: boolean) => void = () => undefined;
  npmGone: (pid: number | undefined) => void = () => undefined;
  nowMs = 0;

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
  elapsedMs(): number {
    return this.nowMs;
  }
  onUncaught(callback: (error: unknown) => void): void {
    this.uncaught = callback;
  }
  exit(code: number): void {
    this.exited.push(code);
  }
}
