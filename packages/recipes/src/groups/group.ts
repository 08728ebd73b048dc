/**
 * Group membership, by ZooKeeper's recipes page: the group is a znode, its members are ephemeral children, and whoever ends abnormally is a member no more as
 * soon as the ensemble ends the session.
 *
 *     /workers
 *       ├─ alice              ephemeral; its data are what alice says of herself
 *       └─ bob
 */
import type { Acl, ClientView, Data } from '@tskeeper/client';
import { childPath, nameOf } from '@tskeeper/client/internal';
import { callOptions, checkCallOptions, checkCount, checkName, checkPlace, checkSettings } from '../given.ts';
import { ChildrenCache } from '../caches/children-cache.ts';
import { told } from '../caches/told.ts';
import { PersistentNode } from '../nodes/persistent-node.ts';
import { clientOf, inSessions, type SessionSource } from '../sessions/session-source.ts';
import { Limit } from '../waiting/limit.ts';
import { untilTheEnd } from '../waiting/next-event.ts';
import { unlessGone } from '../waiting/unless-gone.ts';
import type { WaitOptions } from '../waiting/wait-options.ts';
import { type GroupNaming, namings } from './naming.ts';

/** How a group is kept. All of its members have the same. */
export interface GroupOptions {
  /** Of the members' znodes; of the group as well, if it has to be made. Default: everyone may do everything. */
  readonly acl?: readonly Acl[] | undefined;
  /**
   * How members' znodes are named.
   * - `plain`, the default: by the name of the member, as in ZooKeeper's recipe and in Curator's GroupMember.
   * - `party`: by a guid and `__party__`, with the name as data, as in kazoo's Party.
   * - `shallowParty`: by a guid and the name, which are the data as well, as in kazoo's ShallowParty. Nothing need be read.
   */
  readonly naming?: GroupNaming | undefined;
}

/** How to join. */
export interface JoinOptions extends WaitOptions {
  /** What the member says of itself. Only with the naming `plain`; the others have the name there. Default: none. */
  readonly data?: Data | undefined;
  /** As in `PersistentNodeOptions`. Default: false, a name that another session has is waited for. */
  readonly takesOver?: boolean | undefined;
}

/** One member, as it is shown. */
export interface Member {
  /** As it has joined. */
  readonly name: string;
  /** Of its znode. */
  readonly path: string;
  /** What it says of itself. */
  readonly data: Uint8Array | null;
}

/** Who is in a group at one moment. */
export interface Membership {
  /** By name. */
  readonly members: readonly Member[];
  /** False while there is no connection: then it is as of the past. */
  readonly inStep: boolean;
}

/** What is shown, and by what it is told from what was shown before. */
interface ShownMembership extends Membership {
  readonly mark: string;
}

/** A group, and who is in it: the group membership of ZooKeeper's recipes. */
export class Group {
  /** The znode below which members are. */
  readonly path: string;
  readonly #source: SessionSource;
  readonly #naming: GroupNaming;
  readonly #acl: readonly Acl[] | undefined;

  /**
   * Nothing is asked of a server yet. The znode need not exist. `source`: a client, whose end is the end of its membership, or `Sessions`. Throws a TypeError
   * for what is no client or no path.
   */
  constructor(source: SessionSource, path: string, options: GroupOptions = {}) {
    checkPlace(source, path);
    checkSettings(options, 'Group', arguments.length);
    const { naming = 'plain', acl } = options;
    if (!Object.hasOwn(namings, naming)) throw new TypeError(`naming is one of ${Object.keys(namings).join(', ')}, not ${naming}`);
    this.path = path;
    this.#source = source;
    this.#naming = naming;
    this.#acl = acl;
  }

  /**
   * Becomes a member, and resolves when it is one: until the result is closed, made again should somebody delete its znode, and with `Sessions` in each
   * session. Rejects as `PersistentNode.ready` does; then it is no member.
   */
  async join(name: string, options: JoinOptions = {}): Promise<PersistentNode> {
    checkCount(arguments.length, 2, 'join(name, options)');
    checkName(name, 'the name of a member');
    checkCallOptions(options, callOptions.join, `a member of ${this.path}`);
    options.signal?.throwIfAborted();
    const { data, takesOver, ...waitOptions } = options;
    const naming = namings[this.#naming];
    if (naming.isNameData && data !== undefined)
      throw new TypeError(`with the naming ${this.#naming} the data of a member are its name; leave data out`);
    const path = childPath(this.path, naming.childOf(name, clientOf(this.#source)));
    const node = new PersistentNode(this.#source, path, naming.isNameData ? name : data, {
      acl: this.#acl,
      protection: naming.isProtected,
      takesOver,
    });
    try {
      await node.ready(waitOptions);
    } catch (error) {
      await node.close();
      throw error;
    }
    return node;
  }

  /** Who is a member now, by name; nobody when there is no such group. Rejects as `Client.getChildren` and `Client.getData` do, but for NoNode. */
  async members(options: WaitOptions = {}): Promise<readonly Member[]> {
    checkCount(arguments.length, 1, 'members(options)');
    using limit = new Limit(this.#source, options, `the members of ${this.path}`);
    const { signal } = limit;
    return await inSessions(this.#source, signal, (zk) => this.#membersIn(zk, signal));
  }

  async #membersIn(zk: ClientView, signal: AbortSignal): Promise<readonly Member[]> {
    const { includes, isShallow } = namings[this.#naming];
    const limits = { ...untilTheEnd, signal };
    const read = async (path: string) => {
      const data = isShallow ? null : await unlessGone(zk.getData(path, limits).then((found) => found.data));
      return data === undefined ? [] : [this.#memberOf(path, data)];
    };
    const found = await unlessGone(zk.getChildren(this.path, limits));
    const names = (found?.children ?? []).filter((child) => includes(child));
    return (await Promise.all(names.map((child) => read(childPath(this.path, child))))).flat().sort(byName);
  }

  /**
   * Tells who is a member, now and whenever that changes, or what they say of themselves does, or the connection comes and goes. Who joins costs each of those
   * who look on one event and one read. Ends when the client is closed, and throws the signal's reason, or SessionExpired and the like; with `Sessions` it goes on
   * with the next client, and throws what has ended those.
   */
  observe(options: Pick<WaitOptions, 'signal'> = {}): AsyncGenerator<Membership, void, undefined> {
    checkCount(arguments.length, 1, 'observe(options)');
    checkCallOptions(options, callOptions.loop, 'observe');
    return this.#observe(options.signal);
  }

  async *#observe(signal: AbortSignal | undefined): AsyncGenerator<Membership, void, undefined> {
    const { includes, isShallow } = namings[this.#naming];
    await using cache = new ChildrenCache(this.#source, this.path, { data: !isShallow, include: includes });
    const show = () => this.#show(cache);
    yield* told<Uint8Array | null, ShownMembership>(cache, signal, show, (one, other) => one.mark === other.mark);
  }

  #show(cache: ChildrenCache): ShownMembership {
    const { inStep } = cache;
    const znodes = [...cache];
    const marks = znodes.map(({ path, stat }) => `${path}/${stat.mzxid}`).sort();
    const members = znodes.map(({ path, data }) => this.#memberOf(path, data ?? null)).sort(byName);
    return { members, inStep, mark: `${inStep} ${marks.join()}` };
  }

  #memberOf(path: string, data: Uint8Array | null): Member {
    return { name: namings[this.#naming].nameOf(nameOf(path), data), path, data };
  }
}

function byName(one: Member, other: Member): number {
  if (one.name === other.name) return one.path < other.path ? -1 : 1;
  return one.name < other.name ? -1 : 1;
}
