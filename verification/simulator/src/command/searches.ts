/**
 * Exhaustive searches: the explorer's presets and the crash states of joining, in the size that
 * every change runs. Each is a process of its own, so that they use two processors.
 */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export interface SearchOutcome {
  readonly name: string;
  readonly passed: boolean;
  readonly output: string;
}

/** About half a minute of CPU time each. */
const searches = [
  { name: 'explorer', program: '../../bin/explore.js', args: ['all'] },
  { name: 'crash states', program: '../../bin/sim.js', args: ['crash-states'] },
];

export async function runSearches(onOutcome: (outcome: SearchOutcome) => void): Promise<void> {
  const run = async ({ name, program, args }: (typeof searches)[number]) => onOutcome(await runSearch(name, program, args));
  await Promise.all(searches.map(run));
}

function runSearch(name: string, program: string, args: readonly string[]): Promise<SearchOutcome> {
  return new Promise((resolve, reject) => {
    const child = fork(fileURLToPath(new URL(program, import.meta.url)), args, { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
    let output = '';
    child.stdout!.on('data', (bytes: Buffer) => {
      output += bytes.toString();
    });
    child.on('error', reject);
    child.on('close', (code) => resolve({ name, passed: code === 0, output: output.trimEnd() }));
  });
}
