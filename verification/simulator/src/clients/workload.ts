/**
 * The requests of clients, chosen by the seed: writes of every kind with unique values, reads,
 * watches of all modes, ACLs, quotas, and sometimes closing the session.
 */
import {
  type Acl,
  AddWatchMode,
  creatorAcl,
  CreateMode,
  type KeeperMultiOp,
  keeperPath,
  type MultiOp,
  openAcl,
  Perms,
  readOnlyAcl,
  type Stat,
  WatcherType,
} from '@tskeeper/protocol';
import type { SeededRandom } from '@tskeeper/runtime';
import { digestId } from '../model/access-rules.ts';
import type { Actor, ClientRequest } from './actor.ts';

/** Few, so that clients meet. */
const paths = ['/a', '/b', '/c', '/a/x', '/a/y', '/b/z', '/b/z/deep', '/e1', '/e2', '/a/e3'];
const sequentialPrefixes = ['/q-', '/a/s-', '/b/s-', '/b/z/s-', '/q/s-'];
/** These appear and disappear by themselves. */
const sweepablePaths = ['/k1', '/k2', '/t1', '/a/t2'];
const childrenOfSweepable = ['/k1/x', '/k2/x', '/t1/x'];
const readPaths = ['/', ...paths, ...sweepablePaths, ...childrenOfSweepable];
const watchedPaths = ['/', '/a', '/b', '/a/x', '/b/z', '/e1'];
/** These have several children. */
const listedPaths = ['/', '/', '/a', '/b', '/b/z', '/q', '/k1'];
/** Whole Stats are compared; those of parents change with every child. */
const comparedPaths = ['/a', '/b', '/b/z', '/a', '/b', '/b/z', ...paths];
const ttlsMs = [1, 100, 700, 3_600_000];
const credentials = ['alice:secret', 'bob:pw', 'carol:key'];
const noAcl: readonly Acl[] = [];

/** A position in the children of a znode. */
export interface PageEnd {
  readonly path: string;
  readonly afterZxid: number;
  readonly afterName: string;
}

export interface WorkloadOptions {
  /** Longest value, in bytes. */
  readonly dataBytesMax: number;
  /** One in so many bursts closes the session; 0 for never. */
  readonly closeEvery: number;
  /** Percentage of writes. */
  readonly writePercent: number;
  readonly usesAcls: boolean;
  readonly usesQuotas: boolean;
  /** Whether children are also listed page by page. */
  readonly usesPages: boolean;
  /** Whether operations of ClickHouse Keeper are used; the servers must have them. */
  readonly usesKeeperExtensions: boolean;
  /** Whether a session sometimes takes over ephemerals of another one. */
  readonly handsOverEphemerals: boolean;
}

export class Workload {
  readonly #random: SeededRandom;
  readonly #options: WorkloadOptions;
  readonly #lastPage: () => PageEnd | undefined;
  #values = 0;

  /** `lastPage` finds a page that a client has received, to continue after it. */
  constructor(random: SeededRandom, options: WorkloadOptions, lastPage: () => PageEnd | undefined = () => undefined) {
    this.#lastPage = lastPage;
    this.#random = random;
    this.#options = options;
  }

