/**
 * What must hold of a folder that a power loss left in the middle of joining. Shares no rule with
 * the code that joins.
 */
import { counterOf, epochOf, formatZxid, type Notification, type Sid, type Zxid } from '@tskeeper/protocol';
import type { FolderHistory } from './folder-history.ts';
import type { JoinRecording } from './join-world.ts';
import type { Commitments } from './learner-commitments.ts';

/** Returns the violation, or undefined. */
export function checkFolder(found: FolderHistory, commitments: Commitments, recording: JoinRecording): string | undefined {
  const { acceptedEpoch, currentEpoch, lastZxid } = found;
  const { before, leader, epoch } = recording;
  if (acceptedEpoch < currentEpoch) return `acceptedEpoch ${acceptedEpoch} is lower than currentEpoch ${currentEpoch}`;
  if (acceptedEpoch < commitments.accepted)
    return `the server had accepted epoch ${commitments.accepted}, but acceptedEpoch is ${acceptedEpoch}`;
  if (currentEpoch < commitments.epoch) return `the server was part of epoch ${commitments.epoch}, but currentEpoch is ${currentEpoch}`;
  for (const name of ['acceptedEpoch', 'currentEpoch'] as const) {
    if (found[name] < before.onDisk[name]) return `${name} went back from ${before.onDisk[name]} to ${found[name]}`;
  }
  const shared = commonPrefixEnd(before, leader);
  if (lastZxid < shared) return `the log ends with ${formatZxid(lastZxid)}, but had ${formatZxid(shared)} before, which the leader has too`;
  const digest = digestAt(found, lastZxid);
  if (digest === digestAt(leader, lastZxid)) {
    if (lastZxid < commitments.acked)
      return `the server had acknowledged ${formatZxid(commitments.acked)}, but the log ends with ${formatZxid(lastZxid)}`;
    const initialZxid = lastTxnBeforeEpoch(leader, currentEpoch);
    if (lastZxid < initialZxid)
      return `currentEpoch is ${currentEpoch}, which began with ${formatZxid(initialZxid)}, but the log ends with ${formatZxid(lastZxid)}`;
    return undefined;
  }
  if (digest !== digestAt(before, lastZxid)) return `the state at ${formatZxid(lastZxid)} is neither the leader's nor that of before`;
  // The server's own tail is still there: the join has not got far.
  if (commitments.epoch === epoch)
    return `the server had acknowledged epoch ${epoch}, but the log ends with ${formatZxid(lastZxid)}, which is not part of it`;
  if (commitments.acked > lastZxid)
    return `the server had acknowledged ${formatZxid(commitments.acked)}, but the log ends with its own ${formatZxid(lastZxid)}`;
  if (currentEpoch === epoch) return `currentEpoch is ${epoch}, but the log ends with ${formatZxid(lastZxid)}, which is not part of it`;
  return undefined;
}

/** A server votes first for itself, with the content of its folder. */
export function checkFirstVote(vote: Notification | undefined, sid: Sid, { lastZxid, currentEpoch }: FolderHistory): string | undefined {
  if (vote === undefined) return 'the server has not voted';
  if (vote.leader !== sid) return `the server's first vote is for ${vote.leader}`;
  if (vote.zxid !== lastZxid) return `the server votes with ${formatZxid(vote.zxid)}, but its log ends with ${formatZxid(lastZxid)}`;
  if (vote.peerEpoch !== currentEpoch) return `the server votes with epoch ${vote.peerEpoch}, but its currentEpoch is ${currentEpoch}`;
  return undefined;
}

/**
 * The state at a zxid; at the beginning of an epoch, which is not a txn, the state of the txn
 * before.
 */
function digestAt({ digests }: FolderHistory, zxid: Zxid): string | undefined {
  const known = digests.get(zxid);
  if (known !== undefined || counterOf(zxid) !== 0) return known;
  let last: Zxid = -1;
  for (const each of digests.keys()) if (each < zxid && each > last) last = each;
  return digests.get(last);
}

/** The last txn up to which two histories are equal. */
function commonPrefixEnd(one: FolderHistory, other: FolderHistory): Zxid {
  let shared = 0;
  for (const [zxid, digest] of one.digests) if (zxid > shared && digestAt(other, zxid) === digest) shared = zxid;
  return shared;
}

/** The last txn before an epoch. */
function lastTxnBeforeEpoch({ digests }: FolderHistory, epoch: number): Zxid {
  let last = 0;
  for (const zxid of digests.keys()) if (epochOf(zxid) < epoch && zxid > last) last = zxid;
  return last;
}
