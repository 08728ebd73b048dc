/**
 * What a check uses: the facts about the servers, a znode of its own, and sessions that are closed
 * when it ends.
 */
import { type Client, connect, type ConnectOptions, formatServer, type ServerAddress } from '@tskeeper/client';
import type { Facts } from './facts.ts';
import { RawCnxn, type RawHandshake } from './raw-cnxn.ts';
import { isAtLeast, type Release } from './release.ts';

export interface OpenOptions extends ConnectOptions {
  /** Index of a reachable server. Default: the first. */
  readonly server?: number;
  /**
   * Znode that is the root of the paths. Default: the real root, whatever the connect string says.
   */
  readonly chroot?: string;
}

/**
 * Identities for znodes with their own ACL. The session that removes the scratch znodes has all of
 * them.
 */
export const identities = { alice: 'alice:conformance', bob: 'bob:conformance', keeper: 'keeper:conformance' } as const;

export interface CheckContextOptions {
  readonly facts: Facts;
  readonly rootPath: string;
  readonly superAuth: string | undefined;
}

export class CheckContext {
  readonly facts: Facts;
  /** The full path of this check's znode. */
  readonly rootPath: string;
  /** `user:password` of the super user; set for a check that needs `super`. */
  readonly superAuth: string | undefined;
  readonly #clients: Client[] = [];
  readonly #cnxns: RawCnxn[] = [];
  #leaderClient: Promise<Client> | undefined;
  #awaited = 'an answer';
  #hasEnded = false;

  constructor({ facts, rootPath, superAuth }: CheckContextOptions) {
    this.facts = facts;
    this.rootPath = rootPath;
    this.superAuth = superAuth;
  }

  isRelease(...release: Release): boolean {
    return isAtLeast(this.facts.release, release);
  }

  serverAt(server: number): ServerAddress {
    return this.facts.servers[server]!.address;
  }

  async openClient({ server = 0, chroot = '', ...options }: OpenOptions = {}): Promise<Client> {
    return this.#track(this.#clients, await connect(formatServer(this.serverAt(server)) + chroot, options), (client) => client.close());
  }

  /** A connection without a session. */
  async openRawCnxn(server = 0): Promise<RawCnxn> {
    return this.#track(this.#cnxns, await RawCnxn.open(this.serverAt(server)), (cnxn) => cnxn.destroy());
  }

  /** A connection with a session. */
  async openRawCnxnWithSession(handshake: RawHandshake = {}, server = 0): Promise<RawCnxn> {
    const cnxn = await this.openRawCnxn(server);
    if ((await cnxn.handshake(handshake)) === undefined)
      throw new Error('the server has closed the connection instead of opening a session');
    return cnxn;
  }

  /** Ends at once what is opened after the check has timed out. */
  async #track<T>(list: T[], opened: T, end: (opened: T) => unknown): Promise<T> {
    list.push(opened);
    if (this.#hasEnded) await end(opened);
    return opened;
  }

  /**
   * Resolves when everything that was acknowledged to any client before is applied at the server of
   * `zk`, whose events have arrived, and at the leader, which validates writes by what it has
   * applied and may lag behind a follower that has replied. A txn of its own that changes nothing
   * achieves this; a sync does not, since Apache's leader may answer it before it has applied
   * everything.
   */
  async catchUp(zk: Client): Promise<void> {
    const check = [{ op: 'check', path: this.rootPath }] as const;
    const { leader } = this;
    if (leader !== undefined) await (await (this.#leaderClient ??= this.openClient({ server: leader }))).multi(check);
    await zk.multi(check);
  }

  /**
   * Index of the leader, as the servers reported at the beginning; undefined for a standalone
   * server, or if no server reports it.
   */
  get leader(): number | undefined {
    const at = this.facts.servers.findIndex(({ mode }) => mode === 'leader');
    return at === -1 ? undefined : at;
  }

  /** Awaits a promise, and names it if the check times out. */
  async waitFor<T>(what: string, promise: Promise<T>): Promise<T> {
    const before = this.#awaited;
    this.#awaited = what;
    const result = await promise;
    this.#awaited = before;
    return result;
  }

  get awaited(): string {
    return this.#awaited;
  }

  /** Closes all sessions; never rejects. */
  async end(): Promise<void> {
    this.#hasEnded = true;
    for (const cnxn of this.#cnxns) await Promise.race([cnxn.close(), pause(closeTimeoutMs)]).finally(() => cnxn.destroy());
    await Promise.all(this.#clients.map((client) => Promise.race([client.close(), pause(closeTimeoutMs)])));
  }
}

/** How long to wait for a server to answer the end of a session. */
const closeTimeoutMs = 2000;

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms).unref());
}

/**
 * All of these calls, to await later, or never if the check fails before: then their results do not
 * matter.
 */
export function inFlight<T>(calls: readonly Promise<T>[]): Promise<T[]> {
  const all = Promise.all(calls);
  all.catch(() => undefined);
  return all;
}

/** The next state of the session that is one of these. */
export function nextState(zk: Client, ...states: readonly string[]): Promise<string> {
  return new Promise((resolve) => {
    const off = zk.on('state', ({ state }) => {
      if (!states.includes(state)) return;
      off();
      resolve(state);
    });
  });
}
