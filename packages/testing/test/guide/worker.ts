/** The program that docs/guides/testing-your-own-code.md tests. */
import { type Client, KeeperError } from '@tskeeper/client';

/** Registers a worker below /workers while the program runs, and again after its session has expired. */
export class Worker {
  readonly #open: () => Promise<Client>;
  readonly #name: string;
  readonly #listed: (path: string) => void;
  #zk: Client | undefined;
  #isStopped = false;

  /** `open` connects; the program and the tests pass different functions. `listed` receives the path of each new entry. */
  constructor(open: () => Promise<Client>, name: string, listed: (path: string) => void = () => {}) {
    this.#open = open;
    this.#name = name;
    this.#listed = listed;
  }

  /** Resolves when the worker is registered for the first time. */
  async start(): Promise<void> {
    const zk = await this.#open();
    if (this.#isStopped) return zk.close();
    this.#zk = zk;
    zk.on('state', ({ state }) => {
      // The server has deleted the entry with the session. The client cannot be used again.
      if (state === 'Expired' && !this.#isStopped) void this.start();
    });
    try {
      const options = { mode: 'ephemeralSequential', parents: true, protection: true, retry: true } as const;
      const { path } = await zk.create('/workers/w-', this.#name, options);
      this.#listed(path);
    } catch (error) {
      // The client delivers `Expired` as well.
      if (!KeeperError.is(error, 'SessionExpired')) throw error;
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#zk?.close();
  }
}
