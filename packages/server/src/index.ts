export {} from './check-node-version.ts';
export type { SessionId, Sid } from '@tskeeper/protocol';
export type { AuthClient, AuthPlugin } from './auth-plugin.ts';
export { ConfigError } from './config/config-error.ts';
export { exitCodes, exitStatusOf } from './exit.ts';
export { createLogger, type LogLevel, logLevels, type LogOptions } from './log.ts';
export { ListenError } from '@tskeeper/runtime';
export type { Server, ServerOptions } from './server.ts';
export { startServer } from './start-server.ts';
