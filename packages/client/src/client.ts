/** The client: a view of the tree with a session of its own, which ends with it. */
import type { CallDefaults } from './calls/caller.ts';
import { ClientView } from './client-view.ts';
import { parseServerList } from './connect-string.ts';
import type { Session } from './session/session.ts';
import { succeeded, tracedCall } from './tracing.ts';
import type { ServerAddress } from './transport.ts';

/** A client with a session, which is its own: closing the client ends the session. */
export class Client extends ClientView implements AsyncDisposable {
  readonly #session: Session;

  /** Made by `connect`. */
  constructor(session: Session, chroot: string, defaults: CallDefaults) {
    super(session, chroot, defaults);
    this.#session = session;
  }

  /**
   * Goes by another list of servers from here on: `host:port,host:port` without a chroot, or a list. Takes the place of an SRV name as well.
   * Returns whether the client leaves the server it is connected to.
   *
   * A server that is not in the new list is always left. Otherwise chance decides, so that the clients of an ensemble, each of which is
   * given the list, spread evenly over it: of three servers that become five each client leaves its own with probability 0.4, for one of the new two,
   * and for an old one only if no new one answers; of five that become three, nobody leaves one of the three. (ZooKeeper Programmer's Guide,
   * "ZooKeeper Sessions"; ZOOKEEPER-1355.) A server is known by its host and port as they are written: `zk1:2181` and its address are two.
   *
   * Nothing is lost by it: calls under way are answered by the old server, for up to a second, and later ones wait for the next. To a
   * client that is closed nothing happens. Throws a ConnectStringError.
   */
  updateServerList(servers: string | readonly (string | ServerAddress)[]): boolean {
    return this.#session.updateServers(parseServerList(servers));
  }

  /**
   * Ends the session: its ephemerals go at once. Calls made before are answered first; later ones fail with SessionExpired. Without a
   * connection the ensemble is not told, and ends the session when its time-out has passed. Never rejects; a second call waits for the first. (ZooKeeper's `close`.)
   */
  close(): Promise<void> {
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
