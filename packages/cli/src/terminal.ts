import { writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import type { Clock } from '@tskeeper/client';
import { SystemClock } from '@tskeeper/server/internal';
import { endProcess } from './end-process.ts';
import { areStillAncestors, type NpmAncestors, processTable } from './npm-watch.ts';

/** What a command may use of its process. */
export interface Terminal {
  /** Whether standard output is a terminal. */
  readonly isTty: boolean;
  /** Whether standard error is a terminal. */
  readonly errIsTty: boolean;
  /** Input of the shell, typed or from a script. */
  readonly input: NodeJS.ReadableStream;
  /** Where the shell shows its prompt; undefined without a terminal. */
  readonly prompt: NodeJS.WritableStream | undefined;
  /** Environment variables. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Writes to standard output. */
  out(text: string): void;
  /** Writes to standard error. */
  err(text: string): void;
  /**
   * Writes a part of an answer to standard output. Resolves with true when the reader has received
   * it, so that long answers need little memory; with false if the reader has closed the pipe.
   */
  write(bytes: Uint8Array): Promise<boolean>;
  /** Calls back for SIGTERM and SIGINT until the returned function is called. */
  onSignal(callback: (signal: string) => void): () => void;
  /**
   * Calls back for SIGHUP until the returned function is called. `hadTerminal` says whether this
   * process was started on a terminal, which is closed by then.
   */
  onHangup(callback: (hadTerminal: boolean) => void): () => void;
  /**
   * Calls back once when npm or npx, which started this process, has ended: with its pid, or with
   * undefined if it ended before its pid was found. Calls back at once if it has already ended;
   * never if neither started this process.
   */
  onNpmGone(callback: (pid: number | undefined) => void): () => void;
  /** The clock for time limits of commands. */
  readonly clock: Clock;
  /** Calls back for uncaught errors. */
  onUncaught(callback: (error: unknown) => void): void;
  /** Ends the process at once. */
  exit(code: number): void;
}

/** How often to look for npm: after npm has ended, a server begins to close within this time. */
const npmWatchMs = 500;

/**
 * The terminal of this process; `npmAncestors` is the chain of ancestors up to npm, as found at the
 * start.
 */
export function processTerminal(npmAncestors: NpmAncestors): Terminal {
  // Asked now: after a terminal has been closed, isatty says false.
  const hadTerminal = [0, 1, 2].some((fd) => isatty(fd));
  return {
    isTty: isatty(1),
    errIsTty: isatty(2),
    // Opened only when the shell needs it: opening standard input keeps a process alive, or stops
    // it in the background.
    get input() {
      return process.stdin;
    },
    get prompt() {
      return process.stdin.isTTY && process.stdout.isTTY ? process.stdout : undefined;
    },
    environment: process.env,
    out: (text) => write(1, text),
    err: (text) => write(2, text),
    write: (bytes) =>
      new Promise((resolve) => {
        // The callback of `write` reports a closed pipe; without a listener the error event would
        // also end the process.
        if (process.stdout.listenerCount('error') === 0) process.stdout.on('error', () => undefined);
        process.stdout.write(bytes, (error) => resolve(error === null || error === undefined));
      }),
    onSignal(callback) {
      const onTerm = () => callback('SIGTERM');
      const onInt = () => callback('SIGINT');
      process.on('SIGTERM', onTerm);
      process.on('SIGINT', onInt);
      return () => {
        process.off('SIGTERM', onTerm);
        process.off('SIGINT', onInt);
      };
    },
    onHangup(callback) {
      const onHup = () => callback(hadTerminal);
      process.on('SIGHUP', onHup);
      return () => process.off('SIGHUP', onHup);
    },
    onNpmGone(callback) {
      if (npmAncestors === undefined) return () => undefined;
      if (npmAncestors === 'gone' || !areStillAncestors(npmAncestors, processTable)) {
        callback(npmAncestors === 'gone' ? undefined : npmAncestors.at(-1));
        return () => undefined;
      }
      const timer = setInterval(() => {
        if (areStillAncestors(npmAncestors, processTable)) return;
        clearInterval(timer);
        callback(npmAncestors.at(-1));
      }, npmWatchMs);
      timer.unref();
      return () => clearInterval(timer);
    },
    clock: new SystemClock(),
    onUncaught(callback) {
      process.on('uncaughtException', callback);
      process.on('unhandledRejection', callback);
    },
    exit: endProcess,
  };
}

/** A slow reader of a pipe may delay the server for this long per line; then the line is cut. */
const stallMsMax = 50;

/**
 * Writes synchronously, so that the last lines of a process that ends are not lost. Ignores a
 * closed pipe.
 */
function write(fd: number, text: string): void {
  const bytes = Buffer.from(text);
  const until = performance.now() + stallMsMax;
  let written = 0;
  while (written < bytes.length) {
    try {
      written += writeSync(fd, bytes, written);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || performance.now() > until) return;
    }
  }
}
