/**
 * Connections to servers in read-only mode, as far as the model can repeat them. Such a server
 * shows the state of its log. If its last txn is part of the history that the ensemble has kept,
 * its state is what the model has after that txn; otherwise it may have shown what was never
 * committed, and the recording does not say what that was.
 *
 * Nothing changes at such a server, so no event but those of restored watches is due, and requests
 * that it refuses have no effect in the model. The configuration is an exception: the server may
 * have been sent a later one than that of its last txn, and shows it. `readOnlyMode` checks that.
 */
import { counterOf, epochOf, ErrorCode, keeperPath, makeZxid, systemPath, type Zxid } from '@tskeeper/protocol';
import { leaderEpochsOf } from '../record/committed-history.ts';
import type { CnxnRecord, Item, Recording, Request } from '../record/recording.ts';

export function readOnlyStreams(recording: Recording): CnxnRecord[] {
  const isKnown = keptZxids(recording);
  return recording.readOnlyCnxns.flatMap((cnxn) => {
    const zxid = shownZxidOf(cnxn);
    if (zxid === undefined || !isKnown(zxid)) return [];
    const requests = new Map(cnxn.requests.filter(isRead).map((request) => [request, withoutConfigWatches(request)]));
    const items = cnxn.items.flatMap((item): Item[] => {
      if (item.kind === 'event') return item.path === systemPath.config ? [] : [item];
      const request = requests.get(item.request);
      return request === undefined ? [] : [{ ...item, request }];
    });
    return [{ ...cnxn, requests: [...requests.values()], items, shownZxid: zxid }];
  });
}

/** The last txn of the server; undefined if nothing shows it. */
export function shownZxidOf({ items }: CnxnRecord): Zxid | undefined {
  return items.find(({ zxid }) => zxid > 0)?.zxid;
}

/** Whether a zxid is one of the ensemble's history: a txn's, or the beginning of an epoch. */
export function keptZxids(recording: Recording): (zxid: Zxid) => boolean {
  const logged = new Set(recording.log.map(({ logged: { header } }) => header.zxid));
  const begun = new Set(leaderEpochsOf(recording).map(({ epoch }) => makeZxid(epoch, 0)));
  return (zxid) =>
    logged.has(zxid) || zxid === recording.seedState.zxid || (counterOf(zxid) === 0 && begun.has(makeZxid(epochOf(zxid), 0)));
}

function isRead({ name, reply, record }: Request): boolean {
  if (reply?.err === ErrorCode.NotReadOnly || name === 'closeSession') return false;
  // The watches of the configuration count at the server, and the model does not have them.
  if (reply?.err === ErrorCode.ThrottledOp) return false;
  const { path, steps } = (record ?? {}) as { readonly path?: string; readonly steps?: readonly { readonly path?: string }[] };
  // Without a leader a server announces fewer operations of Keeper than the model.
  return path !== keeperPath.featureFlags && !showsConfig(path) && steps?.some((step) => showsConfig(step.path)) !== true;
}

/** Whether the reply, or the list with data, may contain the configuration or its Stat. */
function showsConfig(path: string | undefined): boolean {
  return path === systemPath.config || path === systemPath.zookeeper;
}

/** The same request; watches of the configuration are not restored with the others. */
function withoutConfigWatches(request: Request): Request {
  if (request.name !== 'setWatches' && request.name !== 'setWatches2') return request;
  const lists = Object.entries(request.record as Readonly<Record<string, unknown>>).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.filter((path) => path !== systemPath.config) : value,
  ]);
  return { ...request, record: Object.fromEntries(lists) as Request['record'] };
}
