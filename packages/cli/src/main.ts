import { startServer } from '@tskeeper/server';
import { defineServe } from './commands/serve.ts';
import { type DefineCommand, run } from './program.ts';
import type { NpmLine } from './npm-watch.ts';
import { processTerminal } from './terminal.ts';

/**
 * Runs a command line of this process to its exit code. `npm` is the line of ancestors up to the package manager that has started this process, as
 * found when it started: a server ends when one of them has ended. Rejects as `run` does.
 */
export async function main(argv: readonly string[], npm?: NpmLine): Promise<number> {
  const serve = defineServe(startServer);
  // A server loads what it needs and no more: it starts sooner, and where few files may be open it starts at all.
  const commands = argv[0] === 'serve' ? [serve] : [serve, ...(await otherCommands())];
  return run(argv, processTerminal(npm), commands);
}

/** Each command is one entry of the list. */
async function otherCommands(): Promise<DefineCommand[]> {
  const [{ defineZk }, { defineTxnlog }, { defineSnapshot }] = await Promise.all([
    import('./commands/zk.ts'),
    import('./commands/txnlog.ts'),
    import('./commands/snapshot.ts'),
  ]);
  return [defineZk, defineTxnlog, defineSnapshot];
}
