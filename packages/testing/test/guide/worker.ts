/** What docs/guides/testing-your-own-code.md tests. */
import { type Client, KeeperError } from '@tskeeper/client';

/** Lists a worker below /workers for as long as the program runs: when its session has expired, anew with the next. */
export class Worker {
  readonly #open: () => Promise<Client>;
  readonly #name: string;
  readonly #listed: (path: string) => void;
  #zk: Client | undefined;
  #isStopped = false;

  /** `open` connects: the program says how, and so does a test. `listed` hears of each entry that is made. */
  constructor(open: () => Promise<Client>, name: string, listed: (path: string) => void = () => {}) {
    this.#open = open;
    this.#name = name;
    this.#listed = listed;
  }

  /** Resolves when the worker is listed for the first time. */
  async start(): Promise<void> {
    const zk = await this.#open();
    if (this.#isStopped) return zk.close();
    this.#zk = zk;
    zk.on('state', ({ state }) => {
      // Its entry has gone with the session. The client cannot be used again.
      if (state === 'Expired' && !this.#isStopped) void this.start();
    });
    try {
      const options = { mode: 'ephemeralSequential', parents: true, protection: true, retry: true } as const;
      const { path } = await zk.create('/workers/w-', this.#name, options);
      this.#listed(path);
    } catch (error) {
      // Then `Expired` is told as well.
      if (!KeeperError.is(error, 'SessionExpired')) throw error;
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#zk?.close();
  }
}
