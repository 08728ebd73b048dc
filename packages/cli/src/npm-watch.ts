/**
 * Detects that npm or npx, which started this process, has ended.
 *
 * npm runs a script through a shell, and passes SIGTERM and SIGINT only to that shell. If npm is
 * killed or receives another signal, or if the shell does not pass the signal on, a server would
 * remain as an orphan that keeps its port and its folder. The system does not notify a process of
 * its parent's end, so this module reads the chain of ancestors up to npm twice a second.
 *
 * A process that npm did not start has no such chain, whatever its parent is: a server that a shell
 * runs in the background outlives that shell.
 */
import { readFileSync } from 'node:fs';

/** Facts about other processes. */
export interface ProcessTable {
  /** Parent of this process. */
  readonly ppid: number;
  /**
   * Parent of another process; undefined if that process has ended, 'unreadable' if the system does
   * not say, for example without a free descriptor.
   */
  parentOf(pid: number): number | 'unreadable' | undefined;
  /**
   * The command line, or the title that the process has set, with blanks between the words;
   * undefined if the process has ended or the system does not say.
   */
  commandLineOf(pid: number): string | undefined;
}

/** This process and, on Linux, all other processes. */
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
    // The second field, the program's name in parentheses, may contain blanks and parentheses.
    const [state, ppid] = text.slice(text.lastIndexOf(')') + 2).split(' ');
    // A zombie has ended.
    return ppid === undefined || state === 'Z' || state === 'X' ? undefined : Number(ppid);
  },
  commandLineOf(pid) {
    // The file is empty while a process ends.
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

/**
 * npm sets its title to `npm start` or `npm exec tskeeper serve`; yarn, pnpm and deno keep the name
 * of their script or program.
 */
const packageManagerPattern = /^(\S*node\S* )?(\S*\/)?(npm|npx|pnpm|pnpx|yarn|bun|bunx|deno)(-cli|-\d[\w.-]*?)?(\.[cm]?js)?( |$)/;
const shellPattern = /^(\S*\/)?(sh|dash|bash|zsh|ash|busybox)( |$)/;
/** npm and two shells: one of the script, and one of a script that it calls. */
const depthMax = 3;
/** More than any chain of ancestors has. */
const ancestorsCheckedMax = 100;

/**
 * Pids from the parent up to the package manager; 'gone' if the package manager has already ended;
 * undefined if no package manager started this process.
 */
export type NpmAncestors = readonly number[] | 'gone' | undefined;

/** How this process was started. */
export interface ProcessStart {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The file that Node runs. */
  readonly program: string;
  /** The parent pid that the first statement of that file read. */
  readonly parentPid: number;
}

/**
 * Finds npm among the ancestors. Runs before other modules are loaded, but npm may end even
 * earlier; then the chain leads to init or to another process that adopts orphans, and npm's
 * environment variables decide: they name the command that it started. If the system says nothing
 * about other processes, the chain is the parent alone.
 */
export function findNpmAncestors({ environment, program, parentPid }: ProcessStart, table: ProcessTable): NpmAncestors {
  // Children of a script inherit these variables too, so they do not suffice.
  if (environment['npm_lifecycle_event'] === undefined && environment['npm_command'] === undefined) return undefined;
  const ifNotFound = startsProgram(environment['npm_lifecycle_script'], program) ? 'gone' : undefined;
  if (table.ppid !== parentPid) return ifNotFound;
  const manager = environment['npm_execpath'];
  const ancestors: number[] = [];
  let isThroughShells = true;
  for (
    let pid: number | 'unreadable' | undefined = parentPid;
    typeof pid === 'number' && pid > 0 && ancestors.length < ancestorsCheckedMax;
    pid = table.parentOf(pid)
  ) {
    const command = table.commandLineOf(pid);
    // In a container npm may be process 1.
    if (command === undefined && pid > 1) return ancestors.length === 0 ? [pid] : undefined;
    ancestors.push(pid);
    if (command !== undefined && (packageManagerPattern.test(command) || (manager !== undefined && command.split(' ').includes(manager)))) {
      return isThroughShells && ancestors.length <= depthMax ? ancestors : undefined;
    }
    isThroughShells &&= command !== undefined && shellPattern.test(command);
  }
  return ifNotFound;
}

/**
 * Whether a script runs a program by its name, or with `node`, as one of its commands and in the
 * foreground.
 */
function startsProgram(script: string | undefined, program: string): boolean {
  // A command in the background outlives the shell. The & of && and of 2>&1 does not put a command
  // there.
  if (script === undefined || /(?<![&<>])&(?![&>])/.test(script)) return false;
  return script.split(/&&|\|\||[;|\n(){}]/).some((command) => {
    const words = command
      .split(/\s+/)
      .map((word) => word.replaceAll(/["']/g, ''))
      .filter((word) => word !== '');
    let at = words.findIndex((word) => !/^\w+=/.test(word) && word !== 'exec');
    if (programName(words[at] ?? '') === 'node') at = words.findIndex((word, index) => index > at && !word.startsWith('-'));
    return programName(words[at] ?? '') === programName(program);
  });
}

/** `tskeeper` for `node_modules/.bin/tskeeper` and `bin\tskeeper.js`. */
function programName(path: string): string {
  return path.replace(/^.*[/\\]/, '').replace(/\.\w+$/, '');
}

/**
 * Whether each process of the chain is still the parent of the one before it, as far as the system
 * says.
 */
export function areStillAncestors(ancestors: readonly number[], table: ProcessTable): boolean {
  return ancestors.every((pid, at) => {
    const found = at === 0 ? table.ppid : table.parentOf(ancestors[at - 1]!);
    return found === 'unreadable' || found === pid;
  });
}
