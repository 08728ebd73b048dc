/**
 * What a command of zkCli is here: a name, its usage and options in zkCli's words, and what it does with a client. The same commands serve
 * one-shot (`tskeeper ls /`) and in the shell; who runs them decides where the client comes from and who waits for watches.
 */
import type { CallOptions, Client, Clock, WatchListener } from '@tskeeper/client';
import { exitCodes } from '../exit-codes.ts';
import type { OutputFormat } from '../files/output.ts';
import type { OptionSpec, ParsedLine } from './option-parser.ts';
import type { ConnectionSettings } from './connection-settings.ts';
import { pathComplaint } from './texts.ts';

export interface ZkCommand {
  readonly name: string;
  /** What follows the name; zkCli's own text where it has the command. */
  readonly usage: string;
  /** One line for lists of commands. */
  readonly summary: string;
  readonly options: readonly OptionSpec[];
  readonly exclusive?: 'at most one' | 'exactly one';
  /** How many words it takes besides options; one more is refused. `Infinity`: the command checks them itself, in zkCli's words. */
  readonly argumentsMax: number;
  /** zkCli's usage lists the options of some commands. */
  readonly usageListsOptions?: boolean;
  /** It sets a watch, if asked to; one-shot it then waits for the event. */
  readonly watches?: 'with -w' | 'always';
  /** What TAB offers for the first argument, where that is not a path. */
  readonly words?: readonly string[];
  /** The answer with `-o json`, for the reference. */
  readonly jsonShape: string;
  run(call: Call): Promise<void>;
}

/** One use of a command. */
export interface Call {
  readonly command: ZkCommand;
  readonly line: ParsedLine;
  readonly format: OutputFormat;
  /** How servers are reached, for what needs no session. */
  readonly settings: ConnectionSettings;
  /** Standard input; undefined in the shell, where the commands come from it. */
  readonly input: AsyncIterable<Uint8Array | string> | undefined;
  /** The client of this session, connected. Rejects when there is no session to be had. */
  client(): Promise<Client>;
  /** Aborted when the command is broken off. */
  readonly signal: AbortSignal;
  /** For limits that need no session. */
  readonly clock: Clock;
  /** For each call of the client: the signal. */
  readonly options: CallOptions;
  /** For watches: prints what happened. */
  readonly watch: WatchListener;
  /** Text or bytes, to which a line break is added; undefined where zkCli says nothing. And the same for programs. */
  answer(text: string | Uint8Array | undefined, json: unknown): Promise<void>;
  /** Something about the answer that is not part of it. */
  note(sentence: string): void;
  /** A failure beside the one that the command ends with. */
  complain(failure: CommandFailed): void;
}

/** A command that did not do what it was told. The message says why, in zkCli's words where it has any. */
export class CommandFailed extends Error {
  override readonly name = 'CommandFailed';
  readonly exitCode: number;
  /** Where the reason is one of ZooKeeper's: its name, and the path. */
  readonly reason: { readonly code: string; readonly path?: string } | undefined;

  constructor(message: string, exitCode: number = exitCodes.failed, reason?: { readonly code: string; readonly path?: string }) {
    super(message);
    this.exitCode = exitCode;
    this.reason = reason;
  }
}

/** There is no such znode, though no server has called that an error. */
export function noNode(path: string, sentence = `Node does not exist: ${path}`): CommandFailed {
  return new CommandFailed(sentence, exitCodes.noNode, { code: 'NoNode', path });
}

/** What zkCli prints when a command is not used as it should be. */
export function usageText(command: ZkCommand): string {
  const syntax = `${command.name} ${command.usage}`;
  return command.usageListsOptions === true ? `${syntax}\n${optionLines(command.options)}\n` : syntax;
}

/** Commons CLI's table of options. */
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

export function misused(command: ZkCommand): CommandFailed {
  return new CommandFailed(usageText(command), exitCodes.refused);
}

/** The arguments behind the name, of which there must be `min` at least. */
export function argumentsOf({ command, line }: Call, min: number): readonly string[] {
  if (line.args.length < min) throw misused(command);
  return line.args;
}

/** The path a command is about: its first argument. */
export function pathOf(call: Call): string {
  return checkedPath(argumentsOf(call, 1)[0]!);
}

export function checkedPath(path: string): string {
  const complaint = pathComplaint(path);
  if (complaint !== undefined) throw new CommandFailed(complaint, exitCodes.refused);
  return path;
}

/** The value of an option that is a number; `otherwise` when it was not given. */
export function numberOf({ line }: Call, option: string, otherwise: number): number {
  const text = line.value(option);
  if (text === undefined) return otherwise;
  const number = Number(text);
  if (!/^[+-]?\d+$/.test(text) || !Number.isSafeInteger(number)) {
    throw new CommandFailed(`-${option} must be followed by a whole number, not ${text}`, exitCodes.refused);
  }
  return number;
}

/** More words than the command takes, or one that makes no sense there. */
export function unexpected(command: ZkCommand, word: string): CommandFailed {
  const usage = `${command.name} ${command.usage}`.trimEnd();
  return new CommandFailed(`${command.name}: unexpected argument ${JSON.stringify(word)}. Usage: ${usage}`, exitCodes.refused);
}

/** What people write for [watch]. zkCli takes any word for it; here `ls /a /b` must not set a watch and wait. */
const watchWord = /^(true|watch|1)$/i;

/** `get path true` and the like, as older zkClis had it. */
export function watchesAsAsked(call: Call, name: string, flags: string): boolean {
  const word = call.line.args[1];
  if (word === undefined) return call.line.has('w');
  if (!watchWord.test(word)) throw unexpected(call.command, word);
  call.note(`'${name} path [watch]' has been deprecated. Please use '${name} ${flags} path' instead.`);
  return true;
}

/**
 * The version that an old form has as its last word: `delete path version`. zkCli 3.9 complains of the form too, and then ignores the version; a
 * write that was asked for one version must not change another.
 */
export function oldFormVersion(call: Call, text: string, form: string, instead: string): number {
  if (!/^-?\d+$/.test(text)) throw unexpected(call.command, text);
  call.note(`'${form}' has been deprecated. Please use '${instead}' instead.`);
  return Number(text);
}
