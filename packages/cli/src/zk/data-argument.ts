/**
 * Data of a znode as they are given on the command line: the word itself, `-` for standard input, or `@file` for what is in a file.
 *
 * zkCli stores `-` and `@file` as they are written. `\-` and `\@...` do so here: of backslashes in front of them one is taken away, and every
 * other word is stored as it is, backslashes included.
 */
import { createReadStream } from 'node:fs';
import { juteMaxBufferDefault } from '@tskeeper/protocol';
import { exitCodes } from '../exit-codes.ts';
import { aborted } from './aborted.ts';
import { type Call, CommandFailed } from './command.ts';

const escaped = /^\\+(@|-$)/;

/** Where data come from that are not the word itself, for people to read. */
export function originOf(word: string): string | undefined {
  if (word === '-') return 'standard input';
  return word.startsWith('@') ? word.slice(1) : undefined;
}

/** The bytes that a word stands for. Rejects with a sentence when they cannot be read, or when no request can carry so many. */
export async function dataOf(call: Call, word: string): Promise<Uint8Array> {
  const origin = originOf(word);
  if (origin === undefined) return Buffer.from(escaped.test(word) ? word.slice(1) : word);
  if (word === '-') {
    if (call.input === undefined) {
      throw refused('the shell reads commands from standard input: write @file, or \\- for data that are a hyphen');
    }
    return await allOf(call.input, origin, call);
  }
  if (origin === '') throw refused('@ is followed by the name of a file. Data that begin with @ are written with a backslash: \\@...');
  try {
    return await allOf(createReadStream(origin), origin, call);
  } catch (error) {
    const code = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
    if (code === undefined || code === 'ABORT_ERR') throw error;
    throw refused(`the data cannot be read from ${origin}: ${code}. Data that begin with @ are written with a backslash: \\@...`);
  }
}

/** Everything up to the end. What is longer than a request may be is not read to its end, which may not exist. */
async function allOf(source: AsyncIterable<Uint8Array | string>, origin: string, call: Call): Promise<Uint8Array> {
  const pieces: Buffer[] = [];
  const bytesMax = call.settings.maxPacketBytes ?? juteMaxBufferDefault;
  let bytes = 0;
  const iterator = source[Symbol.asyncIterator]();
  const interrupted = aborted(call.signal);
  try {
    for (;;) {
      const next = await Promise.race([iterator.next(), interrupted]);
      if (next.done === true) return Buffer.concat(pieces);
      const piece = Buffer.from(next.value);
      pieces.push(piece);
      bytes += piece.length;
      if (bytes > bytesMax) throw tooLong(origin, bytesMax);
    }
  } finally {
    // A keyboard that is waited for does not end by being asked to.
    void iterator.return?.().catch(() => undefined);
  }
}

function tooLong(origin: string, bytesMax: number): CommandFailed {
  return refused(
    `the data from ${origin} are longer than ${bytesMax} bytes, the jute.maxbuffer. Where the servers allow more, say so by --jute-maxbuffer`,
  );
}

function refused(sentence: string): CommandFailed {
  return new CommandFailed(sentence, exitCodes.refused);
}
