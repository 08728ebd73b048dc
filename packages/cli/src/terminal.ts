import { writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import type { Clock } from '@tskeeper/client';
import { SystemClock } from '@tskeeper/server/internal';
import { endProcess } from './end-process.ts';
import { isWhole, type NpmLine, processTable } from './npm-watch.ts';

/** What a command may touch of the process it runs in. */
export interface Terminal {
  /** Whether a person looks at the output. */
  readonly isTty: boolean;
  /** Whether a person looks at standard error. */
  readonly errIsTty: boolean;
  /** What the user, or a script, types into the shell. */
  readonly input: NodeJS.ReadableStream;
  /** Where the shell shows its prompt; undefined when nobody sits there. */
  readonly prompt: NodeJS.WritableStream | undefined;
  /** Variables of the environment. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Writes to standard output. */
  out(text: string): void;
  /** Writes to standard error. */
  err(text: string): void;
  /**
   * Hands a part of an answer to standard output. Resolves when the reader has taken it, so that an answer of any length needs little
   * memory; with false when there is nobody left who reads.
   */
  write(bytes: Uint8Array): Promise<boolean>;
  /** Calls back for SIGTERM and SIGINT until the returned function is called. */
  onSignal(callback: (signal: string) => void): () => void;
  /**
   * Calls back for SIGHUP until the returned function is called; with whether this process was started on a terminal, which has been closed
   * then.
   */
  onHangup(callback: (hadTerminal: boolean) => void): () => void;
  /**
   * Calls back once when npm or npx, which started this process, has ended: with its pid, or with undefined where it ended before that could be
   * found. Calls back at once where it has ended already; never where neither started this process.
   */
  onNpmGone(callback: (pid: number | undefined) => void): () => void;
  /** Commands measure their limits on it. */
  readonly clock: Clock;
  /** Calls back for errors nobody caught. */
  onUncaught(callback: (error: unknown) => void): void;
  /** Ends the process at once. */
  exit(code: number): void;
}

/** A server that npm has left ends within this time, beside what it takes to close. */
const npmWatchMs = 500;

/** The process this command runs in, and what was found of npm when it started. */
export function processTerminal(line: NpmLine): Terminal {
  // Once a terminal has been closed it is none any more.
  const hadTerminal = [0, 1, 2].some((fd) => isatty(fd));
  return {
    isTty: isatty(1),
    errIsTty: isatty(2),
    // Looked at when the shell asks: touching standard input keeps a process alive, or stops it in the background.
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
        // A reader that has gone is told by the callback; without a listener it would end the process besides.
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
      if (line === undefined) return () => undefined;
      if (line === 'gone' || !isWhole(line, processTable)) {
        callback(line === 'gone' ? undefined : line.at(-1));
        return () => undefined;
      }
      const timer = setInterval(() => {
        if (isWhole(line, processTable)) return;
        clearInterval(timer);
        callback(line.at(-1));
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

/** A pipe whose reader does not keep up may hold a server up for this long per line; then the line is cut. */
const patienceMs = 50;

/** At once, so that the last words of a process that ends are not lost. A reader that has gone away is no reason to fail. */
function write(fd: number, text: string): void {
  const bytes = Buffer.from(text);
  const until = performance.now() + patienceMs;
  let written = 0;
  while (written < bytes.length) {
    try {
      written += writeSync(fd, bytes, written);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || performance.now() > until) return;
    }
  }
}
