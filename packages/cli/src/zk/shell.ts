/**
 * `tskeeper shell`: commands one after the other in one session, from a keyboard or from a script on standard input.
 *
 * It takes what zkCli takes, history and redo included. With a keyboard there are a prompt, TAB completion of commands, options and paths,
 * and a history that outlives the process; a script gets answers on standard output and nothing else there.
 */
import { createInterface, type Interface } from 'node:readline/promises';
import type { SessionEvent, WatchedEvent } from '@tskeeper/client';
import { zkCommand, zkCommands } from '../commands/zk/table.ts';
import { exitCodes } from '../exit-codes.ts';
import { type OutputFormat, ReaderGone } from '../files/output.ts';
import type { Terminal } from '../terminal.ts';
import { CommandFailed, type ZkCommand } from './command.ts';
import { complete } from './completion.ts';
import { HistoryFile } from './history-file.ts';
import type { ParsedLine } from './option-parser.ts';
import { eventText, formatOf, readLine, runCommand, tellFailure } from './runner.ts';
import { type ConnectionSettings, ZkSession } from './session.ts';
import { type ShellCommand, shellCommands, type ShellState } from './shell-commands.ts';
import { wordsOf } from './words.ts';

export class Shell implements ShellState {
  readonly #terminal: Terminal;
  readonly #format: OutputFormat;
  readonly session: ZkSession;
  /** Lines by their number. */
  readonly history: string[] = [];
  printsWatches = true;
  #interface: Interface | undefined;
  /** The command at work. */
  #running: AbortController | undefined;
  #exitCode: number = exitCodes.done;
  #ended = false;

