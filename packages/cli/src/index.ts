export { defineServe, type StartServer } from './commands/serve.ts';
export { endProcess } from './end-process.ts';
export { main } from './main.ts';
export { type DefineCommand, run, type Terminal } from './program.ts';
