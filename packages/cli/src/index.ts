export { defineServe, type StartServer } from './commands/serve.ts';
export { defineSnapshot } from './commands/snapshot.ts';
export { defineTxnlog } from './commands/txnlog.ts';
export { defineZk } from './commands/zk.ts';
export { endProcess } from './end-process.ts';
export { exitCodes } from './exit-codes.ts';
export { main } from './main.ts';
export { type DefineCommand, programOf, run } from './program.ts';
export type { Terminal } from './terminal.ts';
