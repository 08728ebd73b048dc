/** The way in: a connect string becomes a client with a session. */
import { ErrorCode, juteMaxBufferDefault, type Millis, type SessionId } from '@tskeeper/protocol';
import { credentialsOf } from './auth/credentials.ts';
import { fullPolicy, type RetryPolicy } from './calls/retry-policy.ts';
import { Client } from './client.ts';
import { type Clock, type Random, timerMsMax } from './clock.ts';
import { functionForms } from './connect-forms.ts';
import { ConnectOptionsError } from './connect-options-error.ts';
import { type ConnectString, ConnectStringError, parseServers, type Servers } from './connect-string.ts';
import { followConfig } from './ensemble/follow-config.ts';
import { Refusal } from './keeper-error.ts';
import { diagnosticsTracer } from './node/diagnostics-tracer.ts';
import { NodeTransport } from './node/node-transport.ts';
import { TimerHold } from './node/process-hold.ts';
import { backgroundClock, systemClock } from './node/system-clock.ts';
import { type SaslOptions, saslMechanism } from './node/sasl-mechanism.ts';
import { systemRandom } from './node/system-random.ts';
import type { TlsOptions } from './node/tls-material.ts';
import { TlsTransport } from './node/tls-transport.ts';
import { Session, type Trouble } from './session/session.ts';
import { failed, succeeded, tracedCall, type Tracer } from './tracing.ts';
import type { Transport } from './transport.ts';
import type { SessionEvent } from './watched-event.ts';

