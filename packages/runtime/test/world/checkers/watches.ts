/**
 * On every connection, exactly the events that its watches call for: each one-shot watch once, for the first change behind the reply that
 * set it; all in the order of the changes, each under the zxid of its own; and each before any reply that could show the change.
 */
import { AddWatchMode, type AddWatchRequest, ErrorCode, EventType, type GetDataRequest, type Zxid } from '@tskeeper/protocol';
import { type Change, parentOf } from '../model.ts';
import type { CnxnRecord, Recording, Request } from '../recording.ts';
import type { Replay } from '../replay.ts';

export function watches(recording: Recording, { changes }: Replay): string[] {
  return recording.cnxns.flatMap((cnxn) => checkCnxn(cnxn, changes));
}

/** A connection's watches. Where it begins in the history does not matter before its first watch. */
class Watches {
  readonly data = new Set<string>();
  readonly child = new Set<string>();
  readonly persistent = new Set<string>();
  readonly recursive = new Set<string>();

  set({ name, record, reply }: Request): void {
    const { path, watch } = (record ?? {}) as GetDataRequest;
    const found = reply!.err === ErrorCode.Ok;
    switch (name) {
      case 'getData':
        if (watch && found) this.data.add(path);
        return;
      case 'exists':
        if (watch) this.data.add(path);
        return;
      case 'getChildren':
      case 'getChildren2':
        if (watch && found) this.child.add(path);
        return;
      case 'addWatch':
        ((record as AddWatchRequest).mode === AddWatchMode.persistent ? this.persistent : this.recursive).add(path);
        return;
      default:
    }
  }

  fire({ path, type, zxid, unordered }: Change, tell: (event: Change) => void): void {
    let isTold = this.data.delete(path) || this.persistent.has(path) || this.#hasAbove(path);
    // Its children are gone with it, so whoever watches those is told the same; but nobody twice.
    if (type === EventType.nodeDeleted && this.child.delete(path)) isTold = true;
    if (isTold) tell({ path, type, zxid, unordered });
    if (type === EventType.nodeDataChanged) return;
    const parent = parentOf(path);
    const isParentTold = this.child.delete(parent) || this.persistent.has(parent);
    if (isParentTold) tell({ path: parent, type: EventType.nodeChildrenChanged, zxid, unordered });
  }

  #hasAbove(path: string): boolean {
    if (this.recursive.size === 0) return false;
    for (let at = path; ; at = parentOf(at)) {
      if (this.recursive.has(at)) return true;
      if (at === '/') return false;
    }
  }
}

function checkCnxn({ client, key, items }: CnxnRecord, changes: readonly Change[]): string[] {
  const faults: string[] = [];
  const active = new Watches();
  const due: Change[] = [];
  let next = 0;
  const advance = (zxid: Zxid) => {
    for (; next < changes.length && changes[next]!.zxid <= zxid; next++) active.fire(changes[next]!, (event) => due.push(event));
  };
  for (const item of items) {
    advance(item.zxid);
    if (item.kind === 'event') {
      const place = due.findIndex(({ path, type, zxid }) => path === item.path && type === item.type && zxid === item.zxid);
      const isInPlace = place === 0 || (place > 0 && due[0]!.unordered && due[0]!.zxid === item.zxid);
      const [expected] = due.splice(isInPlace ? place : 0, 1);
      if (!isInPlace) {
        faults.push(
          `${client} at ${key} was told of ${item.type} ${item.path} at ${item.zxid}, where ${
            expected === undefined ? 'nothing' : `${expected.type} ${expected.path} at ${expected.zxid}`
          } was due`,
        );
        return faults;
      }
      continue;
    }
    const missed = due[0];
    if (missed !== undefined) {
      faults.push(`${client} at ${key} was shown ${item.zxid} before it was told of ${missed.type} ${missed.path} at ${missed.zxid}`);
      return faults;
    }
    active.set(item.request);
  }
  return faults;
}