  constructor(settings: ConnectionSettings, format: OutputFormat, terminal: Terminal) {
    this.#terminal = terminal;
    this.#format = format;
    this.session = new ZkSession(settings, (event) => this.#tell(event));
  }

  /** Runs to the end of the input, or to `quit`; returns the exit code of the last command, as zkCli does. */
  async run(): Promise<number> {
    const { input, prompt } = this.#terminal;
    const interactive = prompt !== undefined;
    const file = interactive ? new HistoryFile(this.#terminal.environment) : undefined;
    const lines = createInterface({
      input,
      ...(interactive && { output: prompt }),
      terminal: interactive,
      history: file?.load() ?? [],
      historySize: 1000,
      completer: async (line: string): Promise<[string[], string]> => {
        try {
          return await complete(line, this.session.opened);
        } catch {
          // What cannot be looked up is not offered.
          return [[], line];
        }
      },
    });
    this.#interface = lines;
    lines.on('SIGINT', () => this.#interrupt());
    // Lines come in bursts, and while a command is at work; none may be lost.
    const waiting: string[] = [];
    let wake: () => void = () => undefined;
    let over = false;
    lines.on('line', (line) => {
      waiting.push(line);
      wake();
    });
    lines.once('close', () => {
      over = true;
      wake();
    });
    const ignoreSignals = this.#terminal.onSignal((signal) => {
      // With a keyboard, Ctrl+C arrives as a key; this is a kill, or the end of a pipe.
      this.#exitCode = signal === 'SIGINT' ? exitCodes.interrupted : exitCodes.terminated;
      this.#ended = true;
      this.#running?.abort(new Error(signal));
      lines.close();
    });
    if (interactive) {
      await this.#greet();
      this.#prompt();
    }
    while (!this.#ended) {
      const line = waiting.shift();
      if (line === undefined) {
        if (over) break;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        continue;
      }
      if (line.trim() !== '') await this.#execute(line);
      if (interactive && !this.#ended) this.#prompt();
    }
    ignoreSignals();
    file?.save(this.history);
    lines.close();
    await this.session.close();
    return this.#exitCode;
  }

  quit(): void {
    this.#ended = true;
  }

  /** As zkCli prints it for a command it does not know. */
  usage(): string {
    const all = [...zkCommands, ...shellCommands].map(({ name, usage }) => `\t${name} ${usage}`);
    return `tskeeper -s host:port cmd args\n${all.toSorted().join('\n')}\n`;
  }

  async #execute(line: string): Promise<void> {
    this.history.push(line);
    await this.executeWords(wordsOf(line));
  }

  async executeWords([name = '', ...words]: readonly string[]): Promise<void> {
    const running = new AbortController();
    this.#running = running;
    let code: number = exitCodes.done;
    let format = this.#format;
    try {
      const own = shellCommand(name);
      const command = zkCommand(name);
      if (own !== undefined) await own.run(this, words, this.#callOf(running));
      else if (command !== undefined) {
        const line = readLine(command, words);
        format = formatOf(line, format);
        await this.#runCommand(command, line, running);
      } else throw this.#unknown(name);
      // `quit` ends with the code of the command before it.
      if (name === 'quit' || name === 'redo' || name.startsWith('!')) code = this.#exitCode;
    } catch (error) {
      if (error instanceof ReaderGone) {
        // Nobody is left to answer.
        this.#ended = true;
      } else if (running.signal.aborted) {
        this.#terminal.err('interrupted\n');
        code = exitCodes.interrupted;
      } else {
        code = tellFailure(error, format, this.#terminal);
      }
    } finally {
      this.#running = undefined;
    }
    if (!this.#ended || name === 'quit') this.#exitCode = code;
  }

  #callOf(running: AbortController) {
    return { terminal: this.#terminal, format: this.#format, signal: running.signal };
  }

  async #runCommand(command: ZkCommand, line: ParsedLine, running: AbortController): Promise<void> {
    await runCommand(command, line, {
      terminal: this.#terminal,
      format: this.#format,
      settings: this.session.settings,
      input: undefined,
      client: (signal) => this.session.client(signal),
      watch: this.#onEvent,
      signal: running.signal,
    });
  }

  readonly #onEvent = (event: WatchedEvent): void => {
    // What becomes of the session is told by the session.
    if (event.type !== 'None') this.#tell(event);
  };

  #tell(event: WatchedEvent | SessionEvent): void {
    // What `close` and `quit` do is no news.
    if (!this.printsWatches || event.state === 'Closed') return;
    this.#terminal.err(this.#interface?.terminal === true ? `\n${eventText(event, this.#format)}` : eventText(event, this.#format));
    if (this.#running === undefined && this.#interface?.terminal === true) this.#prompt(true);
  }

  #unknown(name: string): CommandFailed {
    this.#terminal.err(this.usage());
    return new CommandFailed(`Command not found: Command not found ${name}`, exitCodes.noCommand);
  }

  async #greet(): Promise<void> {
    const { server } = this.session;
    const opening = new AbortController();
    this.#running = opening;
    this.#terminal.err(`connecting to ${server}; "help" lists the commands, TAB completes, Ctrl+D ends\n`);
    try {
      await this.session.client(opening.signal);
    } catch (error) {
      if (!opening.signal.aborted) tellFailure(error, this.#format, this.#terminal);
    } finally {
      this.#running = undefined;
    }
  }

  #prompt(keepCursor = false): void {
    const { server, stateText } = this.session;
    this.#interface?.setPrompt(`[zk: ${server}(${stateText}) ${this.history.length}] `);
    this.#interface?.prompt(keepCursor);
  }

  /** Ctrl+C breaks off what is at work, or gives up the line that is being typed. */
  #interrupt(): void {
    if (this.#running !== undefined) {
      this.#running.abort(new Error('interrupted'));
      return;
    }
    this.#terminal.prompt?.write('\n');
    // Clears the line.
    this.#interface?.write(null, { ctrl: true, name: 'e' });
    this.#interface?.write(null, { ctrl: true, name: 'u' });
    this.#prompt();
  }
}

function shellCommand(name: string): ShellCommand | undefined {
  return shellCommands.find((command) => command.name === name || (command.name === 'redo' && /^!\d+$/.test(name)));
}
