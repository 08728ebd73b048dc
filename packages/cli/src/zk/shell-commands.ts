/** Commands of the shell alone, since they act on the shell. */
import { exitCodes } from '../exit-codes.ts';
import type { OutputFormat } from '../files/output.ts';
import type { Terminal } from '../terminal.ts';
import { CommandFailed } from './command.ts';
import type { ZkSession } from './session.ts';
import { splitWords } from './split-words.ts';

/** What these commands may use of the shell. */
export interface ShellContext {
  readonly session: ZkSession;
  /** Lines by number; the last is the running one. */
  readonly history: string[];
  printsWatches: boolean;
  /** Ends the shell after the running command. */
  quit(): void;
  /** The list of all commands. */
  usage(): string;
  /** Runs a line that is split into words. */
  executeWords(words: readonly string[]): Promise<void>;
}

export interface ShellCall {
  readonly terminal: Terminal;
  readonly format: OutputFormat;
  readonly signal: AbortSignal;
}

export interface ShellCommand {
  readonly name: string;
  readonly usage: string;
  readonly summary: string;
  /** Shape of the answer with `-o json`, for the reference; undefined if there is none. */
  readonly jsonShape?: string;
  run(shell: ShellContext, words: readonly string[], call: ShellCall): Promise<void>;
}

/** Number of lines before the last one, as in zkCli. */
const historyLinesShown = 10;

/** Commands that end the shell. */
export const exitCommandNames: readonly string[] = ['exit', 'quit'];

function quit(shell: ShellContext): Promise<void> {
  shell.quit();
  return Promise.resolve();
}

export const shellCommands: readonly ShellCommand[] = [
  {
    name: 'close',
    usage: '',
    summary: 'end the session',
    run: (shell) => shell.session.close(),
  },
  {
    name: 'connect',
    usage: 'host:port',
    summary: 'end the session and open one with these servers, by default the same ones',
    async run(shell, [server], { signal }) {
      await shell.session.connect(server ?? shell.session.connectString, signal);
    },
  },
  {
    name: 'exit',
    usage: '',
    summary: 'same as quit',
    run: quit,
  },
  {
    name: 'help',
    usage: '',
    summary: 'list the commands',
    async run(shell, _words, { terminal }) {
      await terminal.write(Buffer.from(shell.usage()));
    },
  },
  {
    name: 'history',
    usage: '',
    summary: 'print the last lines with their numbers',
    jsonShape: '{"history": [{"number": 0, "line": "ls /"}]}',
    async run({ history }, _words, { terminal, format }) {
      const first = Math.max(0, history.length - 1 - historyLinesShown);
      const shown = history.slice(first).map((line, at) => ({ number: first + at, line }));
      const text =
        format === 'json' ? `${JSON.stringify({ history: shown })}\n` : shown.map(({ number, line }) => `${number} - ${line}\n`).join('');
      await terminal.write(Buffer.from(text));
    },
  },
  {
    name: 'printwatches',
    usage: 'on|off',
    summary: 'whether to print events of watches and of the session',
    jsonShape: '{"printwatches": true}',
    async run(shell, [choice], { terminal, format }) {
      if (choice !== undefined) {
        shell.printsWatches = choice === 'on';
        return;
      }
      const text =
        format === 'json' ? JSON.stringify({ printwatches: shell.printsWatches }) : `printwatches is ${shell.printsWatches ? 'on' : 'off'}`;
      await terminal.write(Buffer.from(`${text}\n`));
    },
  },
  {
    name: 'quit',
    usage: '',
    summary: 'end the session and the shell',
    run: quit,
  },
  {
    name: 'redo',
    usage: 'cmdno',
    summary: 'run a line of the history again; !3 is short for redo 3',
    async run(shell, words) {
      const typed = splitWords(shell.history.at(-1) ?? '')[0] ?? '';
      const text = typed.startsWith('!') ? typed.slice(1) : (words[0] ?? '');
      const number = /^\d+$/.test(text) ? Number(text) : -1;
      // The last line is the redo itself and cannot be the target.
      const line = number < shell.history.length - 1 ? shell.history[number] : undefined;
      if (line === undefined) throw new CommandFailed('Command index out of range', exitCodes.refused);
      const again = splitWords(line);
      if (again[0] === 'redo' || again[0]?.startsWith('!') === true) throw new CommandFailed('No redoing redos', exitCodes.refused);
      // The history shows the line that was run.
      shell.history[shell.history.length - 1] = line;
      await shell.executeWords(again);
    },
  },
];
