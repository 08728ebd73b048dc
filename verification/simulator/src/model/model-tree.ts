/**
 * The znodes, as plain objects in a map by path. The tree applies changes that were validated
 * before; it knows neither permissions nor watches. Usage of quotas is part of it, since it is
 * stored in znodes.
 */
import { ErrorCode, Perms } from '@tskeeper/protocol';
import { type Acl, openAcl } from './access-rules.ts';
import type { ModelOptions } from './model-options.ts';
import type { Data, Stat } from './operation-types.ts';
import { formatQuota, limitsName, parseQuota, quotaPathOf, quotaRoot, type Quotas, statsName } from './quotas.ts';
import { Refusal } from './refusal.ts';
import { nameOf, parentOf } from './znode-path.ts';

export type Owner =
  | { readonly kind: 'persistent' | 'container' }
  | { readonly kind: 'ephemeral'; readonly session: bigint }
  | { readonly kind: 'ttl'; readonly ttl: number };

export interface Znode {
  readonly children: Set<string>;
  readonly czxid: number;
  readonly ctime: number;
  readonly owner: Owner;
  data: Data;
  acl: readonly Acl[];
  mzxid: number;
  mtime: number;
  pzxid: number;
  version: number;
  /** Counts creates only; clients see 2 x this - children, in 32 bits. */
  creates: number;
  aversion: number;
}

/** What a create adds to the tree. */
interface NewZnode {
  readonly path: string;
  readonly data: Data;
  readonly acl: readonly Acl[];
  readonly owner: Owner;
  readonly wallMs: number;
}

/** Versions and counters overflow as in Java. */
const toInt32 = (value: number): number => value | 0;

export const byteCount = (data: Data): number => data?.length ?? 0;

export function statOf(znode: Znode): Stat {
  const numChildren = znode.children.size;
  return {
    czxid: znode.czxid,
    mzxid: znode.mzxid,
    ctime: znode.ctime,
    mtime: znode.mtime,
    version: znode.version,
    cversion: toInt32(znode.creates * 2 - numChildren),
    aversion: znode.aversion,
    ephemeralOwner: znode.owner.kind === 'ephemeral' ? znode.owner.session : 0n,
    dataLength: byteCount(znode.data),
    numChildren,
    pzxid: znode.pzxid,
  };
}

/** A znode that is there from the start. */
function initialZnode(acl: readonly Acl[], aversion: number, ...children: string[]): Znode {
  return {
    children: new Set(children),
    czxid: 0,
    ctime: 0,
    owner: { kind: 'persistent' },
    data: '',
    acl,
    mzxid: 0,
    mtime: 0,
    pzxid: 0,
    version: 0,
    creates: 0,
    aversion,
  };
}

export class ModelTree {
  readonly #options: Pick<ModelOptions, 'javaCompatible' | 'wideSequences'>;
  /**
   * Every znode by its path. The root is here twice, as '' (the parent of top-level znodes) and as
   * '/'.
   */
  #znodes = new Map<string, Znode>();
  /** Paths that have a zookeeper_limits znode. */
  #quotaPaths = new Set<string>();
  /** The zxid of the last txn. */
  zxid = 0;

  constructor(options: Pick<ModelOptions, 'javaCompatible' | 'wideSequences'>) {
    this.#options = options;
    const root = initialZnode(openAcl, 0, 'zookeeper');
    this.#znodes.set('', root);
    this.#znodes.set('/', root);
    this.#znodes.set('/zookeeper', initialZnode(openAcl, 0, 'quota', 'config'));
    this.#znodes.set(quotaRoot, initialZnode(openAcl, 0));
    this.#znodes.set('/zookeeper/config', initialZnode([{ perms: Perms.read, scheme: 'world', id: 'anyone' }], -1));
  }

  /** The number of znodes, with the root counted once. */
  get znodeCount(): number {
    return this.#znodes.size - 1;
  }

  get(path: string): Znode | undefined {
    return this.#znodes.get(path);
  }

  /** A znode that a request needs. */
  require(path: string): Znode {
    const znode = this.#znodes.get(path);
    if (znode === undefined) throw new Refusal(ErrorCode.NoNode);
    return znode;
  }

  has(path: string): boolean {
    return this.#znodes.has(path);
  }

  /** Every path with its znode, the root under both its paths. */
  entries(): Iterable<[string, Znode]> {
    return this.#znodes;
  }