  /** Sends a few requests at once. */
  burst(actor: Actor): void {
    const { closeEvery } = this.#options;
    if (closeEvery > 0 && this.#random.below(closeEvery) === 0) {
      actor.submit({ name: 'closeSession', record: undefined });
      return;
    }
    if (this.#random.below(8) === 0) {
      for (const ask of this.#createAndDelete()) actor.submit(ask);
      return;
    }
    if (this.#random.below(16) === 0) {
      for (const ask of this.#emptyContainers()) actor.submit(ask);
      return;
    }
    if (this.#options.usesKeeperExtensions && this.#random.below(5) === 0) {
      for (const ask of this.#fillAndRemove()) actor.submit(ask);
      return;
    }
    for (let count = 1 + this.#random.below(5); count > 0; count--) {
      actor.submit(this.#random.below(100) < this.#options.writePercent ? this.#write() : this.#read());
      if (this.#options.usesAcls && this.#random.below(20) === 0) actor.submit(this.#auth());
    }
  }

  /**
   * A session ends, and another takes over its ephemeral: the leader must not confuse what the
   * first owned with what the second owns, in whatever order these requests arrive. `later` calls
   * back after a moment.
   */
  handOverEphemeral(first: Actor, second: Actor, later: (then: () => void) => void): void {
    const path = this.#pick(['/e1', '/e2', '/a/e3', '/b/z']);
    const remove: ClientRequest = { name: 'delete', record: { path, version: -1 } };
    first.submit(remove);
    first.submit(this.#ephemeral(path));
    later(() => {
      second.submit(remove);
      second.submit(this.#ephemeral(path));
      if (this.#random.below(2) === 0) second.submit(this.#ephemeral('/e-', CreateMode.ephemeralSequential));
      const end = () => first.submit({ name: 'closeSession', record: undefined });
      if (this.#random.below(2) === 0) end();
      else later(end);
    });
  }

  #ephemeral(path: string, flags: number = CreateMode.ephemeral): ClientRequest {
    return { name: 'create', record: { path, data: this.#value(), acl: openAcl, flags } };
  }

  /** Credentials count for all later requests, however soon they follow. */
  #auth(): ClientRequest {
    const auth = Buffer.from(credentials[this.#random.below(credentials.length)]!);
    return { name: 'auth', record: { type: 0, scheme: 'digest', auth } };
  }

  #write(): ClientRequest {
    if (this.#options.usesPages && this.#random.below(16) === 0) return this.#siblings();
    if (this.#options.usesKeeperExtensions && this.#random.below(3) === 0) return this.#keeperWrite();
    const kind = this.#random.below(24);
    if (kind < 8) return { name: this.#random.below(2) === 0 ? 'create' : 'create2', record: this.#create() };
    if (kind < 13) return { name: 'setData', record: { path: this.#pick(paths), data: this.#value(), version: this.#version() } };
    if (kind < 17) return { name: 'delete', record: { path: this.#pick(readPaths), version: this.#version() } };
    if (kind < 20) return this.#sweepableWrite();
    if (kind === 20 && this.#options.usesAcls) {
      return { name: 'setACL', record: { path: this.#pick(paths), acl: this.#acl(), version: this.#version() } };
    }
    if (kind === 21 && this.#options.usesQuotas) return this.#quota();
    return { name: 'multi', record: { ops: Array.from({ length: 1 + this.#random.below(4) }, () => this.#multiOp()) } };
  }

  /** Children of one parent in one txn, not in the order of their names. */
  #siblings(): ClientRequest {
    const parent = this.#pick(['', '', '/a', '/b']);
    const create = (): MultiOp => ({
      kind: 'create',
      path: `${parent}/${this.#pick(['z-', 'q-', 's-', 'e-'])}`,
      data: this.#value(),
      acl: this.#acl(),
      flags: this.#random.below(3) > 0 ? CreateMode.ephemeralSequential : CreateMode.persistentSequential,
    });
    return { name: 'multi', record: { ops: Array.from({ length: 2 + this.#random.below(3) }, create) } };
  }

  #create() {
    const kind = this.#random.below(6);
    const acl = this.#acl();
    const data = this.#value();
    if (kind < 2) return { path: this.#pick(paths), data, acl, flags: CreateMode.persistent };
    if (kind === 2) return { path: this.#pick(paths), data, acl, flags: CreateMode.ephemeral };
    return {
      path: this.#pick(sequentialPrefixes),
      data,
      acl,
      flags: kind === 3 ? CreateMode.ephemeralSequential : CreateMode.persistentSequential,
    };
  }

  /**
   * Creates and deletes a znode and its parent at once: each write is validated against the pending
   * changes of the writes before it.
   */
  #createAndDelete(): ClientRequest[] {
    const parent = this.#pick(['/a', '/b', '/c']);
    const child = `${parent}/${this.#pick(['x', 'y', 's-', 's-0000000001'])}`;
    const create = (path: string, flags: number): ClientRequest => ({
      name: 'create',
      record: { path, data: this.#value(), acl: this.#acl(), flags },
    });
    const remove = (path: string): ClientRequest => ({ name: 'delete', record: { path, version: -1 } });
    return Array.from({ length: 3 + this.#random.below(6) }, () => {
      switch (this.#random.below(7)) {
        case 0:
          return create(parent, CreateMode.persistent);
        case 1:
          return create(child, CreateMode.persistent);
        case 2:
        case 3:
          return create(child, CreateMode.ephemeral);
        case 4:
          return remove(parent);
        case 5:
          return create(`${parent}/s-`, CreateMode.ephemeralSequential);
        default:
          return remove(child);
      }
    });
  }

  /** Containers and TTL znodes, and children that keep them. */
  #sweepableWrite(): ClientRequest {
    const record = { path: this.#pick(sweepablePaths), data: this.#value(), acl: this.#acl() };
    switch (this.#random.below(4)) {
      case 0:
        return { name: 'createContainer', record: { ...record, flags: CreateMode.container } };
      case 1: {
        return { name: 'createTTL', record: { ...record, ...this.#withTtl() } };
      }
      case 2:
        return { name: 'create', record: { ...record, path: this.#pick(childrenOfSweepable), flags: CreateMode.persistent } };
      default:
        return { name: 'delete', record: { path: this.#pick(childrenOfSweepable), version: -1 } };
    }
  }

  /** Containers that had a child and lost it, and that get another one before they are swept. */
  #emptyContainers(): ClientRequest[] {
    return ['/k1', '/k2'].flatMap((path): ClientRequest[] => {
      const record = { path: `${path}/x`, data: this.#value(), acl: openAcl, flags: CreateMode.persistent };
      const container: ClientRequest = { name: 'createContainer', record: { path, data: null, acl: openAcl, flags: CreateMode.container } };
      const child: ClientRequest = { name: 'create', record };
      const remove: ClientRequest = { name: 'delete', record: { path: record.path, version: -1 } };
      return this.#random.below(2) === 0 ? [container, child, remove] : [child];
    });
  }

  #withTtl(): { readonly flags: number; readonly ttl: number } {
    const flags = this.#random.below(3) === 0 ? CreateMode.persistentSequentialWithTtl : CreateMode.persistentWithTtl;
    return { flags, ttl: ttlsMs[this.#random.below(ttlsMs.length)]! };
  }

  /**
   * Creates and deletes limits and usage together: separately they would count from different
   * moments, until a start counts again.
   */
  #quota(): ClientRequest {
    const base = `/zookeeper/quota${this.#pick(['/a', '/b'])}`;
    const limits = `${base}/zookeeper_limits`;
    const stats = `${base}/zookeeper_stats`;
    const create = (path: string, data: string): MultiOp => ({
      kind: 'create',
      path,
      data: Buffer.from(data),
      acl: openAcl,
      flags: CreateMode.persistent,
    });
    const remove = (path: string): MultiOp => ({ kind: 'delete', path, version: -1 });
    switch (this.#random.below(4)) {
      case 0:
        return { name: 'multi', record: { ops: [create(base, ''), create(limits, this.#limits()), create(stats, 'count=0,bytes=0')] } };
      case 1:
        return { name: 'multi', record: { ops: [remove(stats), remove(limits), remove(base)] } };
      default:
        return { name: 'getData', record: { path: stats, watch: false } };
    }
  }

  /** Low, so that they are reached. */
  #limits(): string {
    const hard = [`;countHardLimit=${2 + this.#random.below(4)}`, `;byteHardLimit=${40 + this.#random.below(400)}`, ''];
    const text = hard[this.#random.below(hard.length)]!;
    return `count=3,bytes=-1${text === '' ? '' : `=${text}`}`;
  }

  /**
   * Fills a subtree and removes it at once, so that the removal is validated against writes that are
   * not applied yet.
   */
  #fillAndRemove(): ClientRequest[] {
    const top = this.#pick(['/a', '/b', '/c']);
    const make = (path: string, flags: number = CreateMode.persistent): ClientRequest => ({
      name: 'createIfNotExists',
      record: { path, data: this.#value(), acl: this.#random.below(3) === 0 ? this.#acl() : openAcl, flags },
    });
    const removal = { path: top, limit: [2, 3, 100, 0xffffffff][this.#random.below(4)]! };
    const requests = [make(top), make(`${top}/x`)];
    if (this.#random.below(2) === 0) requests.push(make(`${top}/x/deep`));
    if (this.#random.below(2) === 0) requests.push(make(`${top}/y`, CreateMode.ephemeral));
    if (this.#random.below(3) === 0) requests.push({ name: 'tryRemove', record: { path: `${top}/x`, version: this.#version() } });
    const again: MultiOp = { kind: 'createIfNotExists', path: top, data: this.#value(), acl: openAcl, flags: CreateMode.persistent };
    if (this.#random.below(2) === 0) requests.push({ name: 'multi', record: { ops: [{ kind: 'removeRecursive', ...removal }, again] } });
    else requests.push({ name: 'removeRecursive', record: removal });
    return requests;
  }

  /** A write of ClickHouse Keeper, alone or in a multi. */
  #keeperWrite(): ClientRequest {
    switch (this.#random.below(6)) {
      case 0:
      case 1:
        return { name: 'createIfNotExists', record: this.#plainCreate() };
      case 2:
        return { name: 'tryRemove', record: { path: this.#pick(readPaths), version: this.#version() } };
      case 3:
        return { name: 'removeRecursive', record: this.#removal() };
      default: {
        const op = () => (this.#random.below(2) === 0 ? this.#keeperOp() : this.#multiOp());
        return { name: 'multi', record: { ops: [this.#keeperOp(), ...Array.from({ length: this.#random.below(4) }, op)] } };
      }
    }
  }

  #plainCreate() {
    const flags = this.#random.below(3) === 0 ? CreateMode.ephemeral : CreateMode.persistent;
    return { path: this.#pick(paths), data: this.#value(), acl: this.#acl(), flags };
  }

  #removal() {
    return { path: this.#pick(['/a', '/b', '/b/z', '/c', '/k1', '/e1', '/q']), limit: [1, 3, 100, 0xffffffff][this.#random.below(4)]! };
  }

  #keeperOp(): KeeperMultiOp {
    switch (this.#random.below(6)) {
      case 0:
      case 1:
        return { kind: 'createIfNotExists', ...this.#plainCreate() };
      case 2:
        return { kind: 'checkNotExists', path: this.#pick(paths), version: this.#version() };
      case 3:
        return { kind: 'tryRemove', path: this.#pick(paths), version: this.#version() };
      case 4:
        return { kind: 'checkStat', path: this.#pick(comparedPaths), version: -1, stat: this.#partOfStat() };
      default:
        return { kind: 'removeRecursive', ...this.#removal() };
    }
  }

  /** One field counts, so that it often agrees. */
  #partOfStat(): Stat {
    const times = { czxid: -1, mzxid: -1, ctime: -1, mtime: -1, pzxid: -1 };
    const any = { ...times, version: -1, cversion: -1, aversion: -1, ephemeralOwner: -1n, dataLength: -1, numChildren: -1 };
    switch (this.#random.below(5)) {
      case 0:
        return { ...any, version: this.#random.below(2) };
      case 1:
      case 2:
        return { ...any, cversion: this.#random.below(6) };
      case 3:
        return { ...any, ephemeralOwner: 0n };
      default:
        return { ...any, numChildren: this.#random.below(2) };
    }
  }

  #multiOp(): MultiOp {
    switch (this.#random.below(6)) {
      case 5:
        return { kind: 'createTTL', path: this.#pick(sweepablePaths), data: this.#value(), acl: this.#acl(), ...this.#withTtl() };
      case 0:
        return { kind: 'create', ...this.#create() };
      case 1:
        return { kind: 'create2', ...this.#create() };
      case 2:
        return { kind: 'delete', path: this.#pick(paths), version: -1 };
      case 3:
        return { kind: 'check', path: this.#pick(paths), version: this.#version() };
      default:
        return { kind: 'setData', path: this.#pick(paths), data: this.#value(), version: -1 };
    }
  }

  #keeperRead(): ClientRequest {
    const list = { path: this.#pick(listedPaths), watch: this.#random.below(3) === 0, filter: this.#random.below(3) };
    switch (this.#random.below(8)) {
      case 0:
      case 1: {
        const contents = { withStat: this.#random.below(2) === 0, withData: this.#random.below(2) === 0 };
        return { name: 'filteredListWithStatsAndData', record: { ...list, ...contents } };
      }
      case 2:
        return {
          name: 'listRecursive',
          record: { path: this.#pick(['/', '/', '/a', '/b']), limit: this.#random.below(6) === 0 ? 0 : 100_000 },
        };
      case 3:
        return { name: 'checkNotExists', record: { path: this.#pick(paths), version: this.#version() } };
      case 4:
        return { name: 'checkStat', record: { path: this.#pick(comparedPaths), version: this.#version(), stat: this.#partOfStat() } };
      case 5:
        return { name: 'getData', record: { path: this.#pick(Object.values(keeperPath)), watch: false } };
      default:
        return { name: 'filteredList', record: list };
    }
  }

  /** A first page, one after a page that some client has received, or one anywhere. */
  #page(): ClientRequest {
    const name = this.#random.below(2) === 0 ? 'getChildrenPage' : 'getChildrenDataPage';
    const last = this.#random.below(4) > 0 ? this.#lastPage() : undefined;
    const limits = {
      countMax: [0, 1, 2, 3, 100][this.#random.below(5)]!,
      bytesMax: this.#random.below(4) === 0 ? 1 + this.#random.below(300) : 0,
    };
    if (last !== undefined) {
      const { path, afterZxid, afterName } = last;
      return { name, record: { path, watch: false, afterZxid, afterName, untilZxid: -1, ...limits } };
    }
    const path = this.#pick(listedPaths);
    const afterName = this.#random.below(3) === 0 ? this.#pick(['x', 'a', 's-0000000001']) : null;
    const watch = this.#random.below(3) === 0;
    return {
      name,
      record: { path, watch, afterZxid: afterName === null ? -1 : this.#random.below(60), afterName, untilZxid: -1, ...limits },
    };
  }

  #read(): ClientRequest {
    if (this.#options.usesPages && this.#random.below(5) === 0) return this.#page();
    if (this.#options.usesKeeperExtensions && this.#random.below(3) === 0) return this.#keeperRead();
    const path = this.#pick(readPaths);
    const watch = this.#random.below(3) === 0;
    switch (this.#random.below(20)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return { name: 'getData', record: { path, watch } };
      case 4:
      case 5:
      case 6:
      case 7:
        return { name: 'exists', record: { path, watch } };
      case 8:
      case 9:
        return { name: 'getChildren', record: { path, watch } };
      case 10:
      case 11:
        return { name: 'getChildren2', record: { path, watch } };
      case 12:
        return { name: 'sync', record: { path } };
      case 13:
        return { name: 'getACL', record: { path } };
      case 14:
        return { name: 'getEphemerals', record: { prefixPath: this.#random.below(2) === 0 ? null : '/a' } };
      case 15:
        return { name: 'getAllChildrenNumber', record: { path } };
      case 16:
        return { name: 'multiRead', record: { ops: this.#multiReadOps() } };
      case 17:
        return { name: 'whoAmI', record: undefined };
      default:
        return this.#watchOperation();
    }
  }

  #multiReadOps(): MultiOp[] {
    return Array.from({ length: 1 + this.#random.below(3) }, () => ({
      kind: this.#random.below(2) === 0 ? 'getData' : 'getChildren',
      path: this.#pick(readPaths),
      watch: false,
    }));
  }

  #watchOperation(): ClientRequest {
    const path = this.#pick(watchedPaths);
    switch (this.#random.below(5)) {
      case 0:
        return { name: 'addWatch', record: { path, mode: AddWatchMode.persistent } };
      case 1:
        return { name: 'addWatch', record: { path, mode: AddWatchMode.persistentRecursive } };
      case 2: {
        const types = Object.values(WatcherType);
        return { name: 'removeWatches', record: { path, type: types[this.#random.below(types.length)] } };
      }
      case 3:
        return { name: 'checkWatches', record: { path, type: WatcherType.any } };
      default:
        return { name: 'getData', record: { path, watch: true } };
    }
  }

  #acl(): readonly Acl[] {
    if (!this.#options.usesAcls) return openAcl;
    const alice: readonly Acl[] = [{ perms: Perms.all, id: { scheme: 'digest', id: digestId('alice:secret') } }];
    const fromHere: readonly Acl[] = [
      { perms: Perms.read | Perms.create, id: { scheme: 'ip', id: '10.9.0.0/16' } },
      { perms: Perms.delete | Perms.write, id: { scheme: 'digest', id: digestId('bob:pw') } },
    ];
    const inParts: readonly Acl[] = [
      { perms: Perms.read | Perms.write, id: { scheme: 'digest', id: digestId('bob:pw') } },
      { perms: Perms.create | Perms.delete, id: { scheme: 'digest', id: digestId('bob:pw') } },
    ];
    const dave: readonly Acl[] = [{ perms: Perms.all, id: { scheme: 'sasl', id: 'dave' } }];
    const choices = [openAcl, openAcl, openAcl, openAcl, creatorAcl, readOnlyAcl, alice, fromHere, inParts, dave, noAcl];
    return choices[this.#random.below(choices.length)]!;
  }

  #pick(from: readonly string[]): string {
    return from[this.#random.below(from.length)]!;
  }

  #version(): number {
    return this.#random.below(3) === 0 ? this.#random.below(3) : -1;
  }

  /** Unique, except for null. */
  #value(): Buffer | null {
    if (this.#random.below(20) === 0) return null;
    const text = `value ${++this.#values} `;
    return Buffer.from(text.padEnd(this.#random.below(4) === 0 ? this.#random.below(this.#options.dataBytesMax) : 0, '.'));
  }
}
