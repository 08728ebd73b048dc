/** The client: a view of the tree with a session of its own, which ends with it. */
import type { CallDefaults } from './calls/caller.ts';
import { checkCount } from './arguments.ts';
import { methodForms } from './call-forms.ts';
import { ClientView } from './client-view.ts';
import { parseServerList } from './connect-string.ts';
import { KeeperError, Refusal } from './keeper-error.ts';
import type { Session } from './session/session.ts';
import { succeeded, tracedCall } from './tracing.ts';
import type { ServerAddress } from './transport.ts';

/** A client with a session, which is its own: closing the client ends the session. */
export class Client extends ClientView implements AsyncDisposable {
  readonly #session: Session;
  readonly #connected: Promise<void>;

  /** Made by `connect` and by `createClient`; `open` settles when the client is ready for its program. */
  constructor(session: Session, chroot: string, defaults: CallDefaults, open: (client: Client) => Promise<void>) {
    super(session, chroot, defaults);
    this.#session = session;
    this.#connected = open(this);
    // A program that does not wait for the connection learns of the failure from its calls and from the state.
    this.#connected.catch(() => undefined);
  }

  /**
   * Resolves when a server has opened the session for the first time: at once for a client that `connect` gave. Rejects with what `connect` would reject with:
   * ConnectionLoss when no server was reached within `connectTimeoutMs`, SessionExpired when the session to take up is gone or the client was closed before it was connected,
   * AuthFailed, a ConnectOptionsError, or the reason of the signal. `on('state', ...)` reports later losses of the connection. (ZooKeeper's first `SyncConnected`.)
   */
  async connected(): Promise<void> {
    methodForms.connected.check(arguments.length, {});
    try {
      await this.#session.held(this.#connected);
    } catch (error) {
      // The error is made here, where its stack shows the caller that waits.
      throw error instanceof Refusal ? new KeeperError('connect', undefined, error) : error;
    }
  }

  /**
   * Uses another list of servers from here on: `host:port,host:port` without a chroot, or an array. Takes the place of an SRV name as well.
   * Returns whether the client leaves the server it is connected to.
   *
   * A server that is not in the new list is always left. Otherwise chance decides, so that the clients of an ensemble, each of which is
   * given the list, spread evenly over it: of three servers that become five each client leaves its own with probability 0.4, for one of the new two,
   * and for an old one only if no new one answers; of five that become three, nobody leaves one of the three. (ZooKeeper Programmer's Guide,
   * "ZooKeeper Sessions"; ZOOKEEPER-1355.) A server is known by its host and port as they are written: `zk1:2181` and its address are two.
   *
   * Nothing is lost by it: calls under way are answered by the old server, for up to a second, and later ones wait for the next. To a
   * client that is closed nothing happens. Throws a ConnectStringError, and a TypeError for what is neither a string nor an array.
   */
  updateServerList(servers: string | readonly (string | ServerAddress)[]): boolean {
    checkCount(arguments.length, 1, 'updateServerList(servers)');
    return this.#session.updateServers(parseServerList(servers));
  }

  /**
   * Ends the session: its ephemerals go at once. Calls made before are answered first; later ones fail with SessionExpired. Without a
   * connection the ensemble is not told, and ends the session when its time-out has passed. The same holds for a server that answers nothing for as long as that time-out, whatever
   * else it sends: the client gives it up, calls made before fail with ConnectionLoss, and `close` resolves. Never rejects, unless it is given a callback, which is a TypeError; a second call waits for the first. (ZooKeeper's `close`.)
   */
  close(): Promise<void> {
    // Anything else is passed over: what a promise resolved with, the event of a signal.
    if (typeof (arguments[0] as unknown) === 'function')
      return Promise.reject(new TypeError('close takes no callback, it returns a promise'));
    const { tracer, id } = this.#session;
    if (!tracer.hearsCalls) return this.#session.close();
    const traced = tracedCall('close', id);
    return tracer.run(traced, () => {
      const closed = this.#session.close();
      void closed.then(() => succeeded(tracer, traced, undefined));
      return closed;
    });
  }

  /** As `close`, for `await using`. Never rejects. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
