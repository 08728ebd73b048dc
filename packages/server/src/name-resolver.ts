import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';

/**
 * Resolves names through the operating system (getaddrinfo), so that /etc/hosts and all other
 * configuration applies.
 *
 * getaddrinfo blocks a thread of the small pool that fsync needs as well, and may block it for half
 * a minute when a name server is down. So one look-up runs at a time, whatever the number of
 * callers. Each connection attempt resolves anew, because addresses change; an earlier answer is
 * used again when the new one is late or an error.
 */
export class NameResolver {
  readonly #lookup: (host: string) => Promise<string[]>;
  readonly #freshAnswerTimeoutMs: number;
  readonly #known = new Map<string, string[]>();
  readonly #pendingLookups = new Map<string, Promise<string[]>>();
  #last: Promise<unknown> = Promise.resolve();

  /**
   * `freshAnswerTimeoutMs`: how long a caller waits for a new answer when there is an earlier one.
   */
  constructor(lookupAll: (host: string) => Promise<string[]> = systemLookup, freshAnswerTimeoutMs = 1000) {
    this.#lookup = lookupAll;
    this.#freshAnswerTimeoutMs = freshAnswerTimeoutMs;
  }

  async resolve(host: string): Promise<string[]> {
    if (isIP(host) !== 0) return [host];
    const fresh = this.#lookUpOnce(host);
    const known = this.#known.get(host);
    if (known === undefined) return await fresh;
    let timer: NodeJS.Timeout | undefined;
    const fallback = new Promise<string[]>((resolve) => {
      timer = setTimeout(resolve, this.#freshAnswerTimeoutMs, known);
    });
    try {
      return await Promise.race([fresh.catch(() => known), fallback]);
    } finally {
      clearTimeout(timer);
    }
  }

  #lookUpOnce(host: string): Promise<string[]> {
    const underway = this.#pendingLookups.get(host);
    if (underway !== undefined) return underway;
    const answer = this.#last.then(() => this.#lookUpNow(host));
    this.#last = answer.catch(() => undefined);
    this.#pendingLookups.set(host, answer);
    return answer;
  }

  async #lookUpNow(host: string): Promise<string[]> {
    try {
      const addresses = await this.#lookup(host);
      this.#known.set(host, addresses);
      return addresses;
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? String(error);
      throw new Error(`the name ${host} cannot be resolved (${code}). Check its spelling, /etc/hosts and the name servers.`, {
        cause: error,
      });
    } finally {
      this.#pendingLookups.delete(host);
    }
  }
}

async function systemLookup(host: string): Promise<string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address);
}
