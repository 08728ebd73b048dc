/**
 * Entry points: `connect` and `createClient` turn a connect string into a client with a session.
 */
import { ErrorCode, juteMaxBufferDefault, type Millis, type SessionId } from '@tskeeper/protocol';
import { toCredentials } from './auth/credentials.ts';
import { resolveRetryPolicy, type RetryPolicy } from './calls/retry-policy.ts';
import { Client } from './client.ts';
import { type Clock, type Random, timerMsMax } from './clock.ts';
import { functionSignatures } from './function-signatures.ts';
import { ConnectOptionsError } from './connect-options-error.ts';
import { type ConnectString, ConnectStringError, parseServers, type ServerList } from './connect-string.ts';
import { followConfig } from './ensemble/follow-config.ts';
import { RequestFailure } from './keeper-error.ts';
import { diagnosticsTracer } from './node/diagnostics-tracer.ts';
import { NodeTransport } from './node/node-transport.ts';
import { TimerHold } from './node/process-hold.ts';
import { backgroundClock, systemClock } from './node/system-clock.ts';
import { type SaslOptions, createSaslMechanism } from './node/sasl-mechanism.ts';
import { systemRandom } from './node/system-random.ts';
import type { TlsOptions } from './node/tls-context.ts';
import { TlsTransport } from './node/tls-transport.ts';
import type { ServerFailures } from './session/connect-failures.ts';
import { Session } from './session/session.ts';
import { traceFailure, traceSuccess, newTracedCall, type Tracer } from './tracing.ts';
import type { Transport } from './transport.ts';
import type { SessionEvent } from './watched-event.ts';

