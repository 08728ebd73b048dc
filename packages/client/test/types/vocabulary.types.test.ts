/**
 * All other exports: constants, small functions, and the types that programs name in their own
 * signatures. The compiler checks the assertions (`npm run check`); the test checks that nothing is
 * missing.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, expectTypeOf, it } from 'vitest';
import {
  type Acl,
  type AddWatchOptions,
  authenticated,
  type CallOptions,
  type ClientEvents,
  compareSequences,
  type ConnectOptions,
  ConnectOptionsError,
  type ConnectString,
  ConnectStringError,
  type CreateExtras,
  type CreateMode,
  type CreateOptions,
  type CreateSettings,
  creatorAcl,
  defaultPort,
  type DeleteOptions,
  type ResolvedAddress,
  type DigestMd5Options,
  digestId,
  type EnsurePathOptions,
  ErrorCode,
  type ErrorName,
  formatServer,
  formatSessionId,
  formatZxid,
  fourLetterWord,
  type FourLetterWordOptions,
  type GetDataOp,
  type GssapiOptions,
  type Id,
  type IncrementalReconfig,
  type LinearizableOption,
  type Millis,
  NodeTransport,
  type OperationOutcome,
  type ParentMode,
  type PlainCreateSettings,
  type PlainReadOptions,
  type Random,
  readOnlyAcl,
  type ReadOp,
  type ReadOptions,
  type ReadResult,
  type ReadResults,
  type LeaderInfo,
  type ReconfigOptions,
  type TransferLeaderOptions,
  type ReconfigSettings,
  type RecursiveWatchLoopEvent,
  type RemoveWatchesOptions,
  type RetryPolicy,
  type SaslOptions,
  sequenceOf,
  type ServerAddress,
  type SrvRecord,
  type SessionEvent,
  type SessionId,
  type SetDataOp,
  type SetDataOptions,
  type Stat,
  type TimerHandle,
  type TlsOptions,
  type TlsSource,
  TlsTransport,
  type Transport,
  type TransportCnxn,
  type TransportSink,
  type TtlCreateMode,
  type TtlCreateSettings,
  type UpdateOptions,
  type Updater,
  type VersionOption,
  type VersionOptions,
  type ChildrenOptions,
  type WalkOptions,
  type WatchListener,
  type WatchLoopEvent,
  type WatchLoopOptions,
  type WatchOption,
  type WholeReconfig,
  type WriteResult,
  type WriteResults,
  type Zxid,
} from '../../src/index.ts';

export function constantsAndFunctions(): void {
  expectTypeOf<typeof defaultPort>().toEqualTypeOf<2181>();
  expectTypeOf(authenticated).toEqualTypeOf<Id>();
  expectTypeOf(creatorAcl).toEqualTypeOf<readonly Acl[]>();
  expectTypeOf(readOnlyAcl).toEqualTypeOf<readonly Acl[]>();
  expectTypeOf(ErrorCode.NoNode).toEqualTypeOf<-101>();
  expectTypeOf<'NoNode'>().toExtend<ErrorName>();
  expectTypeOf(digestId('bob:secret')).toEqualTypeOf<string>();
  expectTypeOf(formatServer({ host: '::1', port: 1 })).toEqualTypeOf<string>();
  expectTypeOf(formatSessionId(1n)).toEqualTypeOf<string>();
  expectTypeOf(formatZxid(1n)).toEqualTypeOf<string>();
  expectTypeOf(sequenceOf('a-0000000001', 'a-')).toEqualTypeOf<number | undefined>();
  expectTypeOf([2, 1].sort(compareSequences)).toEqualTypeOf<number[]>();
  // @ts-expect-error sequences are compared, not names
  compareSequences('a-0000000001', 'a-0000000002');
  expectTypeOf(fourLetterWord('a:2181', 'srvr')).resolves.toEqualTypeOf<string>();
  expectTypeOf<FourLetterWordOptions['timeoutMs']>().toEqualTypeOf<number | undefined>();
  // @ts-expect-error a session id has 64 bits
  formatSessionId(1);
  // @ts-expect-error the entries of an ACL are shared and read-only
  readOnlyAcl.length = 0;
  expectTypeOf<ConnectOptionsError['name']>().toEqualTypeOf<'ConnectOptionsError'>();
  expectTypeOf<ConnectStringError['name']>().toEqualTypeOf<'ConnectStringError'>();
  expectTypeOf(new NodeTransport()).toExtend<Transport>();
  expectTypeOf(new TlsTransport({ ca: 'ca.pem' })).toExtend<Transport>();
  // @ts-expect-error a Transport dials
  const lacking: Transport = {};
  void lacking;
}

export function options(): void {
  expectTypeOf<Millis>().toEqualTypeOf<number>();
  expectTypeOf<SessionId>().toEqualTypeOf<bigint>();
  expectTypeOf<Zxid>().toEqualTypeOf<number>();
  expectTypeOf<CreateSettings>().toEqualTypeOf<PlainCreateSettings | TtlCreateSettings>();
  expectTypeOf<TtlCreateMode>().toExtend<CreateMode>();
  expectTypeOf<TtlCreateSettings['ttlMs']>().toEqualTypeOf<number>();
  expectTypeOf<CreateOptions>().toExtend<CreateExtras & CallOptions>();
  expectTypeOf<EnsurePathOptions['mode']>().toEqualTypeOf<ParentMode | undefined>();
  expectTypeOf<LeaderInfo>().toEqualTypeOf<{ readonly leader: number | undefined; readonly epoch: number }>();
  expectTypeOf<TransferLeaderOptions['to']>().toEqualTypeOf<number | undefined>();
  expectTypeOf<ReconfigOptions>().toExtend<ReconfigSettings>();
  expectTypeOf<ReconfigSettings>().toEqualTypeOf<IncrementalReconfig | WholeReconfig>();
  expectTypeOf<ReadOptions>().toExtend<PlainReadOptions & WatchOption>();
  expectTypeOf<PlainReadOptions>().toExtend<LinearizableOption & CallOptions>();
  expectTypeOf<SetDataOptions>().toExtend<VersionOptions>();
  expectTypeOf<DeleteOptions>().toExtend<VersionOption>();
  expectTypeOf<UpdateOptions['create']>().toEqualTypeOf<boolean | CreateSettings | undefined>();
  expectTypeOf<ChildrenOptions['pageSize']>().toEqualTypeOf<number | undefined>();
  expectTypeOf<WalkOptions['concurrency']>().toEqualTypeOf<number | undefined>();
  expectTypeOf<AddWatchOptions['watch']>().toEqualTypeOf<WatchListener | true>();
  expectTypeOf<RemoveWatchesOptions['local']>().toEqualTypeOf<boolean | undefined>();
  expectTypeOf<WatchLoopOptions['signal']>().toEqualTypeOf<AbortSignal | undefined>();
  expectTypeOf<CallOptions['retry']>().toEqualTypeOf<RetryPolicy | boolean | undefined>();
  expectTypeOf<ConnectOptions['sasl']>().toEqualTypeOf<SaslOptions | undefined>();
  expectTypeOf<SaslOptions>().toEqualTypeOf<DigestMd5Options | GssapiOptions>();
  expectTypeOf<TlsOptions['cert']>().toEqualTypeOf<TlsSource | undefined>();
  expectTypeOf<TlsSource>().toEqualTypeOf<string | Uint8Array>();
  expectTypeOf<Updater>().parameters.toEqualTypeOf<[Uint8Array | null, Stat | undefined]>();
}

export function results(): void {
  expectTypeOf<ClientEvents['state']>().toEqualTypeOf<SessionEvent>();
  expectTypeOf<ConnectString['servers']>().toEqualTypeOf<readonly ServerAddress[]>();
  expectTypeOf<OperationOutcome['errno']>().toEqualTypeOf<number>();
  expectTypeOf<RecursiveWatchLoopEvent>().toExtend<WatchLoopEvent>();
  expectTypeOf<WriteResults<readonly [SetDataOp]>>().toEqualTypeOf<readonly [WriteResult<SetDataOp>]>();
  expectTypeOf<ReadResults<readonly [GetDataOp]>>().toEqualTypeOf<readonly [ReadResult<GetDataOp>]>();
  expectTypeOf<GetDataOp>().toExtend<ReadOp>();
}

export function handedIn(): void {
  expectTypeOf<Random['uint32']>().returns.toEqualTypeOf<number>();
  expectTypeOf<TimerHandle>().toEqualTypeOf<object>();
  expectTypeOf<Transport['connect']>().parameters.toEqualTypeOf<[ResolvedAddress, TransportSink]>();
  expectTypeOf<Transport['connect']>().returns.toEqualTypeOf<TransportCnxn>();
  expectTypeOf<SrvRecord['weight']>().toEqualTypeOf<number>();
}

it('B32: every export of the package is used in one of these files', () => {
  const report = readFileSync(join(import.meta.dirname, '../../api.md'), 'utf8');
  const names = [...report.matchAll(/^export (?:abstract )?(?:function|class|const|type|interface) (\w+)/gm)].map(([, name]) => name!);
  const files = readdirSync(import.meta.dirname).map((file) => readFileSync(join(import.meta.dirname, file), 'utf8'));
  const said = new Set(files.flatMap((text) => text.match(/\w+/g)));
  expect(names.length).toBeGreaterThan(100);
  expect(names.filter((name) => !said.has(name))).toEqual([]);
  expectTypeOf(constantsAndFunctions).returns.toEqualTypeOf<void>();
});
