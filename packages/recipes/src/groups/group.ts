/**
 * Group membership, by ZooKeeper's recipes page: the group is a znode, its members are ephemeral
 * children, and a member that crashes leaves the group as soon as the ensemble expires its session.
 *
 *     /workers
 *       ├─ alice              ephemeral; its data are those of the member alice
 *       └─ bob
 */
import type { Acl, ClientView, Data } from '@tskeeper/client';
import { childPath, nameOf } from '@tskeeper/client/internal';
import {
  callOptionTypes,
  checkCallOptions,
  checkArgumentCount,
  checkName,
  checkSourceAndPath,
  checkConstructorOptions,
} from '../validation.ts';
import { ChildrenCache } from '../caches/children-cache.ts';
import { observeCache } from '../caches/observe-cache.ts';
import { PersistentNode } from '../nodes/persistent-node.ts';
import { currentClient, runAcrossSessions, type SessionSource } from '../sessions/session-source.ts';
import { Deadline } from '../waiting/deadline.ts';
import { retryForever } from '../waiting/own-znode.ts';
import { undefinedIfNoNode } from '../waiting/watch-once.ts';
import type { WaitOptions } from '../wait-options.ts';
import { type GroupNaming, namings } from './naming.ts';

/** How a group is kept. All of its members use the same options. */
export interface GroupOptions {
  /**
   * The ACL of the members' znodes, and of the group if it has to be created. Default: all
   * permissions for everyone.
   */
  readonly acl?: readonly Acl[] | undefined;
  /**
   * How members' znodes are named.
   * - `plain`, the default: by the name of the member, as in ZooKeeper's recipe and in Curator's
   *   GroupMember.
   * - `party`: by a guid and `__party__`, with the name as data, as in kazoo's Party.
   * - `shallowParty`: by a guid and the name, with the name as data as well, as in kazoo's
   *   ShallowParty. Observers need not read the data.
   */
  readonly naming?: GroupNaming | undefined;
}

/** How to join. */
export interface JoinOptions extends WaitOptions {
  /**
   * Data of the member. Only with the naming `plain`; the others use the data for the name.
   * Default: none.
   */
  readonly data?: Data | undefined;
  /** As in `PersistentNodeOptions`. Default: false, waits while another session has the name. */
  readonly takeOver?: boolean | undefined;
}

/** One member, as observers see it. */
export interface Member {
  /** The name with which it has joined. */
  readonly name: string;
  /** Of its znode. */
  readonly path: string;
  /** Its data. */
  readonly data: Uint8Array | null;
}

/** The members of a group at one moment. */
export interface Membership {
  /** Sorted by name. */
  readonly members: readonly Member[];
  /** False while there is no connection: then it may be out of date. */
  readonly isSynced: boolean;
}

/** A membership, and a mark that differs when it does. */
interface MembershipSnapshot extends Membership {
  readonly fingerprint: string;
}

/** A group and its members: the group membership of ZooKeeper's recipes. */
export class Group {
  /** The znode above those of the members. */
  readonly path: string;
  readonly #source: SessionSource;
  readonly #naming: GroupNaming;
  readonly #acl: readonly Acl[] | undefined;

  /**
   * Sends no request. The znode need not exist. `source`: a client, with whose session a membership
   * ends, or `Sessions`. Throws a TypeError if `source` is not a client or `path` is not a path.
   */
  constructor(source: SessionSource, path: string, options: GroupOptions = {}) {
    checkSourceAndPath(source, path);
    checkConstructorOptions(options, 'Group', arguments.length);
    const { naming = 'plain', acl } = options;
    if (!Object.hasOwn(namings, naming)) throw new TypeError(`naming must be one of ${Object.keys(namings).join(', ')}, not ${naming}`);
    this.path = path;
    this.#source = source;
    this.#naming = naming;
    this.#acl = acl;
  }

