/**
 * A leader of ZooKeeper sends a fuzzy snapshot. Until all txns that may be in it have been applied,
 * digests of txns belong to other states, and must not cause a notice.
 */
import { OpCode, openAcl, type TxnDigest, type Zxid } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import type { Notice } from '../../src/observer.ts';
import { type DigestComparison, Replica } from '../../src/request/replica.ts';
import { SnapshotLoader } from '../../src/snapshot/snapshot-loader.ts';
import { treeOptions } from '../tree/tree-and-model.ts';
import { drain, load } from './snapshots.ts';

const options = { ...treeOptions, digestEnabled: true };
const loadOptions = { itemBytesMax: 100_000 };

/** Each txn creates a znode. */
function apply(replica: Replica, zxid: Zxid, digest?: TxnDigest): TxnDigest {
  const header = { clientHigh: 0, clientLow: 1, cxid: zxid, zxid, time: zxid, type: OpCode.create };
  const txn = { kind: 'create', path: `/n${zxid}`, data: null, acl: openAcl, ephemeral: false, parentCVersion: zxid } as const;
  replica.apply(header, txn, digest);
  return { version: 2, high: replica.tree.digestHigh, low: replica.tree.digestLow };
}

/**
 * The digests of the txns, and the snapshot of txn 3 that a leader of ZooKeeper sends while it
 * applies up to txn 6.
 */
function history(): { digests: TxnDigest[]; stream: Buffer } {
  const leader = new Replica(options);
  const digests: TxnDigest[] = [{ version: 2, high: 0, low: 0 }];
  for (let zxid = 1; zxid <= 6; zxid++) digests.push(apply(leader, zxid));
  const stream = drain(leader.snapshotStream());
  for (let zxid = 7; zxid <= 9; zxid++) digests.push(apply(leader, zxid));
  return { digests, stream };
}

function learner(stream: Buffer, digestComparison: DigestComparison): { replica: Replica; alarms: Notice[] } {
  const loader = new SnapshotLoader(options, loadOptions);
  loader.feed(stream);
  const replica = new Replica(options, { snapshot: loader.finish(), zxid: 3, digestComparison });
  const alarms: Notice[] = [];
  replica.onNotice = (notice) => void alarms.push(notice);
  return { replica, alarms };
}

describe('a snapshot that contains effects of later txns', () => {
  it('causes no notice while these are applied, and the next wrong digest does', () => {
    const { digests, stream } = history();
    const { replica, alarms } = learner(stream, 'when synced');
    for (let zxid = 4; zxid <= 6; zxid++) apply(replica, zxid, digests[zxid]);
    expect([replica.isExact, alarms]).toEqual([false, []]);
    replica.markExact();
    apply(replica, 7, digests[7]);
    expect(alarms).toEqual([]);
    apply(replica, 8, digests[9]);
    expect(alarms).toEqual([{ kind: 'digestMismatch', zxid: 8 }]);
  });

  it('would cause a notice if it were taken as exact', () => {
    const { digests, stream } = history();
    const { replica, alarms } = learner(stream, 'at once');
    apply(replica, 4, digests[4]);
    expect(alarms).toEqual([{ kind: 'digestMismatch', zxid: 4 }]);
  });

  it('is written to disk without a digest, and compared after a restart once a digest agrees', () => {
    const { digests, stream } = history();
    const { replica: first } = learner(stream, 'when synced');
    const snapshot = load(drain(first.snapshot()));
    expect(snapshot.digest).toBeUndefined();
    const replica = new Replica(options, { snapshot, zxid: 3, digestComparison: 'once one agrees' });
    const alarms: Notice[] = [];
    replica.onNotice = (notice) => void alarms.push(notice);
    for (let zxid = 4; zxid <= 7; zxid++) apply(replica, zxid, digests[zxid]);
    expect([replica.isExact, alarms]).toEqual([true, []]);
    apply(replica, 8, digests[9]);
    expect(alarms).toEqual([{ kind: 'digestMismatch', zxid: 8 }]);
    expect(load(drain(replica.snapshot())).digest).toMatchObject({ zxid: 8 });
  });

  it('has no tree digest remembered for a zxid whose effects it may contain in part, so that hash shows no wrong one', () => {
    const leader = new Replica(options);
    for (let zxid = 1; zxid <= 126; zxid++) apply(leader, zxid);
    // Java names a snapshot by the last txn at the start of writing, and includes the digest at the
    // end.
    for (let zxid = 127; zxid <= 130; zxid++) apply(leader, zxid);
    const snapshot = load(drain(leader.snapshot()));
    expect(snapshot.digest?.zxid).toBe(130);
    const replica = new Replica(options, { snapshot, zxid: 126 });
    for (let zxid = 127; zxid <= 256; zxid++) {
      apply(replica, zxid);
      if (zxid > 130) apply(leader, zxid);
    }
    expect(leader.digests.map(({ zxid }) => zxid)).toEqual([128, 256]);
    expect(replica.digests).toEqual([leader.digests[1]]);
  });

  it('has no tree digest remembered before the leader has sent all txns that may be in it', () => {
    const { stream } = history();
    const { replica } = learner(stream, 'when synced');
    for (let zxid = 4; zxid <= 128; zxid++) apply(replica, zxid);
    expect(replica.digests).toEqual([]);
    replica.markExact();
    for (let zxid = 129; zxid <= 256; zxid++) apply(replica, zxid);
    expect(replica.digests.map(({ zxid }) => zxid)).toEqual([256]);
  });
});
