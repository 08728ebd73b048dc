import { startServer } from '@tskeeper/server';
import { defineServe } from './commands/serve.ts';
import { defineSnapshot } from './commands/snapshot.ts';
import { defineTxnlog } from './commands/txnlog.ts';
import { defineZk } from './commands/zk.ts';
import { run } from './program.ts';
import { processTerminal } from './terminal.ts';

/** Runs a command line of this process to its exit code. Each command is one entry of the list. */
export function main(argv: readonly string[]): Promise<number> {
  return run(argv, processTerminal(), [defineServe(startServer), defineZk, defineTxnlog, defineSnapshot]);
}
