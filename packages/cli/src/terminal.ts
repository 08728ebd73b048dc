import { writeSync } from 'node:fs';
import { endProcess } from './end-process.ts';
import type { Terminal } from './program.ts';

/** The process this command runs in. */
export function processTerminal(): Terminal {
  return {
    isTty: process.stdout.isTTY,
    environment: process.env,
    out: (text) => write(1, text),
    err: (text) => write(2, text),
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
