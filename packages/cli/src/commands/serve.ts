import {
  createLogger,
  exitCodes,
  type LogLevel,
  logLevels,
  type LogOptions,
  type Server,
  type ServerOptions,
  verdictOf,
} from '@tskeeper/server';
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { DefineCommand } from '../program.ts';
import type { Terminal } from '../terminal.ts';

interface ServeOptions {
  readonly dataDir?: string;
  readonly clientPort?: number;
  readonly clientAddress?: string;
  readonly define: readonly string[];
  readonly logLevel?: LogLevel;
  readonly logFormat: 'auto' | 'text' | 'json';
}

/** Starts a server, as `startServer` of @tskeeper/server does. */
export type StartServer = (options: ServerOptions) => Promise<Server>;

/** `tskeeper serve [zoo.cfg]`: one server, until it is told to end. */
export function defineServe(startServer: StartServer): DefineCommand {
  return (program, terminal, finish) => {
    const command: Command = program
      .command('serve')
      .description('run a server')
      .argument('[zoo.cfg]', 'configuration file; without one the server listens on 127.0.0.1:2181 and keeps its data in ./data')
      .option('--data-dir <folder>', 'where snapshots and logs are kept')
      .option('--client-port <number>', 'port for clients, 0 for any free one', readPort)
      .option('--client-address <address>', 'address to listen on for clients')
      .option('-D, --define <name=value>', 'set a property, as on the command line of Java (repeatable)', collect, [])
      .addOption(
        new Option('--log-level <level>', 'least level that is logged').choices(logLevels).env('TSKEEPER_LOG_LEVEL').default('info'),
      )
      .addOption(
        new Option('--log-format <format>', 'text for people, json for collectors; auto chooses text on a terminal')
          .choices(['auto', 'text', 'json'])
          .env('TSKEEPER_LOG_FORMAT')
          .default('auto'),
      )
      .addHelpText('after', helpText)
      .action(async (configFile: string | undefined, options: ServeOptions) => {
        finish(await serve(startServer, configFile, options, terminal));
      });
    command.showHelpAfterError('(tskeeper serve --help lists the options)');
  };
}

/** The terminal sends Ctrl+C to npm and to its children, and npm passes it on: what comes within this time is the same request. */
const sameSignalMs = 1000;

const helpText = `
Settings in JVMFLAGS and SERVER_JVMFLAGS (-Dname=value) are honoured as well.
SIGTERM and SIGINT end the server cleanly; one that comes a second later ends it at once. SIGHUP ends it if it was started on a terminal.
A server that npm or npx has started ends when npm has ended.

Exit codes:
  ${exitCodes.ended}  ended as asked
  ${exitCodes.internalError}  unexpected error
  ${exitCodes.refused}  cannot start as configured: a slip, a port or a folder in use, a folder it may not use, data it refuses
  ${exitCodes.diskFailure}  the disk failed`;

