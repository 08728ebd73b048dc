/**
 * Watches: the requests that add and remove them, and the events of changes. The order of events is
 * that of the changes; a connection that may not read the znode receives none, but its watch is
 * removed nevertheless.
 */
import { AddWatchMode, ErrorCode, EventType, KeeperState, Perms, WatcherType } from '@tskeeper/protocol';
import type { AccessRules, Acl } from './access-rules.ts';
import { Refusal } from './refusal.ts';
import type { Connections } from './connections.ts';
import type { ModelTree } from './model-tree.ts';
import type { Operation } from './operation-types.ts';
import type { Outbox } from './outbox.ts';
import type { WatchMode, WatchTable } from './watch-table.ts';
import { ancestorsOf, parentOf } from './znode-path.ts';

export class Watches {
  readonly #watchesPerCnxnMax: number;
  readonly #tree: ModelTree;
  readonly #connections: Connections;
  readonly #access: AccessRules;
  readonly #outbox: Outbox;

  constructor(watchesPerCnxnMax: number, tree: ModelTree, connections: Connections, access: AccessRules, outbox: Outbox) {
    this.#watchesPerCnxnMax = watchesPerCnxnMax;
    this.#tree = tree;
    this.#connections = connections;
    this.#access = access;
    this.#outbox = outbox;
  }

  // --- requests

  requireRoom(cnxn: number): void {
    const { dataWatches, childWatches } = this.#connections.get(cnxn);
    if (dataWatches.pathCount + childWatches.pathCount >= this.#watchesPerCnxnMax) throw new Refusal(ErrorCode.ThrottledOp);
  }

  add(path: string, mode: number, cnxn: number): void {
    if (mode === AddWatchMode.persistent || mode === AddWatchMode.persistentRecursive) this.requireRoom(cnxn);
    const { dataWatches, childWatches } = this.#connections.get(cnxn);
    if (mode === AddWatchMode.persistent) {
      dataWatches.add(path, 'persistent');
      childWatches.add(path, 'persistent');
    } else if (mode === AddWatchMode.persistentRecursive) {
      dataWatches.add(path, 'recursive');
    } else {
      throw new Refusal(ErrorCode.MarshallingError);
    }
  }

  checkOrRemove({ kind, path, type }: Extract<Operation, { kind: 'checkWatches' | 'removeWatches' }>, cnxn: number): void {
    const { dataWatches, childWatches } = this.#connections.get(cnxn);
    const places: [WatchTable, WatchMode | undefined][] =
      type === WatcherType.children
        ? [[childWatches, 'standard']]
        : type === WatcherType.data
          ? [[dataWatches, 'standard']]
          : type === WatcherType.persistent
            ? [[dataWatches, 'persistent'], [childWatches, 'persistent']] // prettier-ignore
            : type === WatcherType.persistentRecursive
              ? [[dataWatches, 'recursive']]
              : [[dataWatches, undefined], [childWatches, undefined]]; // prettier-ignore
    if (type < WatcherType.children || type > WatcherType.persistentRecursive) throw new Refusal(ErrorCode.MarshallingError);
    const found = places.filter(([table, mode]) => table.has(path, mode));
    if (found.length === 0) throw new Refusal(ErrorCode.NoWatcher);
    if (kind === 'checkWatches') return;
    for (const [table, mode] of found) table.remove(path, mode);
  }

  /**
   * Sends events for what a client missed, except for znodes that it may not read; such a watch is
   * removed nevertheless.
   */
  setAgain(request: Omit<Extract<Operation, { kind: 'setWatches2' }>, 'kind'>, cnxn: number): void {
    const { dataWatches, childWatches, identities } = this.#connections.get(cnxn);
    const send = (type: number, path: string): void => {
      const znode = this.#tree.get(path);
      if (znode !== undefined && !this.#access.isPermitted(znode.acl, Perms.read, identities)) return;
      this.#outbox.send(cnxn, { kind: 'event', zxid: -1, type, state: KeeperState.syncConnected, path });
    };
    for (const path of request.dataWatches) {
      const znode = this.#tree.get(path);
      if (znode === undefined) send(EventType.nodeDeleted, path);
      else if (znode.mzxid > request.relativeZxid) send(EventType.nodeDataChanged, path);
      else dataWatches.add(path, 'standard');
    }
    for (const path of request.existWatches) {
      if (this.#tree.has(path)) send(EventType.nodeCreated, path);
      else dataWatches.add(path, 'standard');
    }
    for (const path of request.childWatches) {
      const znode = this.#tree.get(path);
      if (znode === undefined) send(EventType.nodeDeleted, path);
      else if (znode.pzxid > request.relativeZxid) send(EventType.nodeChildrenChanged, path);
      else childWatches.add(path, 'standard');
    }
    for (const path of request.persistentWatches) {
      dataWatches.add(path, 'persistent');
      childWatches.add(path, 'persistent');
    }
    for (const path of request.persistentRecursiveWatches) dataWatches.add(path, 'recursive');
  }

  // --- events: the tree has changed already

  created(path: string, acl: readonly Acl[]): void {
    this.#fire('data', path, EventType.nodeCreated, acl);
    this.#childrenChanged(parentOf(path));
  }

  dataChanged(path: string, acl: readonly Acl[]): void {
    this.#fire('data', path, EventType.nodeDataChanged, acl);
  }

  deleted(path: string, acl: readonly Acl[]): void {
    const notified = this.#fire('data', path, EventType.nodeDeleted, acl);
    this.#fire('child', path, EventType.nodeDeleted, acl, notified);
    this.#childrenChanged(parentOf(path));
  }

  #childrenChanged(path: string): void {
    this.#fire('child', path === '' ? '/' : path, EventType.nodeChildrenChanged, this.#tree.get(path)!.acl);
  }

  /**
   * Sends the event to all watchers, removes one-shot watches, and returns the connections that had
   * a watch.
   */
  #fire(table: 'data' | 'child', path: string, type: number, acl: readonly Acl[], alreadyNotified?: ReadonlySet<number>): Set<number> {
    const notified = new Set<number>();
    for (const [cnxn, state] of this.#connections.entries()) {
      const watches = table === 'data' ? state.dataWatches : state.childWatches;
      const isWatched = watches.has(path);
      const above = table === 'data' && ancestorsOf(path).some((ancestor) => watches.has(ancestor, 'recursive'));
      if (!isWatched && !above) continue;
      notified.add(cnxn);
      if (isWatched) watches.remove(path, 'standard');
      if (alreadyNotified?.has(cnxn) === true) continue;
      if (!this.#access.isPermitted(acl, Perms.read, state.identities)) continue;
      this.#outbox.send(cnxn, { kind: 'event', zxid: this.#tree.zxid, type, state: KeeperState.syncConnected, path });
    }
    return notified;
  }
}
