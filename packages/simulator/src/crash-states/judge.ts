/** What must hold of a folder that a power loss has left in the middle of joining. Shares no rule with those who join. */
import { counterOf, epochOf, formatZxid, type Notification, type Sid, type Zxid } from '@tskeeper/protocol';
import type { FolderHistory } from './folder-history.ts';
import type { Joining } from './joining.ts';
import type { Promises } from './learner-words.ts';

/** What is wrong, or undefined. */
export function complaintOf(found: FolderHistory, promises: Promises, joining: Joining): string | undefined {
  const { acceptedEpoch, currentEpoch, lastZxid } = found;
  const { before, leader, epoch } = joining;
  if (acceptedEpoch < currentEpoch) return `acceptedEpoch is ${acceptedEpoch}, and currentEpoch ${currentEpoch}`;
  if (acceptedEpoch < promises.accepted) return `it had accepted epoch ${promises.accepted}, and acceptedEpoch is ${acceptedEpoch}`;
  if (currentEpoch < promises.epoch) return `it was part of epoch ${promises.epoch}, and currentEpoch is ${currentEpoch}`;
  for (const name of ['acceptedEpoch', 'currentEpoch'] as const) {
    if (found[name] < before.written[name]) return `${name} has gone back from ${before.written[name]} to ${found[name]}`;
  }
  const shared = sharedEnd(before, leader);
  if (lastZxid < shared) return `it ends with ${formatZxid(lastZxid)}, and had ${formatZxid(shared)} before, which its leader has too`;
  const digest = digestAt(found, lastZxid);
  if (digest === digestAt(leader, lastZxid)) {
    if (lastZxid < promises.acked) return `it had acknowledged ${formatZxid(promises.acked)}, and ends with ${formatZxid(lastZxid)}`;
    const beginning = lastBefore(leader, currentEpoch);
    if (lastZxid < beginning)
      return `currentEpoch is ${currentEpoch}, which began with ${formatZxid(beginning)}; it ends with ${formatZxid(lastZxid)}`;
    return undefined;
  }
  if (digest !== digestAt(before, lastZxid))
    return `its state at ${formatZxid(lastZxid)} is neither its leader's nor the one it had before`;
  // Its own tail is still there: it has not come far.
  if (promises.epoch === epoch) return `it had acknowledged epoch ${epoch}, and ends with ${formatZxid(lastZxid)}, which is no part of it`;
  if (promises.acked > lastZxid)
    return `it had acknowledged ${formatZxid(promises.acked)}, and ends with ${formatZxid(lastZxid)} of its own`;
  if (currentEpoch === epoch) return `currentEpoch is ${epoch}, and it ends with ${formatZxid(lastZxid)}, which is no part of that`;
  return undefined;
}

/** A server votes first for itself, with what its folder holds. */
export function complaintOfVote(vote: Notification | undefined, sid: Sid, { lastZxid, currentEpoch }: FolderHistory): string | undefined {
  if (vote === undefined) return 'it has not voted';
  if (vote.leader !== sid) return `its first vote is for ${vote.leader}`;
  if (vote.zxid !== lastZxid) return `it votes with ${formatZxid(vote.zxid)}, and its log ends with ${formatZxid(lastZxid)}`;
  if (vote.peerEpoch !== currentEpoch) return `it votes with epoch ${vote.peerEpoch}, and its currentEpoch is ${currentEpoch}`;
  return undefined;
}

/** The state at a txn; at the beginning of an epoch, which is no txn, that of the txn before. */
function digestAt({ digests }: FolderHistory, zxid: Zxid): string | undefined {
  const known = digests.get(zxid);
  if (known !== undefined || counterOf(zxid) !== 0) return known;
  let last: Zxid = -1;
  for (const each of digests.keys()) if (each < zxid && each > last) last = each;
  return digests.get(last);
}

/** The last txn up to which two histories are one. */
function sharedEnd(one: FolderHistory, other: FolderHistory): Zxid {
  let shared = 0;
  for (const [zxid, digest] of one.digests) if (zxid > shared && digestAt(other, zxid) === digest) shared = zxid;
  return shared;
}

/** The last txn before an epoch. */
function lastBefore({ digests }: FolderHistory, epoch: number): Zxid {
  let last = 0;
  for (const zxid of digests.keys()) if (epochOf(zxid) < epoch && zxid > last) last = zxid;
  return last;
}