/** The options of `connect` and `createClient`. */
export interface ConnectOptions {
  /**
   * How long the ensemble keeps the session and its ephemerals while it receives nothing from the
   * client. Servers grant this or the nearest value that they allow (2 to 20 ticks by default);
   * `client.sessionTimeoutMs` is the granted value. Default: 30 000.
   */
  readonly sessionTimeoutMs?: Millis | undefined;
  /**
   * How long the client looks for a server that opens the session, in milliseconds, before
   * `connect` rejects, or a client of `createClient` closes. Default: 30 000. `Infinity`: no limit.
   */
  readonly connectTimeoutMs?: Millis | undefined;
  /**
   * How long a server may take to answer a request, in milliseconds. It applies to each call
   * without a `timeoutMs`, to each attempt of a `retry`, and to each step of a call that sends
   * several requests. After that time the request fails with RequestTimeout. If it was sent, its
   * outcome is `unknown`, and the client leaves the server, as a Java client with
   * zookeeper.request.timeout does: other pending calls fail with ConnectionLoss, and the session
   * continues on the next server. A retry treats such a time-out like a ConnectionLoss. The client
   * also leaves a server that has not restored identities and watches in that time after a
   * reconnect. For a call that waits for a connection, it limits the time until the request is
   * sent. Default: none; the client then waits for a server that answers only pings for as long as
   * the connection lasts.
   */
  readonly requestTimeoutMs?: Millis | undefined;
  /**
   * Whether the client repeats calls that failed for a temporary cause, where that is safe, and how
   * often; `true` for the defaults of `RetryPolicy`. Each call can override it; `CallOptions.retry`
   * says what is safe. Does not apply to `connect` itself, which looks for a server for
   * `connectTimeoutMs`. Default: off, so that a call reports the result of one attempt, and takes
   * no longer than the program decided.
   */
  readonly retry?: RetryPolicy | boolean | undefined;
  /**
   * Whether to accept a server that has lost its quorum: it answers reads, perhaps with stale data,
   * and rejects writes with NotReadOnly. Default: false.
   */
  readonly readOnly?: boolean | undefined;
  /**
   * TLS, to the servers' secureClientPort. `true`: verifies servers against the authorities that
   * Node trusts. Options set other authorities, and the client's own certificate, which identifies
   * the client as `x509`. Default: false.
   */
  readonly tls?: boolean | TlsOptions | undefined;
  /**
   * An identity to prove by SASL on every connection, before `auth` and all requests. `DIGEST-MD5`
   * takes `username` and `password`, as in the servers' JAAS section; `GSSAPI` (Kerberos) requires
   * the npm package `kerberos`, and takes tickets from the system's ticket cache or keytab. If a
   * server rejects the identity, `connect` rejects with AuthFailed; later a rejection ends the
   * client, as in ZooKeeper. Default: none.
   */
  readonly sasl?: SaslOptions | undefined;
  /**
   * Identities to prove before all requests, on every connection. If a server rejects one,
   * `connect` rejects with AuthFailed. Default: none.
   */
  readonly auth?: readonly { readonly scheme: string; readonly auth: string | Uint8Array }[] | undefined;
  /**
   * An existing session to resume: `sessionId` and `sessionPassword` of another client. An unsigned
   * id, as servers log it, is accepted too. If the session no longer exists, `connect` rejects with
   * SessionExpired. Default: a new session.
   */
  readonly session?: { readonly id: SessionId; readonly password: Uint8Array } | undefined;
  /**
   * Receives every change of the state from the first connection on, like ZooKeeper's default
   * watcher: the first event is the connect (`SyncConnected` or `ConnectedReadOnly`); before it the
   * client is disconnected. `client.on('state', ...)` delivers the same changes from the moment it
   * is called. An exception in it becomes an unhandled rejection of the program. Default: none.
   */
  readonly onState?: ((event: SessionEvent) => void) | undefined;
  /**
   * Cancels `connect`, which rejects with the signal's reason. Has no effect on a client that
   * `connect` has returned. Default: none.
   */
  readonly signal?: AbortSignal | undefined;
  /**
   * Maximum length of a request and of an answer, in bytes: the servers' jute.maxbuffer. Default: 1
   * MiB - 1, as for servers. A longer request fails with BadArguments. A longer answer, possible
   * only for a very long list of children or a multiRead, closes the connection.
   */
  readonly maxPacketBytes?: number | undefined;
  /**
   * Whether the client declares its session expired after 4/3 of its time-out without a server, as
   * ZooKeeper's client does since 3.9. Default: false: only the ensemble decides, and after an
   * outage of its own it may still know the session.
   */
  readonly expireLocally?: boolean | undefined;
  /**
   * What the client does if another client uses the same session, for example because a second
   * process resumed it with `session`. Servers give a session to the client that connected last and
   * close the other connection, so both clients take it from each other forever, with growing
   * pauses; ZooKeeper's clients do so, and it is the default. With `true` this client gives up
   * after five consecutive connections that were closed within a second: its state becomes `moved`,
   * calls fail with SessionMoved, and the session continues with the other client.
   */
  readonly yieldSession?: boolean | undefined;
  /**
   * Whether to use the servers that the ensemble itself lists in `/zookeeper/config`, now and after
   * each reconfig, as if passed to `client.updateServerList`. Default: false. `connect` then
   * resolves after the client has read the configuration; if it does not contain the connected
   * server, as the connect string writes it, the client is already moving to another one.
   *
   * If a server lists `0.0.0.0` or only a port for its clients, the client uses the host that the
   * line contains for the other servers. If a server has no client address, or the configuration is
   * empty (a standalone server) or may not be read (NoAuth), the list does not change. The
   * addresses are those of the plain client port and may be unreachable from here; if so, leave
   * this off.
   */
  readonly followConfig?: boolean | undefined;
  /**
   * Whether an open client keeps the process running. With `false` a program or a test runner can
   * exit although a client was not closed: idle connections, pings and attempts to connect do not
   * keep the process alive. Whatever the program waits for still does: `connect`, `ready`, calls,
   * `close`. If the process exits, the session expires after its time-out, and its
   * ephemerals with it. Only with the default transport and clock. Default: true.
   */
  readonly keepProcessAlive?: boolean | undefined;
  /** Default: TCP, or TLS if `tls` is set. */
  readonly transport?: Transport | undefined;
  /** Default: the clock of the machine. */
  readonly clock?: Clock | undefined;
  /**
   * Source of pauses, the order of servers, and the nonces of SASL. Default: the machine's
   * cryptographic random numbers.
   */
  readonly random?: Random | undefined;
  /**
   * Receives each call and each change of the session. Default: publishes them on the channels
   * `tskeeper:request` and `tskeeper:session` of `node:diagnostics_channel`; without subscribers
   * this costs a few nanoseconds per call (docs/reference/tracing.md).
   */
  readonly tracer?: Tracer | undefined;
}