/** What `connect` can be asked for. */
export interface ConnectOptions {
  /**
   * How long the ensemble keeps the session, and its ephemerals, without hearing from the client. Servers grant it or the nearest they
   * allow (2 to 20 ticks by default); `client.sessionTimeoutMs` says what was granted. Default: 30 000.
   */
  readonly sessionTimeoutMs?: Millis | undefined;
  /** How long to look for a server that opens the session, in milliseconds, before `connect` rejects and a client of `createClient` is closed. Default: 30 000. `Infinity`: without a limit. */
  readonly connectTimeoutMs?: Millis | undefined;
  /**
   * How long a server may take to answer a request, in milliseconds: for every call that has no `timeoutMs` of its own, each attempt of a `retry` and each step of a call of several steps by
   * itself. The request then fails with RequestTimeout, and if it was sent, its outcome is `unknown` and the client leaves this server, as a Java client with zookeeper.request.timeout
   * does: other calls under way fail with ConnectionLoss, and the session goes on with the next server. A retry treats such a time-out as a ConnectionLoss. A server that does not restore identities and
   * watches in that time, when the client has come to it, is left as well. For a call that waits for a
   * connection it is the time until it is sent. Default: none. Then a server that answers pings and nothing else is waited for, as long as the connection lasts.
   */
  readonly requestTimeoutMs?: Millis | undefined;
  /**
   * Whether calls that fail for a cause that may pass are made again, where that is safe, and how often; `true` for the defaults of `RetryPolicy`. Each
   * call may say otherwise; see `CallOptions.retry` for what is safe. Not for `connect` itself, which looks for a server for `connectTimeoutMs`. Default:
   * off, so that a call tells at once what has happened, and how long it takes is what the program has decided.
   */
  readonly retry?: RetryPolicy | boolean | undefined;
  /** Whether a server that has lost its quorum will do: it answers reads, perhaps old ones, and refuses writes with NotReadOnly. Default: false. */
  readonly readOnly?: boolean | undefined;
  /**
   * TLS, to the servers' secureClientPort. `true`: servers are verified against the authorities that Node knows; options name others, and
   * the client's own certificate, which servers know it by as `x509`. Default: false.
   */
  readonly tls?: boolean | TlsOptions | undefined;
  /**
   * An identity to prove by SASL on every connection, ahead of `auth` and of everything else. `DIGEST-MD5` takes `username` and `password`, as
   * in the servers' JAAS section; `GSSAPI`, that is Kerberos, needs the npm package `kerberos`, and takes tickets from where the system has
   * them. A refusal makes `connect` reject with AuthFailed, and later on ends the client, as in ZooKeeper. Default: none.
   */
  readonly sasl?: SaslOptions | undefined;
  /** Identities to prove before anything else, on every connection. A refusal makes `connect` reject with AuthFailed. Default: none. */
  readonly auth?: readonly { readonly scheme: string; readonly auth: string | Uint8Array }[] | undefined;
  /**
   * A session to take up, as `sessionId` and `sessionPassword` of a client gave it; an id read from a server's log, without a sign, is the same. When it is gone, `connect`
   * rejects with SessionExpired. Default: a new one.
   */
  readonly session?: { readonly id: SessionId; readonly password: Uint8Array } | undefined;
  /**
   * Hears of every change of the state, from the very first connection on, as ZooKeeper's default watcher does: the first event is the connect
   * (`SyncConnected`, or `ConnectedReadOnly`), and until then the client is to be taken for disconnected. `client.on('state', ...)` hears the same
   * from when it is called. What it throws is the program's own error and becomes an unhandled rejection. Default: nobody does.
   */
  readonly onState?: ((event: SessionEvent) => void) | undefined;
  /** Gives `connect` up, with the signal's reason. Has no effect on the client that it has returned. Default: none. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Longest request sent, and longest answer taken, in bytes: the servers' jute.maxbuffer. Default: 1 MiB less one, as theirs. A longer
   * request fails with BadArguments. A longer answer, which only a very long list of children or a multiRead can have, loses the connection.
   */
  readonly maxPacketBytes?: number | undefined;
  /**
   * Whether to give the session up after 4/3 of its time-out without a server, as ZooKeeper's client does since 3.9. Default: false; only
   * the ensemble decides, and after its own long outage it may still know the session.
   */
  readonly expireLocally?: boolean | undefined;
  /**
   * What becomes of two clients with one session, as when `session` is given to a second process while the first one goes on. Servers
   * give a session to whoever asked last and close the other's connection, so the two take it from each other for ever, with longer and longer
   * pauses: this is ZooKeeper's way, and the default. With `true` this client leaves it to the other: after five connections in a row that
   * were closed within a second its state is `moved`, calls fail with SessionMoved, and the session itself lives on.
   */
  readonly yieldsSession?: boolean | undefined;
  /**
   * Whether to go by the servers that the ensemble itself names in `/zookeeper/config`, now and after each reconfig, as if they were given to
   * `client.updateServerList`. Default: false. `connect` then resolves when the configuration has been read, and if it does not list the
   * server that was found, as it is written in the connect string, the client is on its way to another one.
   *
   * A server that lists `0.0.0.0`, or a port alone, for its clients is taken to be at the host that its line has for the other servers. When
   * one has no address for clients, when the configuration is empty (a standalone server) or must not be read (NoAuth), the list stays as it is.
   * The addresses are those of the plain client port, and need not be reachable from here: whoever has to know another way in leaves this off.
   */
  readonly followConfig?: boolean | undefined;
  /**
   * Whether the client keeps the process running for as long as it is not closed. With `false` a program, or a test runner, ends although a client was forgotten: an idle
   * connection, its pings and the attempts at a server hold nothing up. What the program waits for still does: `connect`, `connected`, calls, `close`. Then the
   * session ends by its time-out, and its ephemerals with it. Only with the default transport and clock. Default: true.
   */
  readonly keepProcessAlive?: boolean | undefined;
  /** Default: TCP, or TLS where `tls` asks for it. */
  readonly transport?: Transport | undefined;
  /** Default: the machine's. */
  readonly clock?: Clock | undefined;
  /** Where pauses, the order of servers and the nonces of SASL come from. Default: the machine's, of the kind that cannot be guessed. */
  readonly random?: Random | undefined;
  /**
   * Who is told of each call and of what becomes of the session. Default: whoever listens to the channels `tskeeper:request` and `tskeeper:session`
   * of `node:diagnostics_channel`; a call costs a few nanoseconds more when nobody does (docs/reference/tracing.md).
   */
  readonly tracer?: Tracer | undefined;
}

