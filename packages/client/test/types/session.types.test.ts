/**
 * Sessions, errors, events and injected interfaces. The compiler checks the assertions
 * (`npm run check`); nothing of this runs.
 */
import { expectTypeOf, it } from 'vitest';
import {
  type Client,
  type ClientState,
  type Clock,
  connect,
  type ConnectOptions,
  type EndReason,
  KeeperError,
  type KeeperErrorCode,
  type KeeperState,
  type NodeEvent,
  type NodeEventType,
  type Outcome,
  parseConnectString,
  type SessionEvent,
  type SessionTraceDetail,
  type TracedCall,
  type TracedSessionEvent,
  type Tracer,
  type Transport,
  type WatchedEvent,
  type WatchLoop,
} from '../../src/index.ts';

declare const zk: Client;
declare const error: unknown;
declare const event: WatchedEvent;
declare const traced: TracedSessionEvent;
declare const ownClock: Clock;
declare const ownTransport: Transport;
declare const ownTracer: Tracer;

export async function connecting(): Promise<void> {
  expectTypeOf(connect('a:2181/app')).resolves.toEqualTypeOf<Client>();
  void connect('a', { session: { id: zk.sessionId, password: zk.sessionPassword } });
  void connect('a', { sasl: { mechanism: 'DIGEST-MD5', username: 'bob', password: 'secret' } });
  void connect('a', { sasl: { mechanism: 'GSSAPI', principal: 'bob@EXAMPLE.COM' } });
  void connect('a', { tls: true });
  void connect('a', { tls: { ca: ['ca.pem', new Uint8Array(1)], minVersion: 'TLSv1.3' } });
  void connect('a', { auth: [{ scheme: 'digest', auth: 'bob:secret' }], clock: ownClock, transport: ownTransport, tracer: ownTracer });
  await using closing = await connect('a', { signal: AbortSignal.timeout(5), retry: { maxAttempts: Infinity } });
  expectTypeOf(closing).toEqualTypeOf<Client>();
  // @ts-expect-error servers are required
  void connect();
  void connect(['a:2181', { host: 'b', port: 2181 }]);
  // @ts-expect-error an array holds servers
  void connect([2181]);
  // @ts-expect-error the unit is in the name
  void connect('a', { sessionTimeout: 30_000 });
  // @ts-expect-error time-outs are numbers
  void connect('a', { sessionTimeoutMs: 30_000n });
  // @ts-expect-error a session has an id and a password
  void connect('a', { session: { id: 1n } });
  // @ts-expect-error its id has 64 bits
  void connect('a', { session: { id: 1, password: new Uint8Array(16) } });
  // @ts-expect-error its password is bytes
  void connect('a', { session: { id: 1n, password: 'secret' } });
  // @ts-expect-error DIGEST-MD5 needs a password
  void connect('a', { sasl: { mechanism: 'DIGEST-MD5', username: 'bob' } });
  // @ts-expect-error GSSAPI takes none
  void connect('a', { sasl: { mechanism: 'GSSAPI', password: 'secret' } });
  // @ts-expect-error there is no such mechanism
  void connect('a', { sasl: { mechanism: 'PLAIN', username: 'bob', password: 'secret' } });
  // @ts-expect-error the check of the certificate cannot be turned off
  void connect('a', { tls: { rejectUnauthorized: false } });
  // @ts-expect-error TLS 1.0 is not supported
  void connect('a', { tls: { minVersion: 'TLSv1' } });
  // @ts-expect-error identities are a list
  void connect('a', { auth: { scheme: 'digest', auth: 'bob:secret' } });
  // @ts-expect-error a clock has timers
  void connect('a', { clock: { now: () => ({ elapsedMs: 0 }) } });
  // @ts-expect-error there is no such option
  void connect('a', { reconnect: true });
  // Options with the value undefined count as omitted.
  const options: ConnectOptions = { tls: undefined, session: undefined, retry: undefined };
  void connect('a', { ...options, readOnly: true });
}

export function session(): void {
  expectTypeOf(zk.state).toEqualTypeOf<ClientState>();
  expectTypeOf(zk.endReason).toEqualTypeOf<EndReason | undefined>();
  expectTypeOf(zk.sessionId).toEqualTypeOf<bigint>();
  expectTypeOf(zk.lastZxid).toEqualTypeOf<bigint>();
  expectTypeOf(zk.sessionTimeoutMs).toEqualTypeOf<number>();
  expectTypeOf(zk.connectedServer).toEqualTypeOf<string | undefined>();
  expectTypeOf(zk.servers).toEqualTypeOf<readonly string[]>();
  expectTypeOf(zk.updateServerList('a,b')).toEqualTypeOf<boolean>();
  void zk.updateServerList(['a:2181', { host: 'b', port: 2181 }]);
  expectTypeOf(zk.addAuth('digest', 'bob:secret')).resolves.toEqualTypeOf<void>();
  expectTypeOf(parseConnectString('a').servers[0]).toEqualTypeOf<{ readonly host: string; readonly port: number } | undefined>();
  // @ts-expect-error properties of a session are read-only
  zk.sessionId = 1n;
  // @ts-expect-error a scheme requires its data
  void zk.addAuth('digest');
  // @ts-expect-error a server has a port
  void zk.updateServerList([{ host: 'b' }]);
}

