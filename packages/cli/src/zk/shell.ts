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
import { fourLetterWords } from '../commands/zk/four-letter-word.ts';
import { findZkCommand, zkCommands } from '../commands/zk/table.ts';
import { exitCodes } from '../exit-codes.ts';
import { type OutputFormat, OutputClosed } from '../files/output.ts';
import type { Terminal } from '../terminal.ts';
import { CommandFailed, type ZkCommand } from './command.ts';
import { closestWord } from '../closest-word.ts';
import { complete } from './completion.ts';
import { HistoryFile } from './history-file.ts';
import type { ParsedLine } from './option-parser.ts';
import { eventText, formatFor, parseCommandLine, runCommand, progressText, printFailure } from './runner.ts';
import type { ConnectionSettings } from './connection-settings.ts';
import { ZkSession } from './session.ts';
import { exitCommandNames, type ShellCommand, shellCommands, type ShellContext } from './shell-commands.ts';
import { splitWords } from './split-words.ts';

export class Shell implements ShellContext {
  readonly #terminal: Terminal;
  readonly #format: OutputFormat;
  readonly session: ZkSession;
  /** Lines by number. */
  readonly history: string[] = [];
  printsWatches = true;
  #readline: Interface | undefined;
  /** The running command. */
  #currentCommand: AbortController | undefined;
  #exitCode: number = exitCodes.done;
  #hasEnded = false;

