/**
 * The end of this process, come what may.
 *
 * `process.exit` waits for the threads that wait for disks and name servers. When one of them does not come back, neither does it: a
 * server that has given up a disk that hangs would stay for ever, serving nobody, in the way of its successor. So a process that ends
 * while such work is under way leaves somebody behind who sees to it.
 */
import { spawn } from 'node:child_process';

/** Work on a thread, as node calls it: of the file system, of the resolver, of zlib and crypto. */
const onThread = /^(FSReq|GetAddrInfo|GetNameInfo|Zlib)|(Job|Request)$/;
const patienceMs = 2000;

/** Ends the process with this exit code. Threads that are in a system call have two seconds for it; then the process is killed. */
export function endProcess(code: number): never {
  if (process.getActiveResourcesInfo().some((name) => onThread.test(name))) leaveKiller();
  process.exit(code);
}

/** A process that ends this one if it is still there then; its pid cannot have become somebody else's as long as it is the parent. */
function leaveKiller(): void {
  const { pid } = process;
  const program = `setTimeout(() => process.ppid === ${pid} && process.kill(${pid}, 'SIGKILL'), ${patienceMs})`;
  try {
    const killer = spawn(process.execPath, ['-e', program], { stdio: 'ignore', detached: true, env: {} });
    killer.on('error', () => process.kill(pid, 'SIGKILL'));
    killer.unref();
  } catch {
    // Nobody can be left behind: a sudden end is better than none.
    process.kill(pid, 'SIGKILL');
  }
}
