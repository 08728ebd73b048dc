import { Command, InvalidArgumentError, Option } from 'commander';
import { CommandRefused, exitCodes } from '../exit-codes.ts';
import { Output, type OutputFormat } from '../files/output.ts';
import { type DefineCommand, outputFormatOf, outputOption } from '../program.ts';
import type { Terminal } from '../terminal.ts';
import { optionLines, usageText, type ZkCommand } from '../zk/command.ts';
import { HistoryFile } from '../zk/history-file.ts';
import { runOneShot } from '../zk/one-shot.ts';
import type { ConnectionSettings } from '../zk/connection-settings.ts';
import { Shell } from '../zk/shell.ts';
import { shellCommands } from '../zk/shell-commands.ts';
import { parseCount } from './arguments.ts';
import { fourLetterWords } from './zk/four-letter-word.ts';
import { findZkCommand, zkCommands } from './zk/table.ts';

/** Options before a command that talks to a server. */
interface ConnectionOptions {
  readonly server: string;
  readonly timeout: number;
  readonly readonly?: boolean;
  readonly juteMaxbuffer?: number;
  readonly auth?: readonly string[];
  readonly output?: OutputFormat;
  readonly clientConfiguration?: string;
  readonly waitforconnection?: boolean;
}

/** Defines `tskeeper [-s host:port] ls /` for each command of zkCli, and `tskeeper shell`. */
export const defineZk: DefineCommand = (program, terminal, finish) => {
  program
    .addOption(
      new Option('-s, --server <servers>', 'host:port[,host:port][/chroot] to connect to').env('TSKEEPER_SERVER').default('localhost:2181'),
    )
    .addOption(
      new Option('--timeout <ms>', 'session timeout to request, and how long to try to connect (default: 4 s once every server has failed)')
        .env('TSKEEPER_TIMEOUT')
        .argParser(parseTimeout)
        .default(30_000),
    )
    .addOption(
      new Option('-a, --auth <scheme:auth>', 'authenticate first, as digest:user:password (repeatable; safer in TSKEEPER_AUTH)').argParser(
        collectAuth,
      ),
    )
    .addOption(
      new Option('--jute-maxbuffer <bytes>', 'longest reply to accept, as the jute.maxbuffer of the servers')
        .env('TSKEEPER_JUTE_MAXBUFFER')
        .argParser(parseCount),
    )
    .addOption(new Option('-r, --readonly', 'also accept a server that has lost its quorum'))
    // zkCli waits for the connection only with this option. Here every command waits; with this
    // option it waits for the whole --timeout, even if every server refuses.
    .addOption(new Option('--waitforconnection').hideHelp())
    .addOption(new Option('--client-configuration <file>').hideHelp());
  for (const command of zkCommands) program.addCommand(rawCommand(command, program, terminal, finish));
  program
    .command('shell')
    .description('run commands in one session, from the keyboard or from standard input')
    .action(async () => {
      const options = program.opts<ConnectionOptions>();
      finish(await new Shell(connectionSettingsOf(program, terminal), options.output ?? 'text', terminal).run());
    });
  program
    .command('history')
    .description('print the lines typed in earlier shells')
    .addOption(outputOption())
    .action(async (own: { readonly output?: OutputFormat }) => {
      const output = new Output(terminal, outputFormatOf(program, own));
      const lines = new HistoryFile(terminal.environment).load().toReversed();
      if (output.format === 'json') output.json({ history: lines.map((line, number) => ({ number, line })) });
      else for (const [number, line] of lines.entries()) output.line(`${number} - ${line}`);
      await output.flush();
      finish(exitCodes.done);
    });
  for (const { name } of shellCommands) {
    // commander has its own help command.
    if (name === 'help' || name === 'history') continue;
    program
      .command(name, { hidden: true })
      .argument('[words...]')
      .action(() => {
        throw new CommandRefused(`${name} acts on a session that stays open; use it in: tskeeper shell`);
      });
  }
  // `stat` is also a command of zkCli.
  for (const word of fourLetterWords.filter((each) => findZkCommand(each) === undefined)) {
    program.addCommand(
      new RawCommand(word).argument('[words...]').action(() => {
        program.error(`error: unknown command '${word}'\n(Did you mean tskeeper 4lw ${word}?)`, { code: 'commander.unknownCommand' });
      }),
      { hidden: true },
    );
  }
};

/**
 * A command whose words are passed on unparsed: zk/option-parser.ts reads its options as zkCli
 * does, here and in the shell.
 */
class RawCommand extends Command {
  override parseOptions(words: string[]): { operands: string[]; unknown: string[] } {
    return { operands: [...words], unknown: [] };
  }
}

function rawCommand(command: ZkCommand, program: Command, terminal: Terminal, finish: (code: number) => void): Command {
  return new RawCommand(command.name)
    .description(command.summary)
    .usage(command.usage)
    .argument('[words...]')
    .action(async (words: readonly string[]) => {
      if (words[0] === '--help' || words[0] === '-h') {
        terminal.out(helpOf(command));
        finish(exitCodes.done);
        return;
      }
      const options = program.opts<ConnectionOptions>();
      finish(await runOneShot(command, words, connectionSettingsOf(program, terminal), options.output ?? 'text', terminal));
    });
}

function helpOf(command: ZkCommand): string {
  const options = [...command.options, { name: 'o', value: 'format', description: 'text or json' }];
  const watch = command.setsWatch === undefined ? '' : '\nA command that watches waits for events: Ctrl+C ends it.\n';
  return `Usage: tskeeper [-s host:port] ${usageText({ ...command, usageListsOptions: false })}\n\n${command.summary}\n\nOptions:\n${optionLines(options)}\n${watch}`;
}

function connectionSettingsOf(program: Command, terminal: Terminal): ConnectionSettings {
  const options = program.opts<ConnectionOptions>();
  const { server: connectString, timeout, readonly, auth = [] } = options;
  // An explicit --timeout or -waitforconnection sets the limit; otherwise the search ends early
  // when every server refuses.
  const isWaitRequested = options.waitforconnection === true || program.getOptionValueSource('timeout') !== 'default';
  if (options.clientConfiguration !== undefined) {
    // The option asks for TLS or SASL; ignoring it would connect without protection.
    throw new CommandRefused(
      '-client-configuration is not supported: this command supports neither TLS nor SASL; omit it to connect without encryption',
    );
  }
  const fromEnvironment = terminal.environment['TSKEEPER_AUTH'];
  const texts = [...(fromEnvironment === undefined || fromEnvironment === '' ? [] : [fromEnvironment]), ...auth];
  const identities = texts.map((text) => {
    const colon = text.indexOf(':');
    return { scheme: colon === -1 ? text : text.slice(0, colon), auth: colon === -1 ? '' : text.slice(colon + 1) };
  });
  return {
    connectString,
    timeoutMs: timeout,
    connectTimeoutMs: isWaitRequested ? timeout : undefined,
    readOnly: readonly === true,
    maxPacketBytes: options.juteMaxbuffer,
    auth: identities,
  };
}

/**
 * Longest time that Node's timers accept (24.8 days). The clock adds a millisecond to each timer,
 * and Node turns 2^31 ms into 1 ms.
 */
const timeoutMsMax = 0x7fffffff - 1;

function parseTimeout(text: string): number {
  const ms = Number(text);
  if (!/^\d+$/.test(text) || ms < 1 || ms > 0x7fffffff)
    throw new InvalidArgumentError('It must be a number of milliseconds, 1 or greater.');
  return Math.min(ms, timeoutMsMax);
}

function collectAuth(text: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, text];
}
