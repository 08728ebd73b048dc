/**
 * Faults of a program that holds something: its connection is cut, or its session expires while it
 * cannot reach a server.
 */
import { type Client, connect } from '@tskeeper/client';
import type { VirtualCnxn } from '@tskeeper/runtime/internal';
import { Sessions } from '../../src/index.ts';
import type { RecipeWorld } from './recipe-world.ts';

/** One program: its Sessions, whose connections can be cut separately. */
export class Program {
  readonly sessions: Sessions;
  readonly #t: RecipeWorld;
  readonly #addresses: ReadonlySet<string>;

  private constructor(t: RecipeWorld, sessions: Sessions, addresses: ReadonlySet<string>) {
    this.#t = t;
    this.sessions = sessions;
    this.#addresses = addresses;
  }

  static async start(t: RecipeWorld): Promise<Program> {
    const addresses = new Set<string>();
    const open = (signal: AbortSignal): Promise<Client> => {
      const options = t.world.options({ connectTimeoutMs: Infinity, signal });
      addresses.add(`10.1.0.${t.world.clients}`);
      return connect('server:2181', options);
    };
    return new Program(t, await t.until(Sessions.start(open)), addresses);
  }

  /**
   * The connection breaks, and the next one follows a moment later. Requests in flight get no
   * reply.
   */
  async cut(): Promise<void> {
    const { client } = this.sessions;
    this.#t.world.break(this.#cnxn);
    await this.#t.world.untilSo(() => client.state !== 'connected');
    await this.#t.world.untilSo(() => client.state === 'connected');
  }

  /**
   * The program reaches no server for longer than its session lasts. So does any program whose
   * connection breaks meanwhile.
   */
  async expire(meanwhile: () => Promise<unknown> = () => Promise.resolve()): Promise<void> {
    const { world } = this.#t;
    const { client } = this.sessions;
    world.wire.name('server', []);
    world.break(this.#cnxn);
    await this.#t.pass(500);
    await meanwhile();
    await this.#t.pass(client.sessionTimeoutMs + 3000, 1000);
    world.wire.name('server', [world.address]);
    await world.untilSo(() => this.sessions.client !== client && this.sessions.client.state === 'connected');
  }

  get #cnxn(): VirtualCnxn {
    const open = [...this.#t.world.wire.cnxns].filter(
      ({ forward, backward }) => !forward.from.isClosed && !forward.to.isClosed && this.#addresses.has(backward.to.stack.address),
    );
    return open.at(-1)!;
  }
}