export function errors(): void {
  if (KeeperError.is(error)) {
    expectTypeOf(error).toExtend<KeeperError>();
    expectTypeOf(error.code).toEqualTypeOf<KeeperErrorCode>();
    expectTypeOf(error.errno).toEqualTypeOf<number>();
    expectTypeOf(error.outcome).toEqualTypeOf<Outcome>();
    expectTypeOf(error.path).toEqualTypeOf<string | undefined>();
    switch (error.outcome) {
      case 'refused':
      case 'notSent':
      case 'unknown':
        break;
      default:
        error.outcome satisfies never;
    }
  }
  if (KeeperError.is(error, 'NoNode', 'BadVersion')) expectTypeOf(error.code).toEqualTypeOf<'NoNode' | 'BadVersion'>();
  // @ts-expect-error there is no such code
  KeeperError.is(error, 'NO_NODE');
  // @ts-expect-error Ok is not an error
  KeeperError.is(error, 'Ok');
  // @ts-expect-error codes are words, not numbers
  KeeperError.is(error, -101);
  // @ts-expect-error it is not known to be a KeeperError yet
  void error.code;
}

export function events(): void {
  expectTypeOf(zk.on('state', (each) => expectTypeOf(each).toEqualTypeOf<SessionEvent>())).toEqualTypeOf<() => void>();
  zk.on('event', (each) => expectTypeOf(each).toEqualTypeOf<NodeEvent>());
  // @ts-expect-error there is no event for errors: calls have them
  zk.on('error', () => undefined);
  // @ts-expect-error nor one for each state
  zk.on('connected', () => undefined);
  if (event.type === 'None') {
    expectTypeOf(event).toEqualTypeOf<SessionEvent>();
    expectTypeOf(event.path).toEqualTypeOf<null>();
    const words: { readonly [State in KeeperState]: true } = {
      SyncConnected: true,
      ConnectedReadOnly: true,
      Disconnected: true,
      Expired: true,
      AuthFailed: true,
      Closed: true,
    };
    void words[event.state];
  } else {
    expectTypeOf(event.type).toEqualTypeOf<NodeEventType>();
    expectTypeOf(event.path).toEqualTypeOf<string>();
    expectTypeOf(event.zxid).toEqualTypeOf<bigint | undefined>();
  }
  // @ts-expect-error a persistent watch requires a listener or true
  void zk.addWatch('/a', {});
  // @ts-expect-error in one of two modes
  void zk.addWatch('/a', { mode: 'recursive', watch: true });
  // @ts-expect-error a listener takes an event
  void zk.addWatch('/a', { watch: (path: string) => void path });
  // @ts-expect-error there is no such kind of watch
  void zk.removeWatches('/a', { type: 'exists' });
  expectTypeOf(zk.removeWatches('/a', { type: 'any', local: true })).resolves.toEqualTypeOf<void>();
  expectTypeOf<WatchLoop>().toExtend<AsyncDisposable>();
}

export function tracing(): void {
  switch (traced.kind) {
    case 'state':
      expectTypeOf(traced.state).toEqualTypeOf<KeeperState>();
      break;
    case 'attemptFailed':
      expectTypeOf(traced.reason).toEqualTypeOf<string>();
      break;
    case 'watch':
      expectTypeOf(traced.type).toEqualTypeOf<NodeEventType>();
      break;
    case 'reread':
      expectTypeOf(traced.cause).toEqualTypeOf<'started' | 'reconnected' | 'overflowed'>();
      break;
    default:
      traced satisfies never;
  }
  expectTypeOf<TracedSessionEvent['sessionId']>().toEqualTypeOf<bigint>();
  expectTypeOf<TracedSessionEvent>().toExtend<SessionTraceDetail>();
  expectTypeOf<TracedCall['zxid']>().toEqualTypeOf<bigint | undefined>();
  // @ts-expect-error a tracer has tracesCalls and tracesSession
  void connect('a', { tracer: { run: (_call: TracedCall, work: () => Promise<unknown>) => work() } });
}

it('B32: sessions have the asserted types', () => {
  expectTypeOf(connecting).returns.resolves.toEqualTypeOf<void>();
});
