/**
 * A command of zkCli: a name, usage and options in zkCli's words, and the calls of the client that
 * it makes. The same commands run one-shot (`tskeeper ls /`) and in the shell; their runner
 * supplies the client and waits for watches.
 */
import type { CallOptions, Client, Clock, WatchListener } from '@tskeeper/client';
import { exitCodes } from '../exit-codes.ts';
import type { OutputFormat } from '../files/output.ts';
import type { OptionSpec, ParsedLine } from './option-parser.ts';
import type { ConnectionSettings } from './connection-settings.ts';
import { invalidPathReason } from './zkcli-texts.ts';

export interface ZkCommand {
  readonly name: string;
  /** The usage after the name; zkCli's own text if zkCli has the command. */
  readonly usage: string;
  /** One line for lists of commands. */
  readonly summary: string;
  readonly options: readonly OptionSpec[];
  readonly exclusive?: 'at most one' | 'exactly one';
  /**
   * Maximum number of arguments besides options; more are rejected. `Infinity`: the command checks
   * them itself, in zkCli's words.
   */
  readonly argumentsMax: number;
  /** Whether the usage lists the options, as zkCli does for some commands. */
  readonly usageListsOptions?: boolean;
  /** When the command sets a watch; one-shot it then waits for the event. */
  readonly setsWatch?: 'with -w' | 'always';
  /** What TAB offers for the first argument, if that is not a path. */
  readonly completions?: readonly string[];
  /** Shape of the answer with `-o json`, for the reference. */
  readonly jsonShape: string;
  run(call: CommandCall): Promise<void>;
}

/** One invocation of a command. */
export interface CommandCall {
  readonly command: ZkCommand;
  readonly line: ParsedLine;
  readonly format: OutputFormat;
  /** How to reach servers, for commands that need no session. */
  readonly settings: ConnectionSettings;
  /** Standard input; undefined in the shell, which reads its commands from there. */
  readonly input: AsyncIterable<Uint8Array | string> | undefined;
  /** The connected client of this session. Rejects if no session can be opened. */
  client(): Promise<Client>;
  /**
   * Another client with a new session, for a command that outlives its first one. The session ends
   * with the command. Rejects as `client` does.
   */
  newClient(): Promise<Client>;
  /** Aborted when the command is interrupted. */
  readonly signal: AbortSignal;
  /** Clock for time limits that need no session. */
  readonly clock: Clock;
  /** Options for each call of the client: the signal. */
  readonly options: CallOptions;
  /** Listener for watches: prints the event. */
  readonly watch: WatchListener;
  /**
   * Prints the answer: text or bytes plus a line break, or nothing if `text` is undefined, as where
   * zkCli prints nothing; or `json` with `-o json`.
   */
  answer(text: string | Uint8Array | undefined, json: unknown): Promise<void>;
  /** Prints a remark on standard error. */
  note(sentence: string): void;
  /** Reports a failure in addition to the one that ends the command. */
  reportFailure(failure: CommandFailed): void;
}

/** A command that failed. The message says why, in zkCli's words where it has any. */
export class CommandFailed extends Error {
  override readonly name = 'CommandFailed';
  readonly exitCode: number;
  /** Name of ZooKeeper's error, and the path, if a server refused the request. */
  readonly reason: { readonly code: string; readonly path?: string } | undefined;

  constructor(message: string, exitCode: number = exitCodes.failed, reason?: { readonly code: string; readonly path?: string }) {
    super(message);
    this.exitCode = exitCode;
    this.reason = reason;
  }
}

/** A missing znode that no server has reported as an error. */
export function noNodeError(path: string, sentence = `Node does not exist: ${path}`): CommandFailed {
  return new CommandFailed(sentence, exitCodes.noNode, { code: 'NoNode', path });
}

/** What zkCli prints for a wrong use of a command. */
export function usageText(command: ZkCommand): string {
  const syntax = `${command.name} ${command.usage}`;
  return command.usageListsOptions === true ? `${syntax}\n${optionLines(command.options)}\n` : syntax;
}

/** The options as a table in the format of Commons CLI. */
export function optionLines(options: readonly OptionSpec[]): string {
  const heads = options.map(({ name, value }) => ` -${name}${value === undefined ? '' : ' <arg>'}`);
  const width = Math.max(...heads.map((head) => head.length)) + 3;
  return options
    .map(({ name, description }, at) => ({ name, text: `${heads[at]!.padEnd(width)}${description}` }))
    .toSorted((a, b) => compareIgnoringCase(a.name, b.name))
    .map(({ text }) => text)
    .join('\n');
}

function compareIgnoringCase(a: string, b: string): number {
  const [left, right] = [a.toLowerCase(), b.toLowerCase()];
  return left < right ? -1 : left > right ? 1 : 0;
}

export function usageError(command: ZkCommand): CommandFailed {
  return new CommandFailed(usageText(command), exitCodes.refused);
}

/** The arguments after the name; throws if there are fewer than `min`. */
export function argumentsOf({ command, line }: CommandCall, min: number): readonly string[] {
  if (line.args.length < min) throw usageError(command);
  return line.args;
}

/** The path of the command: its first argument. */
export function pathOf(call: CommandCall): string {
  return validPath(argumentsOf(call, 1)[0]!);
}

export function validPath(path: string): string {
  const reason = invalidPathReason(path);
  if (reason !== undefined) throw new CommandFailed(reason, exitCodes.refused);
  return path;
}

/** The value of a numeric option; `defaultValue` if the option is missing. */
export function numberOption({ line }: CommandCall, option: string, defaultValue: number): number {
  const text = line.value(option);
  if (text === undefined) return defaultValue;
  const number = Number(text);
  if (!/^[+-]?\d+$/.test(text) || !Number.isSafeInteger(number)) {
    throw new CommandFailed(`-${option} must be followed by a whole number, not ${text}`, exitCodes.refused);
  }
  return number;
}

/** The failure for a surplus or misplaced word. */
export function unexpectedArgumentError(command: ZkCommand, word: string): CommandFailed {
  const usage = `${command.name} ${command.usage}`.trimEnd();
  return new CommandFailed(`${command.name}: unexpected argument ${JSON.stringify(word)}. Usage: ${usage}`, exitCodes.refused);
}

/**
 * Words that people write for [watch]. zkCli accepts any word there; here `ls /a /b` must not set a
 * watch and wait.
 */
const watchArgumentPattern = /^(true|watch|1)$/i;

/** Whether to watch: `-w`, or the deprecated form `get path true` of older zkClis. */
export function isWatchRequested(call: CommandCall, name: string, flags: string): boolean {
  const word = call.line.args[1];
  if (word === undefined) return call.line.has('w');
  if (!watchArgumentPattern.test(word)) throw unexpectedArgumentError(call.command, word);
  call.note(`'${name} path [watch]' has been deprecated. Please use '${name} ${flags} path' instead.`);
  return true;
}

/**
 * The version given as the last word of the deprecated form `delete path version`. zkCli 3.9 warns
 * about the form and then ignores the version; here the version applies, because a write meant for
 * one version must not change another.
 */
export function legacyVersion(call: CommandCall, text: string, form: string, instead: string): number {
  if (!/^-?\d+$/.test(text)) throw unexpectedArgumentError(call.command, text);
  call.note(`'${form}' has been deprecated. Please use '${instead}' instead.`);
  return Number(text);
}