const sessionTimeoutMsDefault = 30_000;
/**
 * Independent of the session time-out: a program that asks for a time-out of one millisecond gets
 * one of two ticks, and its session takes as long to open as any other.
 */
const connectTimeoutMsDefault = 30_000;

/**
 * Opens a session with an ensemble and resolves when a server has opened it. `servers` is a connect
 * string `host:port,host:port/chroot`; or `srv:_zookeeper._tcp.example.com/chroot`, an SRV name
 * that the client resolves now, and again each time all its servers have failed; or an array of
 * `host:port` and `{ host, port }`.
 *
 * Rejects with a TypeError or a RangeError for invalid arguments; with a ConnectStringError; with a
 * ConnectOptionsError if a file or a package that the options need does not exist; with
 * ConnectionLoss if the client reached no server in time (the message says what it tried and why
 * that failed); with SessionExpired if the session to resume no longer exists; with AuthFailed; or
 * with the signal's reason.
 *
 * The client then keeps the session alive by itself: it sends pings, and connects to another server
 * when it loses one.
 */
export function connect(servers: ServerList, options: ConnectOptions = {}): Promise<Client> {
  const misuse = functionSignatures.connect.misuse(arguments.length, options);
  if (misuse !== undefined) return Promise.reject(misuse);
  const { tracer = diagnosticsTracer } = options;
  if (!tracer.tracesCalls) return connectClient(servers, options, tracer);
  const traced = newTracedCall('connect', options.session?.id ?? 0n);
  return tracer.run(traced, async () => {
    try {
      const client = await connectClient(servers, options, tracer);
      traced.sessionId = client.sessionId;
      traced.server = client.connectedServer;
      traceSuccess(tracer, traced, client);
      return client;
    } catch (error) {
      traceFailure(tracer, traced, error);
      throw error;
    }
  });
}

async function connectClient(servers: ServerList, options: ConnectOptions, tracer: Tracer): Promise<Client> {
  const parsed = parseServers(servers);
  const transport = transportFor(options);
  // Only options with files to read take a turn. The error names the file at once, and its stack
  // shows the caller.
  if (transport instanceof TlsTransport) await transport.check();
  const client = newClient(parsed, transport, options, tracer);
  await client.ready();
  return client;
}

/**
 * Returns a client at once, which then looks for a server, like `new ZooKeeper(...)` in Java. Calls
 * made before the session exists wait for it, in order. `client.ready()` resolves when a server has
 * opened the session, `client.on('connectFailed', ...)` reports each failed attempt, and
 * `close` works at any time. If no server opens the session within `connectTimeoutMs`, the client
 * closes and waiting calls fail with ConnectionLoss; the state event `Closed` contains the reason.
 * `servers` and `options` are those of `connect`.
 *
 * Throws a TypeError or a RangeError for invalid arguments, a ConnectStringError, and a
 * ConnectOptionsError for options that exclude each other. If a file cannot be read, the client
 * ends, as after a time-out.
 */
export function createClient(servers: ServerList, options: ConnectOptions = {}): Client {
  functionSignatures.createClient.check(arguments.length, options);
  const transport = transportFor(options);
  const checks = transport instanceof TlsTransport ? transport.check() : undefined;
  return newClient(parseServers(servers), transport, options, options.tracer ?? diagnosticsTracer, checks);
}

