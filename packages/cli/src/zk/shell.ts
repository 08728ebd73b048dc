/**
 * `tskeeper shell`: runs commands in one session, from a keyboard or from a script on standard
 * input.
 *
 * It accepts what zkCli accepts, including history and redo. With a keyboard it has a prompt, TAB
 * completion of commands, options and paths, and a history that outlives the process. For a script,
 * standard output contains answers only.
 */
import { createInterface, type Interface } from 'node:readline/promises';
import type { SessionEvent, WatchedEvent } from '@tskeeper/client';
import { askedWords } from '../commands/zk/four-letter-word.ts';
import { zkCommand, zkCommands } from '../commands/zk/table.ts';
import { exitCodes } from '../exit-codes.ts';
import { type OutputFormat, ReaderGone } from '../files/output.ts';
import type { Terminal } from '../terminal.ts';
import { CommandFailed, type ZkCommand } from './command.ts';
import { nearest } from '../nearest.ts';
import { complete } from './completion.ts';
import { HistoryFile } from './history-file.ts';
import type { ParsedLine } from './option-parser.ts';
import { eventText, formatOf, readLine, runCommand, searchText, tellFailure } from './runner.ts';
import type { ConnectionSettings } from './connection-settings.ts';
import { ZkSession } from './session.ts';
import { endNames, type ShellCommand, shellCommands, type ShellState } from './shell-commands.ts';
import { wordsOf } from './words.ts';

export class Shell implements ShellState {
  readonly #terminal: Terminal;
  readonly #format: OutputFormat;
  readonly session: ZkSession;
  /** Lines by number. */
  readonly history: string[] = [];
  printsWatches = true;
  #interface: Interface | undefined;
  /** The running command. */
  #running: AbortController | undefined;
  #exitCode: number = exitCodes.done;
  #ended = false;

  constructor(settings: ConnectionSettings, format: OutputFormat, terminal: Terminal) {
    this.#terminal = terminal;
    this.#format = format;
    this.session = new ZkSession(settings, terminal.clock, {
      onState: (event) => this.#tell(event),
      onSearch: (sentence) => this.#announce(searchText(sentence, this.#format)),
      onOpened: () => {
        // The prompt shows the state.
        if (this.#interface?.terminal === true && this.#running === undefined && !this.#ended) this.#prompt(true);
      },
    });
  }

  /**
   * Runs until the end of the input, or `quit`; resolves with the exit code of the last command, as
   * zkCli does.
   */
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
          return await complete(line, this.session.opened, this.#terminal.clock);
        } catch {
          // Completion needs a lookup that failed: offer nothing.
          return [[], line];
        }
      },
    });
    this.#interface = lines;
    lines.on('SIGINT', () => this.#interrupt());
    // Lines arrive in bursts and while a command runs; queue them so that none is lost.
    const waiting: string[] = [];
    let wake: () => void = () => undefined;
    let over = false;
    lines.on('line', (line) => {
      waiting.push(line);
      if (interactive && endNames.includes(line.trim())) this.#endWaiting();
      wake();
    });
    lines.once('close', () => {
      over = true;
      if (interactive) this.#endWaiting();
      wake();
    });
    const ignoreSignals = this.#terminal.onSignal((signal) => {
      // With a keyboard, Ctrl+C arrives as a key; this signal is a kill, or the end of a pipe.
      this.#exitCode = signal === 'SIGINT' ? exitCodes.interrupted : exitCodes.terminated;
      this.#ended = true;
      this.#running?.abort(new Error(signal));
      lines.close();
    });
    if (interactive) {
      this.#terminal.err(`connecting to ${this.session.server}; "help" lists the commands, TAB completes, Ctrl+D ends\n`);
      this.session.begin();
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
    // At the end of the input the cursor is still after the prompt.
    if (over && !this.#ended) prompt?.write('\n');
    ignoreSignals();
    file?.save(this.history);
    lines.close();
    await this.session.close();
    return this.#exitCode;
  }

  quit(): void {
    this.#ended = true;
  }

  /** The list that zkCli prints for an unknown command. */
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
      if (endNames.includes(name) || name === 'redo' || name.startsWith('!')) code = this.#exitCode;
    } catch (error) {
      if (error instanceof ReaderGone) {
        // The reader has closed the output.
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
    if (!this.#ended || endNames.includes(name)) this.#exitCode = code;
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
    // `onState` reports the state of the session.
    if (event.type !== 'None') this.#tell(event);
  };

  #tell(event: WatchedEvent | SessionEvent): void {
    // `close` and `quit` cause this state; the user expects it.
    if (!this.printsWatches || event.state === 'Closed') return;
    this.#announce(eventText(event, this.#format));
  }

  /** Prints an event that must not spoil the line being typed. */
  #announce(text: string): void {
    if (this.#ended) return;
    const interactive = this.#interface?.terminal === true;
    this.#terminal.err(interactive ? `\n${text}` : text);
    if (interactive && this.#running === undefined) this.#prompt(true);
  }

  /** zkCli lists all commands after this line; for a typo the nearest command helps more. */
  #unknown(name: string): CommandFailed {
    const commands = [...zkCommands, ...shellCommands].map((command) => command.name);
    const meant = askedWords.includes(name) ? `4lw ${name}` : nearest(name, commands);
    const hint = meant === undefined ? '' : `Did you mean "${meant}"? `;
    return new CommandFailed(`Command not found: Command not found ${name}\n${hint}"help" lists the commands.`, exitCodes.noCommand);
  }

  #prompt(keepCursor = false): void {
    const { server, stateText } = this.session;
    this.#interface?.setPrompt(`[zk: ${server}(${stateText}) ${this.history.length}] `);
    this.#interface?.prompt(keepCursor);
  }

  /**
   * The user ends the shell: interrupt a command that waits for a session, and let a running one
   * finish.
   */
  #endWaiting(): void {
    if (this.session.isConnecting) this.#running?.abort(new Error('interrupted'));
  }

  /** Ctrl+C interrupts the running command, or discards the line being typed. */
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
