import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/**
 * Finds the process that listens on a TCP port, for the message about a port in use. Linux only,
 * and only for what this user may read: the kernel lists listening sockets by inode, and a process
 * shows its sockets as links in /proc/<pid>/fd.
 */
export interface PortOwner {
  readonly pid: number;
  /** The name of the program, as ps shows it. */
  readonly program: string;
}

/** The state `LISTEN` in /proc/net/tcp. */
const listening = '0A';

export function portOwner(port: number, proc = '/proc'): PortOwner | undefined {
  const inodes = new Set([...listeners(`${proc}/net/tcp`, port), ...listeners(`${proc}/net/tcp6`, port)]);
  if (inodes.size === 0) return undefined;
  for (const pid of attempt(() => readdirSync(proc)) ?? []) {
    if (!/^\d+$/.test(pid)) continue;
    for (const fd of attempt(() => readdirSync(`${proc}/${pid}/fd`)) ?? []) {
      const target = attempt(() => readlinkSync(`${proc}/${pid}/fd/${fd}`));
      const inode = target === undefined ? undefined : /^socket:\[(\d+)\]$/.exec(target)?.[1];
      if (inode !== undefined && inodes.has(inode)) {
        return { pid: Number(pid), program: attempt(() => readFileSync(`${proc}/${pid}/comm`, 'utf8').trim()) ?? 'unknown' };
      }
    }
  }
  return undefined;
}

/**
 * Lines look like `sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode ...`,
 * addresses as HEX:PORT.
 */
function* listeners(table: string, port: number): Iterable<string> {
  const text = attempt(() => readFileSync(table, 'utf8'));
  if (text === undefined) return;
  for (const line of text.split('\n').slice(1)) {
    const fields = line.trim().split(/\s+/);
    const [, local, , state] = fields;
    const inode = fields[9];
    if (state === listening && inode !== undefined && Number.parseInt(local!.slice(local!.lastIndexOf(':') + 1), 16) === port) yield inode;
  }
}

/**
 * Processes end during the search, and those of other users are unreadable: what cannot be read is
 * skipped.
 */
function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