  /**
   * Joins the group, and resolves when it is a member. It stays one until the result is closed: its
   * znode is created again if another client deletes it, and with `Sessions` in each session.
   * Rejects as `PersistentNode.ready` does, and is then not a member.
   */
  async join(name: string, options: JoinOptions = {}): Promise<PersistentNode> {
    checkArgumentCount(arguments.length, 2, 'join(name, options)');
    checkName(name, 'the name of a member');
    checkCallOptions(options, callOptionTypes.join, `group ${this.path}`);
    options.signal?.throwIfAborted();
    const { data, takeOver, ...waitOptions } = options;
    const naming = namings[this.#naming];
    if (naming.isNameData && data !== undefined)
      throw new TypeError(`with the naming ${this.#naming} the data of a member are its name; leave data out`);
    const path = childPath(this.path, naming.childName(name, currentClient(this.#source)));
    const node = new PersistentNode(this.#source, path, naming.isNameData ? name : data, {
      acl: this.#acl,
      protection: naming.isProtected,
      takeOver,
    });
    try {
      await node.ready(waitOptions);
    } catch (error) {
      await node.close();
      throw error;
    }
    return node;
  }

  /**
   * The current members, sorted by name; none if the group does not exist. Rejects as
   * `Client.getChildren` and `Client.getData` do, except with NoNode.
   */
  async members(options: WaitOptions = {}): Promise<readonly Member[]> {
    checkArgumentCount(arguments.length, 1, 'members(options)');
    using deadline = new Deadline(this.#source, options, `the members of ${this.path}`);
    const { signal } = deadline;
    return await runAcrossSessions(this.#source, signal, (zk) => this.#membersInSession(zk, signal));
  }

  async #membersInSession(zk: ClientView, signal: AbortSignal): Promise<readonly Member[]> {
    const { includes, isShallow } = namings[this.#naming];
    const limits = { ...retryForever, signal };
    const read = async (path: string) => {
      const data = isShallow ? null : await undefinedIfNoNode(zk.getData(path, limits).then((found) => found.data));
      return data === undefined ? [] : [this.#memberOf(path, data)];
    };
    const found = await undefinedIfNoNode(zk.getChildren(this.path, limits));
    const names = (found?.children ?? []).filter((child) => includes(child));
    return (await Promise.all(names.map((child) => read(childPath(this.path, child))))).flat().sort(byName);
  }

  /**
   * Yields the members, now and whenever they or their data change, or the connection is lost or
   * restored. A member that joins costs each observer one event and one read. Ends when the client
   * is closed, and throws the signal's reason, or SessionExpired and the like; with `Sessions` it
   * continues with the next client, and throws what has ended the Sessions.
   */
  observe(options: Pick<WaitOptions, 'signal'> = {}): AsyncGenerator<Membership, void, undefined> {
    checkArgumentCount(arguments.length, 1, 'observe(options)');
    checkCallOptions(options, callOptionTypes.loop, 'observe');
    return this.#observe(options.signal);
  }

  async *#observe(signal: AbortSignal | undefined): AsyncGenerator<Membership, void, undefined> {
    const { includes, isShallow } = namings[this.#naming];
    await using cache = new ChildrenCache(this.#source, this.path, { data: !isShallow, include: includes });
    const show = () => this.#snapshot(cache);
    yield* observeCache<Uint8Array | null, MembershipSnapshot>(cache, signal, show, (one, other) => one.fingerprint === other.fingerprint);
  }

  #snapshot(cache: ChildrenCache): MembershipSnapshot {
    const { isSynced } = cache;
    const znodes = [...cache];
    const marks = znodes.map(({ path, stat }) => `${path}/${stat.mzxid}`).sort();
    const members = znodes.map(({ path, data }) => this.#memberOf(path, data ?? null)).sort(byName);
    return { members, isSynced, fingerprint: `${isSynced} ${marks.join()}` };
  }

  #memberOf(path: string, data: Uint8Array | null): Member {
    return { name: namings[this.#naming].memberName(nameOf(path), data), path, data };
  }
}

function byName(one: Member, other: Member): number {
  if (one.name === other.name) return one.path < other.path ? -1 : 1;
  return one.name < other.name ? -1 : 1;
}
