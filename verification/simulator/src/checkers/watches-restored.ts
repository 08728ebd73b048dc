/**
 * What a client library owes its program: a watch that has not fired survives the connection over
 * which it was set.
 */
import {
  AddWatchMode,
  type AddWatchRequest,
  type CheckWatchesRequest,
  ErrorCode,
  EventType,
  type GetDataRequest,
  type SetWatches2Request,
  WatcherType,
} from '@tskeeper/protocol';
import type { Item, Request } from '../record/recording.ts';
import { saslEndMs } from '../record/request-kinds.ts';
import type { Checker } from './checker.ts';

const kinds = ['data', 'exist', 'child', 'persistent', 'recursive'] as const;
type Kind = (typeof kinds)[number];

const kindsOfType: Readonly<Record<number, readonly Kind[]>> = {
  [WatcherType.children]: ['child'],
  [WatcherType.data]: ['data', 'exist'],
  [WatcherType.any]: kinds,
  [WatcherType.persistent]: ['persistent'],
  [WatcherType.persistentRecursive]: ['recursive'],
};

export const watchesRestored: Checker = {
  property: 'P18',
  promise: 'A client that resumes its session restores every watch that has not fired.',
  check({ cnxns, readOnlyCnxns, libraryClients, clientDeliveries }) {
    const violations: string[] = [];
    /** By session: its watches, as `kind path`. */
    const watching = new Map<bigint, Set<string>>();
    const ends = clientDeliveries.filter(({ kind }) => kind === 'closed');
    for (const { client, key, session, openedMs, handshakeMs, handshake, requests, items } of [...cnxns, ...readOnlyCnxns].toSorted(
      (a, b) => a.handshakeMs - b.handshakeMs,
    )) {
      if (!libraryClients.has(client) || session === undefined || session === 0n) continue;
      // A client that was closed during the handshake restores nothing.
      if (ends.some((end) => end.client === client && openedMs < end.atMs && end.atMs <= handshakeMs + 1)) continue;
      // It restores them after its SASL exchange, which the connection may not have outlived.
      if (saslEndMs(requests) === Infinity) continue;
      const watches = watching.get(session) ?? new Set<string>();
      watching.set(session, watches);
      if (handshake?.sessionId !== 0n) {
        const asked = new Set(requests.flatMap(watchesSetAgain));
        const forgotten = [...watches].filter((watch) => !asked.has(watch));
        if (forgotten.length > 0) violations.push(`${client} reconnected at ${key} without restoring ${forgotten.join(', ')}`);
      }
      for (const item of items) updateWatches(watches, item);
    }
    return violations;
  },
};

function watchesSetAgain({ name, record }: Request): string[] {
  if (name !== 'setWatches' && name !== 'setWatches2') return [];
  const { dataWatches, existWatches, childWatches, persistentWatches, persistentRecursiveWatches } = record as Partial<SetWatches2Request>;
  const lists = [dataWatches, existWatches, childWatches, persistentWatches, persistentRecursiveWatches];
  return lists.flatMap((paths, at) => (paths ?? []).map((path) => `${kinds[at]} ${path}`));
}

function updateWatches(watches: Set<string>, item: Item): void {
  if (item.kind === 'event') {
    const { type, path } = item;
    if (type === EventType.nodeChildrenChanged || type === EventType.nodeDeleted) watches.delete(`child ${path}`);
    if (type === EventType.nodeChildrenChanged) return;
    watches.delete(`data ${path}`);
    watches.delete(`exist ${path}`);
    return;
  }
  const { name, record, reply } = item.request;
  const isFound = reply?.err === ErrorCode.Ok;
  const { path, watch } = (record ?? {}) as GetDataRequest;
  switch (name) {
    case 'getData':
      if (watch && isFound) watches.add(`data ${path}`);
      return;
    case 'exists':
      if (watch && (isFound || reply?.err === ErrorCode.NoNode)) watches.add(`${isFound ? 'data' : 'exist'} ${path}`);
      return;
    case 'getChildren':
    case 'getChildren2':
    case 'getChildrenPage':
    case 'getChildrenDataPage':
      if (watch && isFound) watches.add(`child ${path}`);
      return;
    case 'addWatch':
      if (isFound) watches.add(`${(record as AddWatchRequest).mode === AddWatchMode.persistent ? 'persistent' : 'recursive'} ${path}`);
      return;
    case 'removeWatches':
      if (isFound) for (const kind of kindsOfType[(record as CheckWatchesRequest).type] ?? []) watches.delete(`${kind} ${path}`);
      return;
    default:
  }
}
