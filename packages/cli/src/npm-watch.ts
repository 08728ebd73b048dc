/**
 * Notices that npm or npx, which started this process, is gone.
 *
 * npm runs a script through a shell, and passes SIGTERM and SIGINT on to that shell only. Where npm is killed, is sent another signal, or
 * the shell does not pass the signal on, a server would stay as an orphan that keeps its port and its folder. Nothing tells a process
 * that its parent has ended, so the line of ancestors up to npm is read twice a second.
 *
 * A process that npm did not start has no such line, whatever its parent is: a server that a shell has put into the background outlives
 * that shell.
 */
import { readFileSync } from 'node:fs';

/** What is known of other processes. */
export interface ProcessTable {
  /** The parent of this process. */
  readonly ppid: number;
  /** The parent of another process; undefined where it is gone, 'unreadable' where the system does not say, as without a free descriptor. */
  parentOf(pid: number): number | 'unreadable' | undefined;
  /** What it was started as, or calls itself, with blanks between the words; undefined where it is gone or the system does not say. */
  commandOf(pid: number): string | undefined;
}

/** This process and, on Linux, all others. */
export const processTable: ProcessTable = {
  get ppid() {
    return process.ppid;
  },
  parentOf(pid) {
    let text: string | undefined;
    try {
      text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      return code === 'EMFILE' || code === 'ENFILE' || code === 'ENOMEM' ? 'unreadable' : undefined;
    }
    // The second field, the program's name in brackets, may hold blanks and brackets.
    const [state, ppid] = text.slice(text.lastIndexOf(')') + 2).split(' ');
    // A zombie has ended.
    return ppid === undefined || state === 'Z' || state === 'X' ? undefined : Number(ppid);
  },
  commandOf(pid) {
    // Nothing is there of a process that is ending.
    return read(`/proc/${pid}/cmdline`)?.replaceAll('\0', ' ').trim() || undefined;
  },
};

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

/** npm calls itself `npm start` or `npm exec tskeeper serve`; yarn, pnpm and deno keep the name of their script or program. */
const packageManager = /^(\S*node\S* )?(\S*\/)?(npm|npx|pnpm|pnpx|yarn|bun|bunx|deno)(-cli|-\d[\w.-]*?)?(\.[cm]?js)?( |$)/;
const shell = /^(\S*\/)?(sh|dash|bash|zsh|ash|busybox)( |$)/;
/** npm and two shells, one of the script and one of a script that it calls. */
const depthMax = 3;
/** Longer than any line of ancestors. */
const ancestorsMax = 100;

/** From the parent up to the package manager; 'gone' where it has ended already; undefined where none has started this process. */
export type NpmLine = readonly number[] | 'gone' | undefined;

/** How this process was started. */
export interface OwnStart {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The file that Node runs. */
  readonly program: string;
  /** The parent that the first statement of that file has found. */
  readonly parent: number;
}

/**
 * Looks for npm among the ancestors. Called before anything else is loaded: until then npm may have ended as well, and the ancestors lead past
 * it to init or to another process that adopts orphans. Then the variables of npm decide: they name the command that it has started. Where the
 * system says nothing of other processes, the line is the parent alone.
 */
export function lineToNpm({ environment, program, parent }: OwnStart, table: ProcessTable): NpmLine {
  // Children of a script have these too, so they are not enough.
  if (environment['npm_lifecycle_event'] === undefined && environment['npm_command'] === undefined) return undefined;
  const orphaned = startsProgram(environment['npm_lifecycle_script'], program) ? 'gone' : undefined;
  if (table.ppid !== parent) return orphaned;
  const manager = environment['npm_execpath'];
  const line: number[] = [];
  let byShells = true;
  for (
    let pid: number | 'unreadable' | undefined = parent;
    typeof pid === 'number' && pid > 0 && line.length < ancestorsMax;
    pid = table.parentOf(pid)
  ) {
    const command = table.commandOf(pid);
    // In a container npm may be process 1.
    if (command === undefined && pid > 1) return line.length === 0 ? [pid] : undefined;
    line.push(pid);
    if (command !== undefined && (packageManager.test(command) || (manager !== undefined && command.split(' ').includes(manager)))) {
      return byShells && line.length <= depthMax ? line : undefined;
    }
    byShells &&= command !== undefined && shell.test(command);
  }
  return orphaned;
}

/** Whether a script runs a program by its name, or with `node`, as one of its commands and in the foreground. */
function startsProgram(script: string | undefined, program: string): boolean {
  // What a shell puts into the background is to outlive the shell. The & of && and 2>&1 does not do that.
  if (script === undefined || /(?<![&<>])&(?![&>])/.test(script)) return false;
  return script.split(/&&|\|\||[;|\n(){}]/).some((command) => {
    const words = command
      .split(/\s+/)
      .map((word) => word.replaceAll(/["']/g, ''))
      .filter((word) => word !== '');
    let at = words.findIndex((word) => !/^\w+=/.test(word) && word !== 'exec');
    if (nameOf(words[at] ?? '') === 'node') at = words.findIndex((word, index) => index > at && !word.startsWith('-'));
    return nameOf(words[at] ?? '') === nameOf(program);
  });
}

/** `tskeeper` for `node_modules/.bin/tskeeper` and `bin\tskeeper.js`. */
function nameOf(path: string): string {
  return path.replace(/^.*[/\\]/, '').replace(/\.\w+$/, '');
}

/** Whether each of the line is still the parent of the one before it, as far as that can be seen. */
export function isWhole(line: readonly number[], table: ProcessTable): boolean {
  return line.every((pid, at) => {
    const found = at === 0 ? table.ppid : table.parentOf(line[at - 1]!);
    return found === 'unreadable' || found === pid;
  });
}
