/** What a check has in hand: the facts about the servers, a znode of its own, and sessions that are ended when it is over. */
import { type Client, connect, type ConnectOptions, formatServer, type ServerAddress } from '@tskeeper/client';
import type { Facts } from './facts.ts';
import { RawCnxn, type RawHandshake } from './raw-cnxn.ts';
import { isAtLeast, type Release } from './release.ts';

export interface OpenOptions extends ConnectOptions {
  /** Which of the reachable servers, counted from 0. Default: the first. */
  readonly server?: number;
  /** Below which znode. Default: the real root, whatever the connect string says. */
  readonly chroot?: string;
}

/** Identities that znodes with an ACL of their own are given to. Whoever removes the scratch znodes has all of them. */
export const identities = { alice: 'alice:conformance', bob: 'bob:conformance', keeper: 'keeper:conformance' } as const;

export interface GroundOptions {
  readonly facts: Facts;
  readonly root: string;
  readonly superAuth: string | undefined;
}

export class Ground {
  readonly facts: Facts;
  /** The znode of this check, with all of its path. */
  readonly root: string;
  /** `user:password` of the super user; there where a check needs `super`. */
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

  /** What is opened once the check has run out of time is ended at once. */
  async #kept<T>(list: T[], opened: T, end: (opened: T) => unknown): Promise<T> {
    list.push(opened);
    if (this.#isOver) await end(opened);
    return opened;
  }

  /**
   * Resolves when everything that was acknowledged to anybody before is applied at the server of `zk`, and the events of it have been heard; and at
   * the leader, which judges writes by what it has applied, and may be behind a follower that has answered. A txn of its own that changes nothing
   * does it; a sync would not, as Apache's leader may answer that ahead of what it has yet to apply.
   */
  async caughtUp(zk: Client): Promise<void> {
    const check = [{ op: 'check', path: this.root }] as const;
    const { leader } = this;
    if (leader !== undefined) await (await (this.#atLeader ??= this.open({ server: leader }))).multi(check);
    await zk.multi(check);
  }

  /** Which of the reachable servers leads, as they said at the beginning; undefined for one that stands alone, and where none says so. */
  get leader(): number | undefined {
    const at = this.facts.servers.findIndex(({ mode }) => mode === 'leader');
    return at === -1 ? undefined : at;
  }

  /** Waits, and lets it be known for what, in case it takes too long. */
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

  /** Ends all sessions; never rejects. */
  async end(): Promise<void> {
    this.#isOver = true;
    for (const cnxn of this.#cnxns) await Promise.race([cnxn.close(), pause(endMs)]).finally(() => cnxn.destroy());
    await Promise.all(this.#clients.map((client) => Promise.race([client.close(), pause(endMs)])));
  }
}

/** How long a server is given to answer the end of a session. */
const endMs = 2000;

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms).unref());
}

/** All of these, to be awaited later, or never if the check fails before: what becomes of them then is nobody's business. */
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
