import { startServer } from '@tskeeper/server';
import { defineServe } from './commands/serve.ts';
import { type DefineCommand, run } from './program.ts';
import { processTerminal } from './terminal.ts';

/** Runs a command line of this process to its exit code. Rejects as `run` does. */
export async function main(argv: readonly string[]): Promise<number> {
  const serve = defineServe(startServer);
  // A server loads what it needs and no more: it starts sooner, and where few files may be open it starts at all.
  const commands = argv[0] === 'serve' ? [serve] : [serve, ...(await otherCommands())];
  return run(argv, processTerminal(), commands);
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
