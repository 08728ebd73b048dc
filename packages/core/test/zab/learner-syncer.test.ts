/**
 * Several learners that are synchronised at once.
 */
import { makeZxid, Writer } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { silentObserver } from '../../src/observer.ts';
import { Replica } from '../../src/request/replica.ts';
import { CommittedLog, committedLogDefaults } from '../../src/zab/committed-log.ts';
import { LearnerSyncer } from '../../src/zab/learner-syncer.ts';
import type { ChannelId } from '../../src/zab/quorum-links.ts';
import { Notes } from './packets.ts';
import { open, treeOptions } from '../tree/tree-and-model.ts';

const observersMax = 3;

/**
 * A leader's syncer over a tree of 2,000 znodes, and streams whose room the test controls.
 */
class Scene {
  readonly replica = new Replica(treeOptions);
  readonly full = new Set<ChannelId>();
  readonly closed = new Map<ChannelId, string>();
  readonly logsAsked: ChannelId[] = [];
  readonly done: ChannelId[] = [];
  readonly #writers = new Map<ChannelId, Writer>();
  readonly syncer: LearnerSyncer;

  constructor(logBytesMax?: number, inMemory: readonly number[] = [makeZxid(1, 2000)]) {
    const { tree } = this.replica;
    for (let i = 1; i <= 2000; i++) tree.create(`/n${i}`, Buffer.alloc(100), tree.acls.intern(open), 0, 0, i, i, 1, true);
    this.replica.lastZxid = makeZxid(1, 2000);
    const options = {
      tickTimeMs: 100,
      forceSnapshotSync: false,
      snapSyncsMax: observersMax,
      diffSyncsMax: 2,
      snapshotSliceBytes: 64 * 1024,
      logCompleteFromZxid: 0,
      observer: silentObserver,
    };
    const committed = new CommittedLog(committedLogDefaults);
    for (const zxid of inMemory) committed.append(zxid, Buffer.alloc(1));
    const links = new Notes();
    links.packets = (channel) => this.writer(channel);
    links.channelIsFull = (channel) => this.full.has(channel);
    links.closeChannel = (channel, _reason, text) => void this.closed.set(channel, text);
    const storage = new Notes();
    storage.logBytesMax = () => logBytesMax;
    storage.readLog = (channel) => void this.logsAsked.push(channel);
    this.syncer = new LearnerSyncer(options, this.replica, committed, links, storage);
  }

  writer(channel: ChannelId): Writer {
    const writer = this.#writers.get(channel) ?? new Writer(1024);
    this.#writers.set(channel, writer);
    return writer;
  }

  add(channel: ChannelId, who: 'voter' | 'observer' | 'stranger', lastZxid = makeZxid(1, 1)): void {
    const learner = {
      channel,
      isVoter: who === 'voter',
      isMember: who !== 'stranger',
      lastZxid,
      startReplicating: () => this.replica.lastZxid,
    };
    this.syncer.add({ ...learner, historySent: () => this.done.push(channel) }, this.replica.lastZxid);
  }

  /** Performs all work possible now. */
  settle(nowMs: number): void {
    while (this.syncer.hasWork(false)) this.syncer.wake(false, nowMs);
  }

  /** Which of these have a snapshot in progress. */
  snapshotsInProgress(...channels: ChannelId[]): ChannelId[] {
    return channels.filter((channel) => this.writer(channel).offset > 0);
  }

  change(round: number, bytes: number): void {
    for (let i = 1; i <= 2000; i++) this.replica.tree.setData(`/n${i}`, Buffer.alloc(bytes), round, 3000 + i, 1);
  }
}

