import { readFileSync } from 'node:fs';
import { exitCodes } from '@tskeeper/server';
import { Command, CommanderError } from 'commander';

/** What a command may touch of the process it runs in. */
export interface Terminal {
  readonly isTty: boolean;
  readonly environment: Readonly<Record<string, string | undefined>>;
  out(text: string): void;
  err(text: string): void;
  /** Calls back for SIGTERM and SIGINT until the returned function is called. */
  onSignal(callback: (signal: string) => void): () => void;
  /** Calls back for errors nobody caught. */
  onUncaught(callback: (error: unknown) => void): void;
  /** Ends the process at once. */
  exit(code: number): void;
}

/** Adds itself to the program. Its action resolves with the exit code, handed to `finish`. */
export type DefineCommand = (program: Command, terminal: Terminal, finish: (code: number) => void) => void;

/** Runs one command line, without the program's name, to the exit code. */
export async function run(argv: readonly string[], terminal: Terminal, commands: readonly DefineCommand[]): Promise<number> {
  let code: number = exitCodes.ended;
  const program = new Command('tskeeper')
    .description('ZooKeeper without the JVM: run a server.')
    .version(version(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .showHelpAfterError('(tskeeper --help lists commands and options)')
    .configureOutput({ writeOut: (text) => terminal.out(text), writeErr: (text) => terminal.err(text) })
    .exitOverride();
  for (const define of commands) {
    define(program, terminal, (result) => {
      code = result;
    });
  }
  try {
    await program.parseAsync(argv, { from: 'user' });
    return code;
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    // Help and version are asked for and end well; anything else is a slip on the command line, already explained.
    return error.exitCode === 0 ? exitCodes.ended : exitCodes.refused;
  }
}

function version(): string {
  const { version: text } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string };
  return text;
}
