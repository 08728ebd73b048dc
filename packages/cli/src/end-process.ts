/**
 * Ends this process in any case.
 *
 * `process.exit` waits for threads that wait for disks and name servers. If such a thread never
 * returns, `process.exit` does not return either: a server that stopped because its disk hangs
 * would stay forever, serve no clients and keep its port from its successor. So a process that ends
 * while such work is in progress starts a second process, which kills it.
 */
import { spawn } from 'node:child_process';

/** Work on a thread by Node's names: file system, resolver, zlib and crypto. */
const threadWorkPattern = /^(FSReq|GetAddrInfo|GetNameInfo|Zlib)|(Job|Request)$/;
const killAfterMs = 2000;

/**
 * Ends the process with this exit code. Threads in a system call have two seconds to return; then
 * the process is killed.
 */
export function endProcess(code: number): never {
  if (process.getActiveResourcesInfo().some((name) => threadWorkPattern.test(name))) spawnKiller();
  process.exit(code);
}

/**
 * Starts a process that kills this one if it still exists then. As long as it is the parent, its
 * pid cannot belong to another process.
 */
function spawnKiller(): void {
  const { pid } = process;
  const program = `setTimeout(() => process.ppid === ${pid} && process.kill(${pid}, 'SIGKILL'), ${killAfterMs})`;
  try {
    const killer = spawn(process.execPath, ['-e', program], { stdio: 'ignore', detached: true, env: {} });
    killer.on('error', () => process.kill(pid, 'SIGKILL'));
    killer.unref();
  } catch {
    // No process could be started: a sudden end is better than no end.
    process.kill(pid, 'SIGKILL');
  }
}