  constructor(settings: ConnectionSettings, format: OutputFormat, terminal: Terminal) {
    this.#terminal = terminal;
    this.#format = format;
    this.session = new ZkSession(settings, terminal.clock, {
      onState: (event) => this.#printEvent(event),
      onProgress: (sentence) => this.#printNotice(progressText(sentence, this.#format)),
      onOpened: () => {
        // The prompt shows the state.
        if (this.#readline?.terminal === true && this.#currentCommand === undefined && !this.#hasEnded) this.#prompt(true);
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
    const historyFile = interactive ? new HistoryFile(this.#terminal.environment) : undefined;
    const readline = createInterface({
      input,
      ...(interactive && { output: prompt }),
      terminal: interactive,
      history: historyFile?.load() ?? [],
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
    this.#readline = readline;
    readline.on('SIGINT', () => this.#interrupt());
    // Lines arrive in bursts and while a command runs; queue them so that none is lost.
    const pendingLines: string[] = [];
    let wake: () => void = () => undefined;
    let hasInputEnded = false;
    readline.on('line', (line) => {
      pendingLines.push(line);
      if (interactive && exitCommandNames.includes(line.trim())) this.#abortConnecting();
      wake();
    });
    readline.once('close', () => {
      hasInputEnded = true;
      if (interactive) this.#abortConnecting();
      wake();
    });
    const ignoreSignals = this.#terminal.onSignal((signal) => {
      // With a keyboard, Ctrl+C arrives as a key; this signal is a kill, or the end of a pipe.
      this.#exitCode = signal === 'SIGINT' ? exitCodes.interrupted : exitCodes.terminated;
      this.#hasEnded = true;
      this.#currentCommand?.abort(new Error(signal));
      readline.close();
    });
    if (interactive) {
      this.#terminal.err(`connecting to ${this.session.connectString}; "help" lists the commands, TAB completes, Ctrl+D ends\n`);
      this.session.startConnecting();
      this.#prompt();
    }
    while (!this.#hasEnded) {
      const line = pendingLines.shift();
      if (line === undefined) {
        if (hasInputEnded) break;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        continue;
      }
      if (line.trim() !== '') await this.#execute(line);
      if (interactive && !this.#hasEnded) this.#prompt();
    }
    // At the end of the input the cursor is still after the prompt.
    if (hasInputEnded && !this.#hasEnded) prompt?.write('\n');
    ignoreSignals();
    historyFile?.save(this.history);
    readline.close();
    await this.session.close();
    return this.#exitCode;
  }

  quit(): void {
    this.#hasEnded = true;
  }

  /** The list that zkCli prints for an unknown command. */
  usage(): string {
    const all = [...zkCommands, ...shellCommands].map(({ name, usage }) => `\t${name} ${usage}`);
    return `tskeeper -s host:port cmd args\n${all.toSorted().join('\n')}\n`;
  }

  async #execute(line: string): Promise<void> {
    this.history.push(line);
    await this.executeWords(splitWords(line));
  }

  async executeWords([name = '', ...words]: readonly string[]): Promise<void> {
    const abortController = new AbortController();
    this.#currentCommand = abortController;
    let code: number = exitCodes.done;
    let format = this.#format;
    try {
      const shellOnly = findShellCommand(name);
      const command = findZkCommand(name);
      if (shellOnly !== undefined) await shellOnly.run(this, words, this.#shellCall(abortController));
      else if (command !== undefined) {
        const line = parseCommandLine(command, words);
        format = formatFor(line, format);
        await this.#runCommand(command, line, abortController);
      } else throw this.#unknownCommandError(name);
      // `quit` ends with the code of the command before it.
      if (exitCommandNames.includes(name) || name === 'redo' || name.startsWith('!')) code = this.#exitCode;
    } catch (error) {
      if (error instanceof OutputClosed) {
        // The reader has closed the output.
        this.#hasEnded = true;
      } else if (abortController.signal.aborted) {
        this.#terminal.err('interrupted\n');
        code = exitCodes.interrupted;
      } else {
        code = printFailure(error, format, this.#terminal);
      }
    } finally {
      this.#currentCommand = undefined;
    }
    if (!this.#hasEnded || exitCommandNames.includes(name)) this.#exitCode = code;
  }

  #shellCall(abortController: AbortController) {
    return { terminal: this.#terminal, format: this.#format, signal: abortController.signal };
  }

  async #runCommand(command: ZkCommand, line: ParsedLine, abortController: AbortController): Promise<void> {
    await runCommand(command, line, {
      terminal: this.#terminal,
      format: this.#format,
      settings: this.session.settings,
      input: undefined,
      client: (signal) => this.session.client(signal),
      watch: this.#onEvent,
      signal: abortController.signal,
    });
  }

  readonly #onEvent = (event: WatchedEvent): void => {
    // `onState` reports the state of the session.
    if (event.type !== 'None') this.#printEvent(event);
  };

  #printEvent(event: WatchedEvent | SessionEvent): void {
    // `close` and `quit` cause this state; the user expects it.
    if (!this.printsWatches || event.state === 'Closed') return;
    this.#printNotice(eventText(event, this.#format));
  }

  /** Prints an event that must not spoil the line being typed. */
  #printNotice(text: string): void {
    if (this.#hasEnded) return;
    const interactive = this.#readline?.terminal === true;
    this.#terminal.err(interactive ? `\n${text}` : text);
    if (interactive && this.#currentCommand === undefined) this.#prompt(true);
  }

  /** zkCli lists all commands after this line; for a typo the nearest command helps more. */
  #unknownCommandError(name: string): CommandFailed {
    const commands = [...zkCommands, ...shellCommands].map((command) => command.name);
    const meant = fourLetterWords.includes(name) ? `4lw ${name}` : closestWord(name, commands);
    const hint = meant === undefined ? '' : `Did you mean "${meant}"? `;
    return new CommandFailed(`Command not found: Command not found ${name}\n${hint}"help" lists the commands.`, exitCodes.noCommand);
  }

  #prompt(keepCursor = false): void {
    const { connectString, stateText } = this.session;
    this.#readline?.setPrompt(`[zk: ${connectString}(${stateText}) ${this.history.length}] `);
    this.#readline?.prompt(keepCursor);
  }

  /**
   * The user ends the shell: interrupt a command that waits for a session, and let a running one
   * finish.
   */
  #abortConnecting(): void {
    if (this.session.isConnecting) this.#currentCommand?.abort(new Error('interrupted'));
  }

  /** Ctrl+C interrupts the running command, or discards the line being typed. */
  #interrupt(): void {
    if (this.#currentCommand !== undefined) {
      this.#currentCommand.abort(new Error('interrupted'));
      return;
    }
    this.#terminal.prompt?.write('\n');
    // Clears the line.
    this.#readline?.write(null, { ctrl: true, name: 'e' });
    this.#readline?.write(null, { ctrl: true, name: 'u' });
    this.#prompt();
  }
}

function findShellCommand(name: string): ShellCommand | undefined {
  return shellCommands.find((command) => command.name === name || (command.name === 'redo' && /^!\d+$/.test(name)));
}
