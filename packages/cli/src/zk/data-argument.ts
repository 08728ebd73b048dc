/**
 * Znode data on the command line: the word itself, `-` for standard input, or `@file` for the
 * content of a file.
 *
 * zkCli stores `-` and `@file` as they are. Here `\-` and `\@...` do so: one leading backslash is
 * removed, and every other word is stored as it is, including backslashes.
 */
import { createReadStream } from 'node:fs';
import { juteMaxBufferDefault } from '@tskeeper/protocol';
import { exitCodes } from '../exit-codes.ts';
import { rejectOnAbort } from './reject-on-abort.ts';
import { type CommandCall, CommandFailed } from './command.ts';

const escaped = /^\\+(@|-$)/;

/** A readable name of the data's source if the word is not the data itself. */
export function sourceNameOf(word: string): string | undefined {
  if (word === '-') return 'standard input';
  return word.startsWith('@') ? word.slice(1) : undefined;
}

/**
 * The bytes of the word. Rejects with a sentence if they cannot be read or exceed the longest
 * request.
 */
export async function dataOf(call: CommandCall, word: string): Promise<Uint8Array> {
  const sourceName = sourceNameOf(word);
  if (sourceName === undefined) return Buffer.from(escaped.test(word) ? word.slice(1) : word);
  if (word === '-') {
    if (call.input === undefined) {
      throw dataArgumentError('the shell reads commands from standard input: use @file, or \\- to store a hyphen');
    }
    return await readAll(call.input, sourceName, call);
  }
  if (sourceName === '')
    throw dataArgumentError('a file name must follow @. To store data that begin with @, write a backslash first: \\@...');
  try {
    return await readAll(createReadStream(sourceName), sourceName, call);
  } catch (error) {
    const code = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
    if (code === undefined || code === 'ABORT_ERR') throw error;
    throw dataArgumentError(
      `cannot read the data from ${sourceName}: ${code}. To store data that begin with @, write a backslash first: \\@...`,
    );
  }
}

/** Reads to the end, but stops after the longest request: an endless source has no end. */
async function readAll(source: AsyncIterable<Uint8Array | string>, sourceName: string, call: CommandCall): Promise<Uint8Array> {
  const pieces: Buffer[] = [];
  const bytesMax = call.settings.maxPacketBytes ?? juteMaxBufferDefault;
  let bytes = 0;
  const iterator = source[Symbol.asyncIterator]();
  const interrupted = rejectOnAbort(call.signal);
  try {
    for (;;) {
      const next = await Promise.race([iterator.next(), interrupted]);
      if (next.done === true) return Buffer.concat(pieces);
      const piece = Buffer.from(next.value);
      pieces.push(piece);
      bytes += piece.length;
      if (bytes > bytesMax) throw tooLong(sourceName, bytesMax);
    }
  } finally {
    // A keyboard does not end while a read is pending.
    void iterator.return?.().catch(() => undefined);
  }
}

function tooLong(sourceName: string, bytesMax: number): CommandFailed {
  return dataArgumentError(
    `the data from ${sourceName} are longer than ${bytesMax} bytes, the jute.maxbuffer. If the servers accept more, set --jute-maxbuffer`,
  );
}

function dataArgumentError(sentence: string): CommandFailed {
  return new CommandFailed(sentence, exitCodes.refused);
}