describe('learners that need a snapshot', () => {
  it('A50: are sent them at the same time, and those that need only txns do not wait', () => {
    const scene = new Scene();
    for (const channel of [1, 2, 3]) scene.add(channel, 'voter');
    for (let times = 0; times < 3; times++) scene.syncer.wake(false, 0);
    expect(scene.snapshotsInProgress(1, 2, 3)).toEqual([1, 2, 3]);
    scene.add(4, 'voter', scene.replica.lastZxid);
    expect(scene.done).toEqual([4]);
    scene.settle(0);
    expect(scene.done).toEqual([4, 1, 2, 3]);
    expect(scene.writer(2).offset).toBe(scene.writer(1).offset);
  });

  it('are sent the tree at the start of each snapshot, whatever changes and however slowly others read theirs', () => {
    const scene = new Scene();
    const contents = (channel: ChannelId): Buffer => Buffer.from(scene.writer(channel).written());
    scene.add(1, 'voter');
    scene.syncer.wake(false, 0);
    scene.full.add(1);
    scene.change(1, 7);
    scene.add(2, 'voter');
    scene.syncer.wake(false, 0);
    scene.full.add(2);
    scene.change(2, 9);
    scene.add(3, 'stranger');
    scene.settle(0);
    scene.full.clear();
    scene.settle(0);
    expect(new Set(scene.done)).toEqual(new Set([1, 2, 3]));
    const dataLengths = (channel: ChannelId): Set<number> => {
      const bytes = contents(channel);
      return new Set(
        Array.from({ length: 2000 }, (_, i) => {
          const path = Buffer.from(`/n${i + 1}`);
          const record = Buffer.concat([Buffer.from([0, 0, 0, path.length]), path]);
          return bytes.readInt32BE(bytes.indexOf(record) + record.length);
        }),
      );
    };
    expect([1, 2, 3].map(dataLengths)).toEqual([new Set([100]), new Set([7]), new Set([9])]);
  });

  it('are served by rank: every voter at once, observers up to the allowed number, and two strangers', () => {
    const scene = new Scene();
    const strangers = [1, 2, 3, 4];
    const observers = [11, 12, 13, 14];
    const voters = [21, 22, 23];
    for (const channel of [...strangers, ...observers, ...voters]) scene.full.add(channel);
    for (const channel of strangers) scene.add(channel, 'stranger');
    scene.settle(0);
    for (const channel of observers) scene.add(channel, 'observer');
    scene.settle(0);
    for (const channel of voters) scene.add(channel, 'voter');
    scene.settle(0);
    expect(scene.snapshotsInProgress(...strangers, ...observers, ...voters)).toEqual([1, 2, 11, 12, 13, 21, 22, 23]);
    // All have room, and each slice goes to a voter while one accepts it.
    const before = [...strangers, ...observers].map((channel) => scene.writer(channel).offset);
    scene.full.clear();
    while (scene.done.length < voters.length) scene.syncer.wake(false, 0);
    expect([...strangers, ...observers].map((channel) => scene.writer(channel).offset)).toEqual(before);
    expect(scene.done).toEqual(voters);
    scene.settle(0);
    expect(scene.done).toEqual([...voters, ...observers, ...strangers]);
  });

  it('are dropped after two ticks without progress if others of their rank wait', () => {
    const scene = new Scene();
    for (const channel of [1, 2, 3, 4, 5]) scene.full.add(channel);
    for (const channel of [1, 2]) scene.add(channel, 'stranger');
    for (const channel of [4, 5]) scene.add(channel, 'voter');
    scene.settle(0);
    scene.full.delete(2);
    scene.syncer.wake(false, 150);
    scene.full.add(2);
    // No other learner waits.
    scene.syncer.wake(false, 201);
    expect(scene.closed.size).toBe(0);
    scene.add(3, 'stranger');
    scene.settle(201);
    expect([...scene.closed]).toEqual([]);
    scene.syncer.wake(false, 202);
    expect([...scene.closed]).toEqual([[1, 'other learners wait for a snapshot, but this one has read nothing of its own for 202 ms']]);
    scene.settle(202);
    expect(scene.snapshotsInProgress(3)).toEqual([3]);
  });

  it('must read 32 KiB per second, unless they vote', () => {
    const scene = new Scene();
    for (const channel of [1, 2, 3]) scene.full.add(channel);
    scene.add(1, 'observer');
    scene.add(2, 'stranger');
    scene.add(3, 'voter');
    scene.settle(0);
    for (let at = 100; at <= 1600; at += 100) {
      if (at % 400 === 0) {
        // 64 KiB each.
        scene.full.delete(1);
        scene.syncer.wake(false, at);
        scene.full.add(1);
      }
      scene.syncer.wake(false, at);
    }
    expect([...scene.closed]).toEqual([
      [2, 'the learner reads its snapshot at 0 bytes per second; a learner that does not vote must reach 32768'],
    ]);
  });

  it('are dropped when the changes kept for them exceed the limit', () => {
    const scene = new Scene();
    scene.add(1, 'observer');
    scene.add(2, 'voter');
    for (const channel of [1, 2]) scene.full.add(channel);
    scene.settle(0);
    // The kept records are the znodes before the change, so those are made large first.
    scene.syncer.remove(1);
    scene.syncer.remove(2);
    scene.change(1, 10_000);
    scene.add(1, 'observer');
    scene.add(2, 'voter');
    scene.settle(0);
    scene.change(2, 1);
    expect(scene.replica.tree.snapshots.preservedBytes).toBeLessThan(30_000_000);
    expect(scene.syncer.hasWork(false)).toBe(true);
    scene.settle(0);
    expect([...scene.closed]).toEqual([
      [1, 'the learner reads its snapshot more slowly than the tree changes: it can reconnect when fewer writes arrive'],
    ]);
    scene.full.clear();
    scene.settle(0);
    expect(scene.done).toEqual([2]);
    expect(scene.replica.tree.snapshots.preservedBytes).toBe(0);
  });

  it('leave no preserved changes and no work when they disconnect', () => {
    const scene = new Scene();
    for (const channel of [1, 2, 3]) {
      scene.full.add(channel);
      scene.add(channel, 'stranger');
    }
    scene.settle(0);
    scene.change(1, 3);
    expect(scene.replica.tree.snapshots.preservedBytes).toBeGreaterThan(0);
    for (const channel of [1, 3]) scene.syncer.remove(channel);
    scene.syncer.stop();
    expect(scene.replica.tree.snapshots.preservedBytes).toBe(0);
    expect(scene.syncer.hasWork(false)).toBe(false);
  });
});

