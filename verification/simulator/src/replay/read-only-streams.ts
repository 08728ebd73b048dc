/**
 * Connections to servers in read-only mode, as far as the model can repeat them. Such a server
 * shows the state of its log. If its last txn is part of the history that the ensemble has kept,
 * its state is what the model has after that txn; otherwise it may have shown what was never
 * committed, and the recording does not say what that was.
 *
 * Nothing changes at such a server, so no event but those of restored watches is due, and requests
 * that it refuses have no effect in the model.
 */
import { counterOf, epochOf, ErrorCode, keeperPath, makeZxid, type Stat, systemPath, type Zxid } from '@tskeeper/protocol';
import { leaderEpochsOf } from '../record/committed-history.ts';
import type { CnxnRecord, Item, Recording, Request } from '../record/recording.ts';

export function readOnlyStreams(recording: Recording): CnxnRecord[] {
  const isKnown = keptZxids(recording);
  return recording.readOnlyCnxns.flatMap((cnxn) => {
    const zxid = shownZxidOf(cnxn);
    if (zxid === undefined || !isKnown(zxid)) return [];
    const isTraced = (request: Request) => isRead(request) && !showsOwnConfig(recording, cnxn, request);
    const isTracedItem = (item: Item) => item.kind === 'event' || isTraced(item.request);
    return [{ ...cnxn, requests: cnxn.requests.filter(isTraced), items: cnxn.items.filter(isTracedItem) }];
  });
}

/** The last txn of the server; undefined if nothing shows it. */
export function shownZxidOf({ items }: CnxnRecord): Zxid | undefined {
  return items.find(({ zxid }) => zxid > 0)?.zxid;
}

/** Whether a zxid is one of the ensemble's history: a txn's, or the beginning of an epoch. */
function keptZxids(recording: Recording): (zxid: Zxid) => boolean {
  const logged = new Set(recording.log.map(({ logged: { header } }) => header.zxid));
  const begun = new Set(leaderEpochsOf(recording).map(({ epoch }) => makeZxid(epoch, 0)));
  return (zxid) =>
    logged.has(zxid) || zxid === recording.seedState.zxid || (counterOf(zxid) === 0 && begun.has(makeZxid(epochOf(zxid), 0)));
}

function isRead({ name, reply, record }: Request): boolean {
  // Without a leader a server announces fewer operations of Keeper than the model.
  const path = (record as { readonly path?: string } | undefined)?.path;
  return reply?.err !== ErrorCode.NotReadOnly && name !== 'closeSession' && path !== keeperPath.featureFlags;
}

/**
 * A server that is to join shows the configuration of its own files, which name it beside the others,
 * until a leader sends it another.
 */
function showsOwnConfig({ ensemble, configText = '' }: Recording, { server }: CnxnRecord, { name, record, reply }: Request): boolean {
  const { path } = (record ?? {}) as { readonly path?: string };
  if (path !== systemPath.config || (name !== 'getData' && name !== 'exists') || reply?.err !== ErrorCode.Ok) return false;
  const line = new RegExp(`^server\\.${ensemble.get(server)?.sid}=`, 'm');
  const { data, stat } = reply.body as { readonly data?: Uint8Array; readonly stat: Stat };
  if (data === undefined) return stat.dataLength !== configText.length;
  return !line.test(configText) && line.test(Buffer.from(data).toString('utf8'));
}
