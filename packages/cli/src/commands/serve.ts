import {
  createLogger,
  exitCodes,
  type LogLevel,
  logLevels,
  type LogOptions,
  type Server,
  type ServerOptions,
  exitStatusOf,
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

/** `tskeeper serve [zoo.cfg]`: runs one server until it is asked to stop. */
export function defineServe(startServer: StartServer): DefineCommand {
  return (program, terminal, finish) => {
    const command: Command = program
      .command('serve')
      .description('run a server')
      .argument('[zoo.cfg]', 'configuration file; without one the server listens on 127.0.0.1:2181 and keeps its data in ./data')
      .option('--data-dir <folder>', 'folder for snapshots and logs')
      .option('--client-port <number>', 'port for clients, 0 for any free one', parsePort)
      .option('--client-address <address>', 'address to listen on for clients')
      .option('-D, --define <name=value>', 'set a property, as on the command line of Java (repeatable)', collectDefinition, [])
      .addOption(
        new Option('--log-level <level>', 'lowest level that is logged').choices(logLevels).env('TSKEEPER_LOG_LEVEL').default('info'),
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

/**
 * A terminal sends Ctrl+C to npm and to its children, and npm passes the signal on. A second signal
 * within this time is the same request.
 */
const repeatedSignalMs = 1000;

const helpText = `
Settings in JVMFLAGS and SERVER_JVMFLAGS (-Dname=value) apply as well.
SIGTERM and SIGINT end the server cleanly; a second signal, at least one second later, ends it at once. SIGHUP ends it if it was started on a terminal.
A server that npm or npx started ends when npm ends.

Exit codes:
  ${exitCodes.ended}  ended as requested
  ${exitCodes.internalError}  unexpected error
  ${exitCodes.refused}  cannot start: an invalid setting, a port or folder in use, a folder without permission, or data that cannot be loaded
  ${exitCodes.diskFailure}  the disk failed`;

async function serve(startServer: StartServer, configFile: string | undefined, options: ServeOptions, terminal: Terminal): Promise<number> {
  const format: LogOptions['format'] = options.logFormat === 'auto' ? (terminal.isTty ? 'text' : 'json') : options.logFormat;
  const logger = createLogger({ level: options.logLevel ?? 'info', format, write: (line) => terminal.out(line) });

  let stop: () => void = () => undefined;
  const stopped = new Promise<void>((resolve) => {
    stop = resolve;
  });
  let exitAtOnceFromMs = Number.POSITIVE_INFINITY;
  const isEnding = (): boolean => exitAtOnceFromMs !== Number.POSITIVE_INFINITY;
  const end = (reason: string): void => {
    if (terminal.clock.now().elapsedMs >= exitAtOnceFromMs) return terminal.exit(exitCodes.internalError);
    if (isEnding()) return;
    exitAtOnceFromMs = terminal.clock.now().elapsedMs + repeatedSignalMs;
    logger.info(`${reason}: ending`, { event: 'server.stopping', reason });
    stop();
  };
  const watches = [
    terminal.onSignal(end),
    terminal.onHangup((hadTerminal) => {
      if (hadTerminal) end('SIGHUP');
      // This is the behaviour that nohup asks for. Node does not keep an inherited "ignore SIGHUP".
      else
        logger.info('ignoring SIGHUP: the server was started without a terminal; stop it with SIGTERM', {
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
  // After an uncaught error the state of the server is unknown. Log it and end: going on could
  // break a guarantee.
  terminal.onUncaught((error) => {
    const { code, message } = exitStatusOf(error);
    logger.error(message, { event: 'server.failed', reason: message, exitCode: code });
    terminal.exit(code);
  });

  let server: Server | undefined;
  try {
    // npm ended before the server could start.
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
    // A server of an ensemble may wait until its own name resolves. At that point it has promised
    // nothing to clients, so it can end without closing.
    server = (await Promise.race([starting, stopped])) ?? undefined;
    if (server === undefined) {
      starting.catch(() => undefined);
      logger.info('ended', { event: 'server.stopped' });
      return exitCodes.ended;
    }
    if (format === 'text') printGreeting(server, terminal);
    await Promise.race([stopped, server.ended]);
    // close() may never settle if the server fails while it closes.
    await Promise.race([server.close(), server.ended]);
    logger.info('ended', { event: 'server.stopped' });
    return exitCodes.ended;
  } catch (error) {
    const { code, message } = exitStatusOf(error);
    // Report a failure once: before the start has finished on standard error, as every command
    // does; later in the log of the server.
    if (server === undefined) printRefusal(message, code, options.logFormat, terminal);
    else logger.error(message, { event: 'server.failed', reason: message, exitCode: code });
    return code;
  } finally {
    for (const unwatch of watches) unwatch();
  }
}

/**
 * Writes why the server did not start, whatever the log level: a sentence, or a line of JSON if
 * JSON was requested.
 */
function printRefusal(message: string, exitCode: number, format: ServeOptions['logFormat'], terminal: Terminal): void {
  if (format !== 'json') return terminal.err(`tskeeper: ${message}\n`);
  const errors = createLogger({ level: 'error', format, write: (line) => terminal.err(line) });
  errors.error(message, { event: 'server.refused', reason: message, exitCode });
}

/** Shows on a terminal where the server listens and how to connect to it. */
function printGreeting(server: Server, terminal: Terminal): void {
  const { connectString, dataDir } = server;
  const ensemble = server.inspect.ensemble();
  terminal.out(
    [
      '',
      ...(ensemble === undefined ? [] : [`  ensemble        server ${ensemble.sid}; ${ensemble.voterCount} vote`]),
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

function parsePort(text: string): number {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535) throw new InvalidArgumentError('It must be a whole number from 0 to 65535.');
  return port;
}

function collectDefinition(definition: string, earlier: readonly string[]): readonly string[] {
  return [...earlier, definition];
}
