/** Several learners that are brought up to date at once. */
import { makeZxid, Writer } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { Replica } from '../../src/request/replica.ts';
import { CommittedLog, committedLogDefaults } from '../../src/zab/committed-log.ts';
import { type LearnerSync, Synchroniser } from '../../src/zab/synchroniser.ts';
import type { ChannelId } from '../../src/zab/zab-out.ts';
import { open, treeOptions } from '../tree/tree-and-model.ts';

describe('learners that need a snapshot', () => {
  it('A50: are sent one after the other, while those that need txns alone do not wait', () => {
    const replica = new Replica(treeOptions);
    const acl = replica.tree.acls.intern(open);
    for (let i = 1; i <= 2000; i++) replica.tree.create(`/n${i}`, Buffer.alloc(100), acl, 0, 0, i, i, 1, true);
    replica.lastZxid = makeZxid(1, 2000);
    const writers = new Map<ChannelId, Writer>();
    const bytesOf = (channel: ChannelId): number => writers.get(channel)?.offset ?? 0;
    const packets = (channel: ChannelId): Writer => {
      const writer = writers.get(channel) ?? new Writer(1024);
      writers.set(channel, writer);
      return writer;
    };
    const synchroniser = new Synchroniser(
      {
        tickTimeMs: 100,
        forceSnapshotSync: false,
        logBytesMax: () => undefined,
        wholeFrom: 0,
        sliceBytes: 64 * 1024,
        stepEnded: () => {},
        begun: () => undefined,
      },
      replica,
      new CommittedLog(committedLogDefaults),
      { packets, channelIsFull: () => false, closeChannel: () => undefined, readLog: () => undefined },
    );
    const done: ChannelId[] = [];
    const learner = (channel: ChannelId, lastZxid: number): LearnerSync => {
      return { channel, isVoter: true, lastZxid, begin: () => replica.lastZxid, done: () => done.push(channel) };
    };
    for (const channel of [1, 2]) synchroniser.add(learner(channel, makeZxid(1, 1)), replica.lastZxid);
    synchroniser.wake(false, 0);
    expect([bytesOf(1) > 0, bytesOf(2)]).toEqual([true, 0]);
    synchroniser.add(learner(3, replica.lastZxid), replica.lastZxid);
    expect(done).toEqual([3]);
    while (!done.includes(1)) {
      expect(bytesOf(2)).toBe(0);
      synchroniser.wake(false, 0);
    }
    while (synchroniser.wants(false)) synchroniser.wake(false, 0);
    expect(done).toEqual([3, 1, 2]);
    expect(bytesOf(2)).toBe(bytesOf(1));
  });
});