  ephemeralsOf(session: bigint): string[] {
    return [...this.#znodes].filter(([, { owner }]) => owner.kind === 'ephemeral' && owner.session === session).map(([path]) => path);
  }

  /**
   * The number of paths that begin with this one and a slash. In Java, which has the root twice, ''
   * has one more than '/'.
   */
  countBelow(path: string): number {
    if (path === '/' || (path === '' && !this.#options.javaCompatible)) return this.#znodes.size - 2;
    return [...this.#znodes.keys()].filter((other) => other.startsWith(`${path}/`)).length;
  }

  // --- changes

  /**
   * Returns the stat before the usage of the quota is updated, which may change the data of a new
   * zookeeper_stats znode.
   */
  add({ path, data, acl, owner, wallMs }: NewZnode): Stat {
    const parentPath = parentOf(path);
    const parent = this.#znodes.get(parentPath)!;
    const creates = this.#options.wideSequences ? parent.creates + 1 : toInt32(parent.creates + 1);
    // The counter can overflow; in Java the tree only ever raises it, so it stays.
    if (creates > parent.creates || !this.#options.javaCompatible) {
      parent.creates = creates;
      parent.pzxid = this.zxid;
    }
    parent.children.add(nameOf(path));
    const znode: Znode = {
      children: new Set(),
      czxid: this.zxid,
      ctime: wallMs,
      owner,
      data,
      acl,
      mzxid: this.zxid,
      mtime: wallMs,
      pzxid: this.zxid,
      version: 0,
      creates: 0,
      aversion: 0,
    };
    this.#znodes.set(path, znode);
    const stat = statOf(znode);
    if (parentPath.startsWith(`${quotaRoot}/`)) {
      if (nameOf(path) === limitsName) this.#quotaPaths.add(parentPath.slice(quotaRoot.length));
      if (nameOf(path) === statsName) this.#fillUsage(parentPath.slice(quotaRoot.length));
    }
    this.#countUsage(path, byteCount(data), 1);
    return stat;
  }

  remove(path: string): void {
    const parentPath = parentOf(path);
    const parent = this.#znodes.get(parentPath)!;
    const znode = this.#znodes.get(path)!;
    parent.children.delete(nameOf(path));
    parent.pzxid = this.zxid;
    this.#znodes.delete(path);
    if (parentPath.startsWith(`${quotaRoot}/`) && nameOf(path) === limitsName) {
      this.#quotaPaths.delete(parentPath.slice(quotaRoot.length));
    }
    this.#countUsage(path, -byteCount(znode.data), -1);
  }

  /** Returns the stat before the usage of the quota is updated. */
  setData(path: string, data: Data, wallMs: number): Stat {
    const znode = this.#znodes.get(path)!;
    const growth = byteCount(data) - byteCount(znode.data);
    znode.data = data;
    znode.version = toInt32(znode.version + 1);
    znode.mzxid = this.zxid;
    znode.mtime = wallMs;
    const stat = statOf(znode);
    this.#countUsage(path, growth, 0);
    return stat;
  }

  setAcl(path: string, acl: readonly Acl[]): Stat {
    const znode = this.#znodes.get(path)!;
    znode.acl = acl;
    znode.aversion = toInt32(znode.aversion + 1);
    return statOf(znode);
  }

  // --- quotas

  quotas(): Quotas {
    const dataOf = (path: string, name: string) => this.#znodes.get(`${quotaRoot}${path}/${name}`)?.data;
    return new Map(
      [...this.#quotaPaths].map((path) => [path, { limits: dataOf(path, limitsName) ?? null, usage: dataOf(path, statsName) }]),
    );
  }

  #countUsage(path: string, bytes: number, count: number): void {
    const quotaPath = quotaPathOf(path, this.#quotaPaths);
    const stats = quotaPath === undefined ? undefined : this.#znodes.get(`${quotaRoot}${quotaPath}/${statsName}`);
    if (stats === undefined) return;
    const usage = parseQuota(stats.data);
    usage.set('count', (usage.get('count') ?? -1) + count);
    usage.set('bytes', (usage.get('bytes') ?? -1) + bytes);
    stats.data = formatQuota(usage);
  }

  /** Fills a new zookeeper_stats znode with the current usage. */
  #fillUsage(quotaPath: string): void {
    let count = 0;
    let bytes = 0;
    for (const [path, znode] of this.#znodes) {
      if (path !== quotaPath && !path.startsWith(`${quotaPath}/`)) continue;
      count++;
      bytes += byteCount(znode.data);
    }
    this.#znodes.get(`${quotaRoot}${quotaPath}/${statsName}`)!.data = `count=${count},bytes=${bytes}`;
  }

  // --- going back

  copy(): ModelTree {
    const copy = new ModelTree(this.#options);
    copy.#znodes = new Map();
    for (const [path, znode] of this.#znodes) copy.#znodes.set(path, { ...znode, children: new Set(znode.children) });
    copy.#znodes.set('/', copy.#znodes.get('')!);
    copy.#quotaPaths = new Set(this.#quotaPaths);
    copy.zxid = this.zxid;
    return copy;
  }

  /** Takes over the content of a copy, which must not be used afterwards. */
  restore(copy: ModelTree): void {
    this.#znodes = copy.#znodes;
    this.#quotaPaths = copy.#quotaPaths;
    this.zxid = copy.zxid;
  }
}
