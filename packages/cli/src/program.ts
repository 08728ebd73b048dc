import { DiskError } from '@tskeeper/runtime';
import { Command, CommanderError, Option } from 'commander';
import { CommandRefused, exitCodes } from './exit-codes.ts';
import { type OutputFormat, OutputClosed } from './files/output.ts';
import { ownVersion } from './own-version.ts';
import type { Terminal } from './terminal.ts';
import { escapingTerminal } from './terminal-escapes.ts';

/** Adds one command to the program. Its action passes the exit code to `finish`. */
export type DefineCommand = (program: Command, terminal: Terminal, finish: (code: number) => void) => void;

/** The program with these commands; each passes its exit code to `finish`. */
export function createProgram(terminal: Terminal, commands: readonly DefineCommand[], finish: (code: number) => void): Command {
  const program = new Command('tskeeper')
    .description('ZooKeeper without the JVM: run a server, send requests to one, inspect its files.')
    .enablePositionalOptions()
    .version(ownVersion(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .showHelpAfterError('(tskeeper --help lists commands and options)')
    .configureOutput({ writeOut: (text) => terminal.out(text), writeErr: (text) => terminal.err(text) })
    .addOption(outputOption())
    .exitOverride();
  for (const define of commands) define(program, terminal, finish);
  return program;
}

/**
 * Runs one command line, without the program's name; resolves with the exit code. Rejects with
 * unexpected errors; a user's mistake becomes a sentence and an exit code.
 */
export async function run(argv: readonly string[], rawTerminal: Terminal, commands: readonly DefineCommand[]): Promise<number> {
  const terminal = escapingTerminal(rawTerminal);
  let code: number = exitCodes.done;
  const program = createProgram(terminal, commands, (result) => {
    code = result;
  });
  try {
    await program.parseAsync(toLongOptions(argv), { from: 'user' });
    return code;
  } catch (error) {
    return exitCodeFor(error, terminal);
  }
}

/** Prints why a command failed and returns its exit code. Rethrows unexpected errors. */
function exitCodeFor(error: unknown, terminal: Terminal): number {
  // Help and version end with success; every other CommanderError is a mistake on the command line
  // that commander has already explained.
  if (error instanceof CommanderError && error.code === 'commander.unknownCommand') return exitCodes.noCommand;
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.refused;
  // The reader, such as `head`, has read enough.
  if (error instanceof OutputClosed) return exitCodes.done;
  if (error instanceof CommandRefused || error instanceof DiskError) {
    terminal.err(`tskeeper: ${error.message}\n`);
    return error instanceof DiskError && error.code === 'EIO' ? exitCodes.diskFailure : exitCodes.refused;
  }
  throw error;
}

/** `-o`, for each command with an answer. */
export function outputOption(): Option {
  const choices: readonly OutputFormat[] = ['text', 'json'];
  return new Option('-o, --output <format>', 'text for people, json for programs (default: text)').choices(choices);
}

/** The format given to the command itself, or before it. */
export function outputFormatOf(program: Command, { output }: { readonly output?: OutputFormat }): OutputFormat {
  return output ?? program.opts<{ readonly output?: OutputFormat }>().output ?? 'text';
}

/**
 * zkCli's own options have one hyphen; commander would read `-server` as `-s` with the value
 * `erver`.
 */
const zkCliOptions = ['-server', '-timeout', '-readonly', '-waitforconnection', '-client-configuration'];

/**
 * Rewrites zkCli's forms of the options before the command; the words after it belong to the
 * command.
 */
function toLongOptions(argv: readonly string[]): string[] {
  const words = [...argv];
  for (let at = 0; at < words.length && words[at]!.startsWith('-'); at++) {
    const word = words[at]!;
    if (zkCliOptions.includes(word)) words[at] = `-${word}`;
    // Its value may begin with a hyphen.
    if (takesValue(words[at]!)) at++;
  }
  return words;
}

function takesValue(word: string): boolean {
  return ['-s', '--server', '--timeout', '-a', '--auth', '-o', '--output', '--jute-maxbuffer', '--client-configuration'].includes(word);
}