describe('learners for which the log is read', () => {
  it('are limited in number, except voters', () => {
    const scene = new Scene(Infinity);
    for (const channel of [1, 2, 3, 4]) scene.add(channel, 'observer');
    for (const channel of [5, 6, 7]) scene.add(channel, 'voter');
    expect(scene.logsAsked).toEqual([1, 2, 5, 6, 7]);
    scene.syncer.remove(3);
    scene.syncer.logReadRefused(1);
    expect(scene.logsAsked).toEqual([1, 2, 5, 6, 7, 4]);
  });
});

describe('learners that lack txns of the log', () => {
  /**
   * As after a TRUNC that removed all that was in memory, or a start without txns after its
   * snapshot.
   */
  it('A50: are sent them from the log if no txn is in memory', () => {
    const scene = new Scene(Infinity, []);
    const entries = [1998, 1999, 2000].map((counter) => ({ zxid: makeZxid(1, counter), bytes: Buffer.from(`txn ${counter}`) }));
    scene.add(1, 'voter', makeZxid(1, 1998));
    expect(scene.logsAsked).toEqual([1]);
    scene.syncer.logRead(1, entries, true, scene.replica.lastZxid);
    // Once to decide, and once more to send.
    expect(scene.logsAsked).toEqual([1, 1]);
    expect(scene.done).toEqual([]);
    scene.syncer.logRead(1, entries, true, scene.replica.lastZxid);
    expect(scene.done).toEqual([1]);
    const sent = Buffer.from(scene.writer(1).written());
    expect(entries.map(({ bytes }) => sent.includes(bytes))).toEqual([false, true, true]);
  });
});
