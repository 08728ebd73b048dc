export {} from './node/node-version.ts';
export {
  type Acl,
  anyone,
  authenticated,
  type ClientInfo,
  creatorAcl,
  ErrorCode,
  type ErrorName,
  type Id,
  type Millis,
  openAcl,
  Perms,
  readOnlyAcl,
  type SessionId,
  type Zxid,
} from '@tskeeper/protocol';
export type { DigestMd5Options } from './auth/digest-md5.ts';
export type { CallOptions } from './calls/call-options.ts';
export type { CreateExtras } from './calls/create.ts';
export type { DeleteRecursiveResult } from './calls/delete-recursive.ts';
export type { ParentMode } from './calls/parents.ts';
export type { RetryPolicy } from './calls/retry-policy.ts';
export type { Updater } from './calls/update.ts';
export type { ListedChild } from './calls/children.ts';
export type { WalkedZnode } from './calls/walk.ts';
export { Client } from './client.ts';
export type {
  AddWatchOptions,
  ClientEvents,
  ClientState,
  CreateOptions,
  DeleteOptions,
  EnsurePathOptions,
  LinearizableOption,
  PlainReadOptions,
  ReadOptions,
  ReconfigOptions,
  RemoveWatchesOptions,
  SetDataOptions,
  TransferLeaderOptions,
  UpdateOptions,
  VersionOption,
  VersionOptions,
  ChildrenOptions,
  WalkOptions,
  WatchOption,
} from './client-options.ts';
export { ClientView } from './client-view.ts';
export { DataFormatError, type GetJsonResult, type GetTextResult } from './text-and-json.ts';
export type { Clock, Random, TimerHandle } from './clock.ts';
export {
  type ConnectString,
  ConnectStringError,
  type ServerList,
  defaultPort,
  formatServer,
  parseConnectString,
} from './connect-string.ts';
export { connect, type ConnectOptions, createClient } from './connect.ts';
export { ConnectOptionsError } from './connect-options-error.ts';
export { digestId, formatSessionId, formatZxid } from './formats.ts';
export { fourLetterWord, type FourLetterWordOptions } from './four-letter-word.ts';
export { KeeperError, type KeeperErrorCode, type OperationOutcome, type Outcome } from './keeper-error.ts';
export { NodeTransport, type NodeTransportOptions } from './node/node-transport.ts';
export type { GssapiOptions } from './node/gssapi.ts';
export type { SaslOptions } from './node/sasl-mechanism.ts';
export type { TlsOptions, TlsSource } from './node/tls-context.ts';
export { TlsTransport } from './node/tls-transport.ts';
export type { CreateMode, CreateSettings, Data, PlainCreateSettings, TtlCreateMode, TtlCreateSettings } from './operations/create.ts';
export {
  type CheckOp,
  type CreateOp,
  type DeleteOp,
  type GetChildrenOp,
  type GetDataOp,
  op,
  type ReadOp,
  type ReadResult,
  type ReadResults,
  type SetDataOp,
  type WriteOp,
  type WriteResult,
  type WriteResults,
} from './operations/multi.ts';
export type {
  CreateResult,
  GetAclResult,
  GetChildrenResult,
  GetDataResult,
  IncrementalReconfig,
  ReconfigSettings,
  WholeReconfig,
} from './operations/single.ts';
export type { EndReason } from './session/session-end.ts';
export { compareSequences, sequenceOf } from './sequence.ts';
export type { Stat } from './stat.ts';
export type { SessionTraceDetail, TracedCall, TracedSessionEvent, Tracer } from './tracing.ts';
export type { ResolvedAddress, ServerAddress, SrvRecord, Transport, TransportCnxn, TransportSink } from './transport.ts';
export type {
  ChangeType,
  ConnectFailure,
  KeeperState,
  NodeEvent,
  NodeEventType,
  SessionEvent,
  WatchedEvent,
  WatchListener,
} from './watched-event.ts';
export type { Reread, ZnodeChange } from './watches/change-queue.ts';
export type { RecursiveWatchLoopEvent, WatchLoop, WatchLoopEvent, WatchLoopOptions } from './view/watch-loop.ts';
export type { LeaderInfo } from './operations/operators.ts';