const sessionTimeoutMsDefault = 30_000;
/** Not that of the session: a program that asks for a session of a millisecond gets one of two ticks, and it takes as long to open as any other. */
const connectTimeoutMsDefault = 30_000;

/**
 * Opens a session with the ensemble that `servers` names: a connect string `host:port,host:port/chroot`, or
 * `srv:_zookeeper._tcp.example.com/chroot` for the servers of an SRV name, which is looked up now and whenever all of them have been tried in vain; or an array of `host:port`
 * and `{ host, port }`. Resolves when a server has opened it.
 * Rejects with a TypeError or a RangeError for arguments that are wrong; with a ConnectStringError; with a ConnectOptionsError, when a file or a package that the options ask for is not there; with
 * ConnectionLoss when no server was reached in time, which says what was tried and why it failed; with SessionExpired when the session to take
 * up is gone; with AuthFailed; or with the reason of the signal.
 *
 * From then on the client keeps the session by itself: it pings, and goes on to another server when it loses one.
 */
export function connect(servers: Servers, options: ConnectOptions = {}): Promise<Client> {
  const misuse = functionForms.connect.misuse(arguments.length, options);
  if (misuse !== undefined) return Promise.reject(misuse);
  const { tracer = diagnosticsTracer } = options;
  if (!tracer.hearsCalls) return connected(servers, options, tracer);
  const traced = tracedCall('connect', options.session?.id ?? 0n);
  return tracer.run(traced, async () => {
    try {
      const client = await connected(servers, options, tracer);
      traced.sessionId = client.sessionId;
      traced.server = client.connectedTo;
      succeeded(tracer, traced, client);
      return client;
    } catch (error) {
      failed(tracer, traced, error);
      throw error;
    }
  });
}

async function connected(servers: Servers, options: ConnectOptions, tracer: Tracer): Promise<Client> {
  const parsed = parseServers(servers);
  const transport = transportOf(options);
  // Only what has files to read takes a turn. The error names the file at once, and its stack the caller.
  if (transport instanceof TlsTransport) await transport.check();
  const client = clientOf(parsed, transport, options, tracer);
  await client.connected();
  return client;
}

/**
 * A client at once, which is looking for a server: what `new ZooKeeper(...)` is in Java. Calls that are made before the session exists wait for it, in their order.
 * `client.connected()` resolves when a server has opened the session, `client.on('connectFailed', ...)` tells of each attempt in vain, and
 * `close` works at any time. When no server opens the session within `connectTimeoutMs`, the client is closed and what waits fails with ConnectionLoss; the
 * state event `Closed` says why. `servers` and `options` are those of `connect`.
 *
 * Throws a TypeError or a RangeError for arguments that are wrong, a ConnectStringError, and a ConnectOptionsError for options that exclude each other. A file that cannot be
 * read ends the client, as a time-out does.
 */
export function createClient(servers: Servers, options: ConnectOptions = {}): Client {
  functionForms.createClient.check(arguments.length, options);
  const transport = transportOf(options);
  const checks = transport instanceof TlsTransport ? transport.check() : undefined;
  return clientOf(parseServers(servers), transport, options, options.tracer ?? diagnosticsTracer, checks);
}

