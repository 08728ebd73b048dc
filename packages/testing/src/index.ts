export type { SessionId, Sid } from '@tskeeper/protocol';
export type { EnsembleRole, EnsembleServer, PartitionOptions } from './ensemble-server.ts';
export { TestEnsemble, type ServerOrSid, type TestEnsembleOptions, type WaitOptions } from './test-ensemble.ts';
export { TestServer, type TestServerOptions } from './test-server.ts';
