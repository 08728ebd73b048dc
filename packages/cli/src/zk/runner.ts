/**
 * Runs one command: parses its line, supplies its dependencies, and turns each failure into a
 * sentence and an exit code.
 */
import { type Client, KeeperError, type KeeperErrorCode, type WatchedEvent, type WatchListener } from '@tskeeper/client';
import { exitCodes } from '../exit-codes.ts';
import { Output, type OutputFormat } from '../files/output.ts';
import type { Terminal } from '../terminal.ts';
import { type CommandCall, CommandFailed, unexpectedArgumentError, type ZkCommand } from './command.ts';
import { OptionError, parseLine, type ParsedLine } from './option-parser.ts';
import type { ConnectionSettings } from './connection-settings.ts';
import { ZkSession } from './session.ts';
import { eventLines, eventView, errorTextOf } from './zkcli-texts.ts';

export interface RunOptions {
  readonly terminal: Terminal;
  readonly format: OutputFormat;
  readonly settings: ConnectionSettings;
  /** Standard input, if commands may read it. */
  readonly input: AsyncIterable<Uint8Array | string> | undefined;
  readonly client: (signal: AbortSignal) => Promise<Client>;
  /**
   * Listener for watches; one function for the whole session, so that an event of two watches is
   * printed once.
   */
  readonly watch: WatchListener;
  /** Interrupts the command. */
  readonly signal: AbortSignal;
}

/** Every command accepts it, so that a program can request JSON within a line. */
const outputOptionSpec = { name: 'o', value: 'format', description: 'text or json' } as const;

/** Parses the words after a command's name. */
export function parseCommandLine(command: ZkCommand, words: readonly string[]): ParsedLine {
  const line = parseOptions(command, words);
  const excess = line.args[command.argumentsMax];
  if (excess !== undefined) throw unexpectedArgumentError(command, excess);
  return line;
}

function parseOptions(command: ZkCommand, words: readonly string[]): ParsedLine {
  try {
    return parseLine(words, { options: command.options, common: [outputOptionSpec], exclusive: command.exclusive });
  } catch (error) {
    if (error instanceof OptionError) throw new CommandFailed(error.message, exitCodes.refused);
    throw error;
  }
}

/** Runs a parsed command. Resolves with whether it set a watch. Rejects if the command fails. */
export async function runCommand(command: ZkCommand, line: ParsedLine, options: RunOptions): Promise<boolean> {
  let hasSetWatch = false;
  const format = formatFor(line, options.format);
  const output = new Output(options.terminal, format);
  const { signal, terminal } = options;
  const moreSessions: ZkSession[] = [];
  const call: CommandCall = {
    command,
    line,
    format,
    settings: options.settings,
    input: options.input,
    client: () => options.client(signal),
    newClient: () => {
      const session = new ZkSession(options.settings, terminal.clock, {
        onState: () => undefined,
        onProgress: (sentence) => terminal.err(progressText(sentence, format)),
      });
      moreSessions.push(session);
      return session.client(signal);
    },
    signal,
    clock: terminal.clock,
    options: { signal },
    // Read only by commands that set a watch.
    get watch() {
      hasSetWatch = true;
      return options.watch;
    },
    answer: async (text, json) => {
      if (format === 'json') output.json(json);
      else if (text !== undefined) output.bytes(text);
      await output.flush();
    },
    note: (sentence) => terminal.err(`${sentence}\n`),
    reportFailure: (failure) => void printFailure(failure, format, terminal),
  };
  try {
    await command.run(call);
  } finally {
    await Promise.all(moreSessions.map((session) => session.close()));
  }
  return hasSetWatch;
}

export function formatFor(line: ParsedLine, defaultFormat: OutputFormat): OutputFormat {
  const format = line.value('o') ?? defaultFormat;
  if (format !== 'text' && format !== 'json') throw new CommandFailed(`-o takes text or json, not ${format}`, exitCodes.refused);
  return format;
}

const exitCodeByErrorCode: Partial<Record<KeeperErrorCode, number>> = {
  ConnectionLoss: exitCodes.noConnection,
  SessionExpired: exitCodes.noConnection,
  SessionMoved: exitCodes.noConnection,
  OperationTimeout: exitCodes.noConnection,
  RequestTimeout: exitCodes.noConnection,
  NoNode: exitCodes.noNode,
  NodeExists: exitCodes.nodeExists,
  BadVersion: exitCodes.badVersion,
  NotEmpty: exitCodes.notEmpty,
  NoAuth: exitCodes.noAuth,
  AuthFailed: exitCodes.noAuth,
};

/** Prints why a command failed; returns its exit code. Rethrows unexpected errors. */
export function printFailure(error: unknown, format: OutputFormat, terminal: Terminal): number {
  if (error instanceof CommandFailed) {
    if (format === 'json') terminal.err(`${JSON.stringify({ error: { ...error.reason, message: error.message } })}\n`);
    else terminal.err(`${error.message}\n`);
    return error.exitCode;
  }
  if (!KeeperError.is(error)) throw error;
  const { code, errno, path = null } = error;
  const message = errorTextOf(error);
  if (format === 'json') terminal.err(`${JSON.stringify({ error: { code, errno, path, message } })}\n`);
  else terminal.err(`${message}\n`);
  return exitCodeByErrorCode[code] ?? exitCodes.failed;
}

/** The text of an event. */
export function eventText(event: WatchedEvent, format: OutputFormat): string {
  return format === 'json' ? `${JSON.stringify(eventView(event))}\n` : `${eventLines(event)}\n`;
}

/** The text of a report of the search for a server. */
export function progressText(sentence: string, format: OutputFormat): string {
  return format === 'json' ? `${JSON.stringify({ note: sentence })}\n` : `${sentence}\n`;
}
