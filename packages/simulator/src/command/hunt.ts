/**
 * Looks for one mutant with the enumerator of crash states, or with the explorer: the same program in a process of its own, in which the mutant
 * has taken the place of the file.
 */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const loader = new URL('../../bin/mutant.js', import.meta.url).href;

export interface Hunt {
  /** What has given it away; undefined when it has escaped. */
  readonly finding: string | undefined;
  /** Distinct states that were looked at. */
  readonly states: number;
}

/** @param states how many crash states are looked at, at most. */
export function huntWithCrashStates(mutant: string, states = 6000): Promise<Hunt> {
  return hunt(mutant, '../../bin/sim.js', ['crash-states', '--states', String(states), '--per-case', '100']);
}

async function hunt(mutant: string, program: string, args: readonly string[]): Promise<Hunt> {
  return await new Promise((resolve, reject) => {
    const child = fork(fileURLToPath(new URL(program, import.meta.url)), args, {
      execArgv: ['--import', loader],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      env: { ...process.env, TSKEEPER_MUTANT: mutant },
    });
    let found: Hunt | undefined;
    child.on('message', (message: Hunt) => {
      found = message;
    });
    child.on('error', reject);
    child.on('exit', (code, signal) => resolve(found ?? { finding: `its process has ended with ${signal ?? `code ${code}`}`, states: 0 }));
  });
}