/** `checks`: what else must succeed before the client is ready. */
function newClient(
  { servers, srvName, chroot }: ConnectString,
  transport: Transport,
  options: ConnectOptions,
  tracer: Tracer,
  checks?: Promise<void>,
): Client {
  const { clock = systemClock, random = systemRandom, keepProcessAlive = true } = options;
  const sasl = options.sasl === undefined ? undefined : createSaslMechanism(options.sasl, random);
  if (srvName !== undefined && transport.resolveSrv === undefined) {
    throw new ConnectStringError(
      `connect string "srv:${srvName}": the transport does not support SRV names, as it has no resolveSrv. List the servers one by one.`,
    );
  }
  const session = new Session(
    servers,
    {
      sessionTimeoutMs: options.sessionTimeoutMs ?? sessionTimeoutMsDefault,
      readOnly: options.readOnly ?? false,
      packetBytesMax: options.maxPacketBytes ?? juteMaxBufferDefault,
      session:
        options.session === undefined
          ? undefined
          : { id: BigInt.asIntN(64, options.session.id), password: new Uint8Array(options.session.password) },
      expireLocally: options.expireLocally ?? false,
      yieldSession: options.yieldSession ?? false,
      srvName,
      waitForFirstConnection: true,
      requestTimeoutMs: options.requestTimeoutMs,
    },
    (options.auth ?? []).map(({ scheme, auth }) => toCredentials(scheme, auth)),
    {
      clock,
      transport,
      random,
      tracer,
      sasl,
      backgroundClock: keepProcessAlive ? clock : backgroundClock,
      processHold: keepProcessAlive ? undefined : new TimerHold(),
    },
  );
  return new Client(session, chroot, { retry: resolveRetryPolicy(options.retry) }, (client) => {
    if (options.onState !== undefined) client.on('state', options.onState);
    return awaitReady(client, session, checks, options);
  });
}

/** Settles when the client is ready, or has given up. */
async function awaitReady(client: Client, session: Session, checks: Promise<void> | undefined, options: ConnectOptions): Promise<void> {
  const { signal } = options;
  let ready = session.established;
  if (options.followConfig === true) ready = ready.then(() => followConfig(client));
  if (checks !== undefined) ready = Promise.all([ready, checks]).then(() => undefined);
  // If the signal has already fired, `ready` is not awaited.
  ready.catch(() => undefined);
  try {
    signal?.throwIfAborted();
    await readyOrTimeout(ready, session, options.connectTimeoutMs ?? connectTimeoutMsDefault, signal);
  } catch (error) {
    const refusal =
      error instanceof RequestFailure
        ? error
        : new RequestFailure(ErrorCode.ConnectionLoss, 'notSent', `stopped connecting: ${messageOf(error)}`, { cause: error });
    session.abort(refusal);
    throw error;
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function transportFor({ transport, clock, tls = false, keepProcessAlive = true }: ConnectOptions): Transport {
  if (!keepProcessAlive && (transport ?? clock) !== undefined)
    throw new ConnectOptionsError(
      'keepProcessAlive: false requires the default transport and clock; a custom transport or clock decides that itself',
    );
  if (tls === false) return transport ?? new NodeTransport({ keepProcessAlive });
  if (transport !== undefined)
    throw new ConnectOptionsError('tls and transport exclude each other: a custom transport sets up its own TLS');
  return new TlsTransport(tls === true ? {} : tls, { keepProcessAlive });
}

/** Maximum number of servers in the error of a session that could not be opened. */
const serverFailuresShown = 8;

function noSessionFailure(timeoutMs: Millis, troubles: readonly ServerFailures[]): RequestFailure {
  const named = troubles
    .slice(0, serverFailuresShown)
    .map(({ server, reason, attempts }) => `${server}: ${reason}${attempts === 1 ? '' : ` (${attempts} attempts)`}`);
  if (troubles.length > serverFailuresShown) named.push(`and ${troubles.length - serverFailuresShown} more`);
  const tried = named.length === 0 ? 'no server has answered' : named.join('; ');
  return new RequestFailure(ErrorCode.ConnectionLoss, 'notSent', `no session within ${timeoutMs} ms; ${tried}`);
}

/**
 * Settles when the session is ready, the timeout has passed, or the signal fires, whichever comes
 * first.
 */
function readyOrTimeout(ready: Promise<void>, session: Session, timeoutMs: Millis, signal: AbortSignal | undefined): Promise<void> {
  const { backgroundClock: clock } = session;
  return new Promise((resolve, reject) => {
    const timer =
      timeoutMs > timerMsMax ? undefined : clock.after(timeoutMs, () => reject(noSessionFailure(timeoutMs, session.serverFailures)));
    const onAbort = () => reject(signal!.reason);
    signal?.addEventListener('abort', onAbort, { once: true });
    const cleanUp = () => {
      if (timer !== undefined) clock.cancel(timer);
      signal?.removeEventListener('abort', onAbort);
    };
    void ready.then(resolve, reject).finally(cleanUp);
  });
}
