import { startServer } from '@tskeeper/server';
import { defineServe } from './commands/serve.ts';
import { type DefineCommand, run } from './program.ts';
import type { NpmAncestors } from './npm-watch.ts';
import { processTerminal } from './terminal.ts';

/**
 * Runs a command line in this process; resolves with its exit code. `npm` is the chain of ancestors
 * up to the package manager that started this process, as found at its start: a server ends when
 * one of them ends. Rejects as `run` does.
 */
export async function main(argv: readonly string[], npm?: NpmAncestors): Promise<number> {
  const serve = defineServe(startServer);
  // A server loads only what it needs: it starts sooner, and it can start where few files may be
  // open.
  const commands = argv[0] === 'serve' ? [serve] : [serve, ...(await otherCommands())];
  return run(argv, processTerminal(npm), commands);
}

/** One entry per group of commands. */
async function otherCommands(): Promise<DefineCommand[]> {
  const [{ defineZk }, { defineTxnlog }, { defineSnapshot }] = await Promise.all([
    import('./commands/zk.ts'),
    import('./commands/txnlog.ts'),
    import('./commands/snapshot.ts'),
  ]);
  return [defineZk, defineTxnlog, defineSnapshot];
}
