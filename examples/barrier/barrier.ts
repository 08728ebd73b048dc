/**
 * A barrier: nobody begins the second half of the work before everybody has ended the first.
 *
 * The root znode is the barrier; each participant that has reached it is an ephemeral child, so that one that dies stands in nobody's way.
 * The program printed in "ZooKeeper Example" does the same, with two slips that are mended here: it uses one name for the barrier and
 * for the participant, and a participant that is slow to look may find others gone again already and wait for ever. So whoever sees
 * the barrier full says so in the root's data before it goes on.
 */
import { type Client, KeeperError } from '@tskeeper/client';

const full = 'full';

export class Barrier {
  readonly #zk: Client;
  readonly #root: string;
  readonly #size: number;
  readonly #own: string;

  /**
   * @param root path of the barrier; its parent must exist. A barrier serves once.
   * @param size how many must reach it.
   * @param name of this participant; no two may share one.
   */
  private constructor(zk: Client, root: string, size: number, name: string) {
    this.#zk = zk;
    this.#root = root;
    this.#size = size;
    this.#own = `${root}/${name}`;
  }

  /** Makes the barrier, or finds the one that another participant has made. */
  static async at(zk: Client, root: string, size: number, name: string): Promise<Barrier> {
    await unless('NodeExists', () => zk.create(root));
    return new Barrier(zk, root, size, name);
  }

  /** Resolves when `size` participants have entered. */
  async enter(): Promise<void> {
    await this.#createOwn();
    for (;;) {
      const { count, changed } = await this.#children();
      if (count >= this.#size || (await this.#wasFull())) break;
      await changed;
    }
    await again(() => this.#zk.setData(this.#root, full));
  }

  /** Resolves when all participants that entered have left, or died. */
  async leave(): Promise<void> {
    await unless('NoNode', () => this.#zk.delete(this.#own, { version: 0 }));
    for (;;) {
      const { count, changed } = await this.#children();
      if (count === 0) return;
      await changed;
    }
  }

  async #createOwn(): Promise<void> {
    try {
      await again(() => this.#zk.create(this.#own, null, { mode: 'ephemeral' }));
    } catch (error) {
      // A create whose reply was lost may have been carried out: then it is our own znode that exists.
      if (!KeeperError.is(error, 'NodeExists')) throw error;
      const stat = await again(() => this.#zk.exists(this.#own));
      if (stat?.ephemeralOwner !== this.#zk.sessionId) throw error;
    }
  }

  /** How many there are, and when that changes: the watch is set by the very read that counts, so nothing is missed in between. */
  async #children(): Promise<{ readonly count: number; readonly changed: Promise<void> }> {
    let tell!: () => void;
    const changed = new Promise<void>((resolve) => (tell = resolve));
    const { children } = await again(() => this.#zk.getChildren(this.#root, { watch: tell }));
    return { count: children.length, changed };
  }

  async #wasFull(): Promise<boolean> {
    const { data } = await again(() => this.#zk.getData(this.#root));
    return data !== null && Buffer.from(data).toString() === full;
  }
}

/** A call whose connection was lost is made again, when there is a connection again. */
async function again<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!KeeperError.is(error, 'ConnectionLoss')) throw error;
    }
  }
}

/** The same, for a change that may have been made already. */
async function unless(code: 'NodeExists' | 'NoNode', call: () => Promise<unknown>): Promise<void> {
  try {
    await again(call);
  } catch (error) {
    if (!KeeperError.is(error, code)) throw error;
  }
}