async function serve(startServer: StartServer, configFile: string | undefined, options: ServeOptions, terminal: Terminal): Promise<number> {
  const format: LogOptions['format'] = options.logFormat === 'auto' ? (terminal.isTty ? 'text' : 'json') : options.logFormat;
  const logger = createLogger({ level: options.logLevel ?? 'info', format, write: (line) => terminal.out(line) });

  let stop: () => void = () => undefined;
  const stopped = new Promise<void>((resolve) => {
    stop = resolve;
  });
  let endsAtOnceFromMs = Number.POSITIVE_INFINITY;
  const isEnding = (): boolean => endsAtOnceFromMs !== Number.POSITIVE_INFINITY;
  const end = (reason: string): void => {
    if (terminal.clock.now().elapsedMs >= endsAtOnceFromMs) return terminal.exit(exitCodes.internalError);
    if (isEnding()) return;
    endsAtOnceFromMs = terminal.clock.now().elapsedMs + sameSignalMs;
    logger.info(`${reason}: ending`, { event: 'server.stopping', reason });
    stop();
  };
  const watches = [
    terminal.onSignal(end),
    terminal.onHangup((hadTerminal) => {
      if (hadTerminal) end('SIGHUP');
      // As for a program under nohup, whose request to ignore the signal Node does not keep.
      else
        logger.info('SIGHUP: the server goes on, as it was started without a terminal. SIGTERM ends it.', {
          event: 'server.hangup-ignored',
        });
    }),
    terminal.onNpmGone((pid) =>
      end(
        pid === undefined
          ? 'npm, which started this server, has ended'
          : `npm (process ${pid}), which started this server, or its shell has ended`,
      ),
    ),
  ];
  // Whatever nobody caught leaves the server in an unknown state: it says so and ends, since going on could break a promise.
  terminal.onUncaught((error) => {
    const { code, message } = verdictOf(error);
    logger.error(message, { event: 'server.failed', reason: message, exitCode: code });
    terminal.exit(code);
  });

  let server: Server | undefined;
  try {
    // npm had ended before the server could begin.
    if (isEnding()) {
      logger.info('ended', { event: 'server.stopped' });
      return exitCodes.ended;
    }
    const starting = startServer({
      configFile,
      dataDir: options.dataDir,
      clientPort: options.clientPort,
      clientAddress: options.clientAddress,
      definitions: options.define,
      environment: terminal.environment,
      logger,
    });
    // A server of an ensemble may wait for its own name to resolve. Nothing has been promised to anyone by then.
    server = (await Promise.race([starting, stopped])) ?? undefined;
    if (server === undefined) {
      starting.catch(() => undefined);
      logger.info('ended', { event: 'server.stopped' });
      return exitCodes.ended;
    }
    if (format === 'text') greet(server, terminal);
    await Promise.race([stopped, server.ended]);
    // It may fail over it, and would not come back then.
    await Promise.race([server.close(), server.ended]);
    logger.info('ended', { event: 'server.stopped' });
    return exitCodes.ended;
  } catch (error) {
    const { code, message } = verdictOf(error);
    // Once, in one place: what keeps the server from starting on standard error, as of every command, and what ends it later in its log.
    if (server === undefined) refuse(message, code, options.logFormat, terminal);
    else logger.error(message, { event: 'server.failed', reason: message, exitCode: code });
    return code;
  } finally {
    for (const unwatch of watches) unwatch();
  }
}

/** Whatever the level of the log, a refusal is written: a sentence, or a line of JSON where JSON was asked for. */
function refuse(message: string, exitCode: number, format: ServeOptions['logFormat'], terminal: Terminal): void {
  if (format !== 'json') return terminal.err(`tskeeper: ${message}\n`);
  const errors = createLogger({ level: 'error', format, write: (line) => terminal.err(line) });
  errors.error(message, { event: 'server.refused', reason: message, exitCode });
}

/** Says on a terminal where the server is and what to do next. */
function greet(server: Server, terminal: Terminal): void {
  const { connectString, dataDir } = server;
  const place = server.inspect.ensemble();
  terminal.out(
    [
      '',
      ...(place === undefined ? [] : [`  ensemble        server ${place.sid}; ${place.voterCount} vote`]),
      `  connect string  ${connectString}`,
      `  data folder     ${dataDir}`,
      `  try             npx tskeeper -s ${connectString} shell`,
      `  or              zkCli.sh -server ${connectString} ls /`,
      `  or              python3 -c "from kazoo.client import KazooClient as K; k = K('${connectString}'); k.start(); print(k.get_children('/'))"`,
      '  stop            Ctrl+C',
      '',
      '',
    ].join('\n'),
  );
}

function readPort(text: string): number {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535) throw new InvalidArgumentError('It must be a whole number from 0 to 65535.');
  return port;
}

function collect(definition: string, earlier: readonly string[]): readonly string[] {
  return [...earlier, definition];
}
