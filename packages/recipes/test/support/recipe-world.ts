/** Clients of one virtual server, for tests of recipes. */
import { type Client, connect, type ConnectOptions } from '@tskeeper/client';
import { ClientWorld } from '../../../client/test/support/client-world.ts';
import { recording } from './requests.ts';

export class RecipeWorld {
  readonly world: ClientWorld;
  /** The test's own client. */
  readonly zk: Client;
  readonly #addresses = new WeakMap<Client, string>();

  private constructor(world: ClientWorld, zk: Client) {
    this.world = world;
    this.zk = zk;
  }

  static async start(core?: Parameters<typeof ClientWorld.start>[0]): Promise<RecipeWorld> {
    const world = await ClientWorld.start(core);
    return new RecipeWorld(world, await world.connect());
  }

  async client(options: ConnectOptions = {}): Promise<Client> {
    const connecting = this.world.connect(options);
    const address = `10.1.0.${this.world.clients}`;
    const client = await connecting;
    this.#addresses.set(client, address);
    return client;
  }

  /**
   * Kills the process of a client that `client` has made: its connection breaks and never comes
   * back, and its session is not closed, but lives until it times out. The object of the dead
   * process still exists, and does not notice.
   */
  killed(client: Client): void {
    const address = this.#addresses.get(client)!;
    for (const cnxn of [...this.world.wire.cnxns].filter(({ dialer }) => dialer.address === address)) this.world.break(cnxn);
    this.world.wire.cut(address, this.world.address);
  }

  /** A client, and its requests from now on. */
  async recorded(): Promise<{ readonly zk: Client; readonly lines: string[] }> {
    const lines: string[] = [];
    const zk = await this.until(connect('server:2181', recording(this.world.options(), lines)));
    lines.length = 0;
    return { zk, lines };
  }

  until<Result>(promise: Promise<Result>, atMostMs?: number): Promise<Result> {
    return this.world.until(promise, atMostMs);
  }

  /** Lets everything happen that needs no time. */
  settle(): Promise<void> {
    return this.world.settle();
  }

  pass(ms: number, stepMs?: number): Promise<void> {
    return this.world.pass(ms, stepMs);
  }

  async childrenOf(path: string): Promise<readonly string[]> {
    return (await this.until(this.zk.getChildren(path))).children;
  }

  close(): Promise<void> {
    return this.world.close();
  }
}

/** The reason of a rejection. For a promise whose failure is not handled in the same turn. */
export function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    (result) => new Error(`it did not fail, but gave ${String(result)}`),
    (error: unknown) => error,
  );
}
