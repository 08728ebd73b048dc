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

export interface GroundOptions {
  readonly facts: Facts;
  readonly root: string;
  readonly superAuth: string | undefined;
}

export class Ground {
  readonly facts: Facts;
  /** The full path of this check's znode. */
  readonly root: string;
  /** `user:password` of the super user; set for a check that needs `super`. */
  readonly superAuth: string | undefined;
  readonly #clients: Client[] = [];
  readonly #cnxns: RawCnxn[] = [];
  #atLeader: Promise<Client> | undefined;
  #waitingFor = 'an answer';
  #isOver = false;

  constructor({ facts, root, superAuth }: GroundOptions) {
    this.facts = facts;
    this.root = root;
    this.superAuth = superAuth;
  }

  isRelease(...release: Release): boolean {
    return isAtLeast(this.facts.release, release);
  }

  serverAt(server: number): ServerAddress {
    return this.facts.servers[server]!.address;
  }

  async open({ server = 0, chroot = '', ...options }: OpenOptions = {}): Promise<Client> {
    return this.#kept(this.#clients, await connect(formatServer(this.serverAt(server)) + chroot, options), (client) => client.close());
  }

  /** A connection without a session. */
  async openRaw(server = 0): Promise<RawCnxn> {
    return this.#kept(this.#cnxns, await RawCnxn.open(this.serverAt(server)), (cnxn) => cnxn.destroy());
  }

  /** A connection with a session. */
  async openRawSession(handshake: RawHandshake = {}, server = 0): Promise<RawCnxn> {
    const cnxn = await this.openRaw(server);
    if ((await cnxn.shakeHands(handshake)) === undefined)
      throw new Error('the server has closed the connection instead of opening a session');
    return cnxn;
  }

  /** Ends at once what is opened after the check has timed out. */
  async #kept<T>(list: T[], opened: T, end: (opened: T) => unknown): Promise<T> {
    list.push(opened);
    if (this.#isOver) await end(opened);
    return opened;
  }

  /**
   * Resolves when everything that was acknowledged to any client before is applied at the server of
   * `zk`, whose events have arrived, and at the leader, which validates writes by what it has
   * applied and may lag behind a follower that has replied. A txn of its own that changes nothing
   * achieves this; a sync does not, since Apache's leader may answer it before it has applied
   * everything.
   */
  async caughtUp(zk: Client): Promise<void> {
    const check = [{ op: 'check', path: this.root }] as const;
    const { leader } = this;
    if (leader !== undefined) await (await (this.#atLeader ??= this.open({ server: leader }))).multi(check);
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
  async until<T>(what: string, promise: Promise<T>): Promise<T> {
    const before = this.#waitingFor;
    this.#waitingFor = what;
    const result = await promise;
    this.#waitingFor = before;
    return result;
  }

  get waitingFor(): string {
    return this.#waitingFor;
  }

  /** Closes all sessions; never rejects. */
  async end(): Promise<void> {
    this.#isOver = true;
    for (const cnxn of this.#cnxns) await Promise.race([cnxn.close(), pause(endMs)]).finally(() => cnxn.destroy());
    await Promise.all(this.#clients.map((client) => Promise.race([client.close(), pause(endMs)])));
  }
}

/** How long to wait for a server to answer the end of a session. */
const endMs = 2000;

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms).unref());
}

/**
 * All of these calls, to await later, or never if the check fails before: then their results do not
 * matter.
 */
export function underWay<T>(calls: readonly Promise<T>[]): Promise<T[]> {
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
