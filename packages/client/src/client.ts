/** The client: a view of the tree with its own session. Closing the client ends the session. */
import type { CallDefaults } from './calls/call-runner.ts';
import { checkArgumentCount } from './arguments.ts';
import { methodSignatures } from './method-signatures.ts';
import { ClientView } from './client-view.ts';
import { parseServerList } from './connect-string.ts';
import { KeeperError, RequestFailure } from './keeper-error.ts';
import type { Session } from './session/session.ts';
import { traceSuccess, newTracedCall } from './tracing.ts';
import type { ServerAddress } from './transport.ts';

/** A client with its own session: closing the client ends the session. */
export class Client extends ClientView implements AsyncDisposable {
  readonly #session: Session;
  readonly #ready: Promise<void>;

  /** Called by `connect` and `createClient`. `open` settles when the client is ready. */
  constructor(session: Session, chroot: string, defaults: CallDefaults, open: (client: Client) => Promise<void>) {
    super(session, chroot, defaults);
    this.#session = session;
    this.#ready = open(this);
    // A program that does not wait for the connection learns of a failure from its calls and from
    // the state.
    this.#ready.catch(() => undefined);
  }

  /**
   * Resolves when a server has opened the session for the first time: at once for a client that
   * `connect` returned. Rejects with the same errors as `connect`: ConnectionLoss if the client
   * reached no server within `connectTimeoutMs`, SessionExpired if the saved session no longer
   * exists or the client was closed before it connected, AuthFailed, a ConnectOptionsError, or the
   * signal's reason. `on('state', ...)` delivers later losses of the connection. (ZooKeeper's first
   * `SyncConnected`.)
   */
  async ready(): Promise<void> {
    methodSignatures.ready.check(arguments.length, {});
    try {
      await this.#session.holdProcess(this.#ready);
    } catch (error) {
      // Create the error here, so that its stack shows the caller.
      throw error instanceof RequestFailure ? new KeeperError('connect', undefined, error) : error;
    }
  }

  /**
   * Replaces the list of servers: `host:port,host:port` without a chroot, or an array. It also
   * replaces an SRV name. Returns whether the client leaves its current server.
   *
   * A client always leaves a server that is not in the new list. Otherwise it decides at random, so
   * that all clients with the new list spread evenly over it: when three servers become five, each
   * client leaves its server with probability 0.4, for one of the two new ones, and for an old one
   * only if no new one answers; when five become three, no client leaves one of the three.
   * (ZooKeeper Programmer's Guide, "ZooKeeper Sessions"; ZOOKEEPER-1355.) Servers are compared by
   * host and port as text: `zk1:2181` and its address are two servers.
   *
   * No call is lost: the client waits up to a second for pending answers of the old server, and
   * later calls wait for the next one. A closed client ignores the call. Throws a
   * ConnectStringError, and a TypeError if `servers` is neither a string nor an array.
   */
  updateServerList(servers: string | readonly (string | ServerAddress)[]): boolean {
    checkArgumentCount(arguments.length, 1, 'updateServerList(servers)');
    return this.#session.updateServers(parseServerList(servers));
  }

  /**
   * Ends the session; the ensemble deletes its ephemerals at once. Earlier calls are answered
   * first; later ones fail with SessionExpired. Without a connection, the ensemble ends the session
   * when its time-out has passed. The same holds if the server answers nothing for as long as that
   * time-out, whatever else it sends: the client then leaves the server, earlier calls fail with
   * ConnectionLoss, and `close` resolves. Never rejects, except with a TypeError if it is called
   * with a callback. A second call waits for the first. (ZooKeeper's `close`.)
   */
  close(): Promise<void> {
    // Any other argument is ignored: a caller may pass the result of a promise or the event of a
    // signal.
    if (typeof (arguments[0] as unknown) === 'function')
      return Promise.reject(new TypeError('close takes no callback; it returns a promise'));
    const { tracer, id } = this.#session;
    if (!tracer.tracesCalls) return this.#session.close();
    const traced = newTracedCall('close', id);
    return tracer.run(traced, () => {
      const closed = this.#session.close();
      void closed.then(() => traceSuccess(tracer, traced, undefined));
      return closed;
    });
  }

  /** Same as `close`, for `await using`. Never rejects. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