/** `checks`: what else has to go well before the client is ready. */
function clientOf(
  { servers, service, chroot }: ConnectString,
  transport: Transport,
  options: ConnectOptions,
  tracer: Tracer,
  checks?: Promise<void>,
): Client {
  const { clock = systemClock, random = systemRandom, keepProcessAlive = true } = options;
  const sasl = options.sasl === undefined ? undefined : saslMechanism(options.sasl, random);
  if (service !== undefined && transport.resolveService === undefined) {
    throw new ConnectStringError(
      `connect string "srv:${service}": the transport looks up no SRV names, as it has no resolveService. Name the servers one by one.`,
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
      yieldsSession: options.yieldsSession ?? false,
      service,
      waitsForFirst: true,
      requestTimeoutMs: options.requestTimeoutMs,
    },
    (options.auth ?? []).map(({ scheme, auth }) => credentialsOf(scheme, auth)),
    {
      clock,
      transport,
      random,
      tracer,
      sasl,
      ...(keepProcessAlive ? {} : { background: backgroundClock, hold: new TimerHold() }),
    },
  );
  return new Client(session, chroot, { retry: fullPolicy(options.retry) }, (client) => {
    if (options.onState !== undefined) client.on('state', options.onState);
    return open(client, session, checks, options);
  });
}

/** Settles when the client is ready for its program, or was given up. */
async function open(client: Client, session: Session, checks: Promise<void> | undefined, options: ConnectOptions): Promise<void> {
  const { signal } = options;
  let ready = session.established;
  if (options.followConfig === true) ready = ready.then(() => followConfig(client));
  if (checks !== undefined) ready = Promise.all([ready, checks]).then(() => undefined);
  // With a signal that has come already it is not waited for.
  ready.catch(() => undefined);
  try {
    signal?.throwIfAborted();
    await firstOf(ready, session, options.connectTimeoutMs ?? connectTimeoutMsDefault, signal);
  } catch (error) {
    const refusal =
      error instanceof Refusal
        ? error
        : new Refusal(ErrorCode.ConnectionLoss, 'notSent', `connecting was given up: ${wordsOf(error)}`, { cause: error });
    session.giveUp(refusal);
    throw error;
  }
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function transportOf({ transport, clock, tls = false, keepProcessAlive = true }: ConnectOptions): Transport {
  if (!keepProcessAlive && (transport ?? clock) !== undefined)
    throw new ConnectOptionsError(
      'keepProcessAlive: false is for the default transport and clock; a transport or a clock of your own decides that by itself',
    );
  if (tls === false) return transport ?? new NodeTransport({ keepProcessAlive });
  if (transport !== undefined)
    throw new ConnectOptionsError('tls and transport exclude each other: a transport of your own makes its own TLS');
  return new TlsTransport(tls === true ? {} : tls, { keepProcessAlive });
}

/** So many servers are named in the error of a session that could not be opened. */
const troublesNamed = 8;

function noSessionWithin(timeoutMs: Millis, troubles: readonly Trouble[]): Refusal {
  const named = troubles
    .slice(0, troublesNamed)
    .map(({ place, reason, attempts }) => `${place}: ${reason}${attempts === 1 ? '' : ` (${attempts} attempts)`}`);
  if (troubles.length > troublesNamed) named.push(`and ${troubles.length - troublesNamed} more`);
  const tried = named.length === 0 ? 'no server has answered' : named.join('; ');
  return new Refusal(ErrorCode.ConnectionLoss, 'notSent', `no session within ${timeoutMs} ms; ${tried}`);
}

/** Settles with the session that is made ready, with the time that is allowed, or with the signal, whichever comes first. */
function firstOf(ready: Promise<void>, session: Session, timeoutMs: Millis, signal: AbortSignal | undefined): Promise<void> {
  const { background: clock } = session;
  return new Promise((resolve, reject) => {
    const timer = timeoutMs > timerMsMax ? undefined : clock.after(timeoutMs, () => reject(noSessionWithin(timeoutMs, session.troubles)));
    const onAbort = () => reject(signal!.reason);
    signal?.addEventListener('abort', onAbort, { once: true });
    const over = () => {
      if (timer !== undefined) clock.cancel(timer);
      signal?.removeEventListener('abort', onAbort);
    };
    void ready.then(resolve, reject).finally(over);
  });
}
