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
  /** The parent of another process, undefined where it is gone or the system does not say. */
  parentOf(pid: number): number | undefined;
  /** What it was started as, or calls itself, with blanks between the words; undefined where it is gone or the system does not say. */
  commandOf(pid: number): string | undefined;
}

/** This process and, on Linux, all others. */
export const processTable: ProcessTable = {
  get ppid() {
    return process.ppid;
  },
  parentOf(pid) {
    const text = read(`/proc/${pid}/stat`);
    // The second field, the program's name in brackets, may hold blanks and brackets.
    const [state, ppid] = text?.slice(text.lastIndexOf(')') + 2).split(' ') ?? [];
    // A zombie has ended.
    return ppid === undefined || state === 'Z' || state === 'X' ? undefined : Number(ppid);
  },
  commandOf(pid) {
    return read(`/proc/${pid}/cmdline`)?.replaceAll('\0', ' ').trim();
  },
};

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

/** npm calls itself `npm start` or `npm exec tskeeper serve`; yarn and pnpm keep the name of their script. */
const packageManager = /^(\S*node\S* )?(\S*\/)?(npm|npx|pnpm|yarn)(-cli)?(\.c?js)?( |$)/;
const shell = /^(\S*\/)?(sh|dash|bash|zsh|ash|busybox)( |$)/;
/** npm and two shells, one of the script and one of a script that it calls. */
const depthMax = 3;

/**
 * From the parent up to the package manager; undefined where none has started this process. Where the system says nothing of other
 * processes, the parent alone.
 */
export function lineToNpm(environment: Readonly<Record<string, string | undefined>>, table: ProcessTable): readonly number[] | undefined {
  // Children of a script have these too, so they are not enough.
  if (environment['npm_lifecycle_event'] === undefined && environment['npm_command'] === undefined) return undefined;
  const line: number[] = [];
  for (let pid: number | undefined = table.ppid; pid !== undefined && pid > 1 && line.length < depthMax; pid = table.parentOf(pid)) {
    const command = table.commandOf(pid);
    if (command === undefined) return line.length === 0 ? [pid] : undefined;
    line.push(pid);
    if (packageManager.test(command)) return line;
    if (!shell.test(command)) return undefined;
  }
  return undefined;
}

/** Whether each of the line is still the parent of the one before it. */
export function isWhole(line: readonly number[], table: ProcessTable): boolean {
  return line.every((pid, at) => pid === (at === 0 ? table.ppid : table.parentOf(line[at - 1]!)));
}
