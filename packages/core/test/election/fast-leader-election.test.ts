import { describe, expect, it } from 'vitest';
import { formatQuorumConfig, type Notification, noVote, type ServerState, type Sid, type QuorumConfig } from '@tskeeper/protocol';
import { type ElectionConfig, type ElectionOptions, FastLeaderElection } from '../../src/election/fast-leader-election.ts';
import type { Fingerprint } from '../../src/fingerprint.ts';
import type { Now } from '../../src/now.ts';
import { HierarchicalQuorum } from '../../src/quorum/hierarchical-quorum.ts';
import { JointQuorum } from '../../src/quorum/joint-quorum.ts';
import { MajorityQuorum } from '../../src/quorum/majority-quorum.ts';
import { OracleQuorum } from '../../src/quorum/oracle-quorum.ts';
import type { QuorumVerifier } from '../../src/quorum/quorum-verifier.ts';

const configText = 'server.1=h:1:2:participant\nversion=5';

/** One machine, what it says, and a clock that the test moves. */
class Bench {
  readonly out: string[] = [];
  readonly said: { to: Sid; notification: Notification }[] = [];
  readonly machine: FastLeaderElection;
  nowMs = 1000;

  constructor(verifier: QuorumVerifier | readonly Sid[] = [1, 2, 3], options: Partial<ElectionOptions> = {}) {
    const links = {
      notify: (to: Sid, notification: Notification) => {
        this.said.push({ to, notification });
        this.out.push(`${to} <- ${shown(notification)}`);
      },
    };
    const configs = {
      configSeen: (from: Sid, config: QuorumConfig) => this.out.push(`config of ${from}: ${formatQuorumConfig(config)}`),
    };
    this.machine = new FastLeaderElection({ sid: 1, role: 'participant', ...options }, this.config(verifier), links, configs);
  }

  config(verifier: QuorumVerifier | readonly Sid[]): ElectionConfig {
    return { verifier: 'voters' in verifier ? verifier : new MajorityQuorum(verifier), text: configText, version: 5 };
  }

  get now(): Now {
    return { elapsedMs: this.nowMs, wallMs: 0 };
  }

  /** What it has said since it was last asked. */
  take(): string[] {
    return this.out.splice(0);
  }

  start(zxid = 7, epoch = 1): void {
    this.machine.start(zxid, epoch, this.now);
  }

  hear(
    from: Sid,
    state: ServerState,
    [leader, zxid, peerEpoch]: readonly [Sid, number, number],
    round = 1,
    over: Partial<Notification> = {},
  ): void {
    const notification = { state, leader, zxid, peerEpoch, electionEpoch: round, version: 2, config: configText, ...over };
    this.machine.notified(from, notification, this.now);
  }

  /** The clock goes on, and the machine is woken when it asked for it. */
  pass(ms: number): void {
    const until = this.nowMs + ms;
    for (let due = this.machine.deadline(); due !== undefined && due <= until; due = this.machine.deadline()) {
      this.nowMs = Math.max(this.nowMs, due);
      this.machine.wake(this.now);
    }
    this.nowMs = until;
  }

  outcome(): string | undefined {
    const { decided } = this.machine;
    if (decided === undefined) return undefined;
    const { leader, zxid, electionEpoch, peerEpoch } = decided.vote;
    return `${decided.state} ${leader} zxid ${zxid} epoch ${peerEpoch} round ${electionEpoch}`;
  }
}

function shown({ state, leader, zxid, peerEpoch, electionEpoch }: Notification): string {
  return leader === noVote
    ? `${state} nobody round ${electionEpoch}`
    : `${state} ${leader} zxid ${zxid} epoch ${peerEpoch} round ${electionEpoch}`;
}

describe('the start of an election', () => {
  it('C4-2, C4-8: whoever begins to look tells every other voter its round, its sid, its last zxid and its epoch, once', () => {
    const bench = new Bench();
    bench.start(7, 4);
    expect(bench.said).toEqual(
      [2, 3].map((to) => ({
        to,
        notification: { state: 'looking', leader: 1, zxid: 7, peerEpoch: 4, electionEpoch: 1, version: 2, config: configText },
      })),
    );
    expect(bench.outcome()).toBeUndefined();
  });

  it('a round that is the last that there can be, as somebody may say it is, keeps nobody from electing and from being heard', () => {
    const last = Number.MAX_SAFE_INTEGER;
    const bench = new Bench();
    bench.start();
    bench.hear(2, 'looking', [2, 3, 1], last);
    bench.take();
    for (let election = 0; election < 3; election++) {
      bench.start();
      expect(bench.said.at(-1)!.notification.electionEpoch).toBe(last);
    }
    bench.hear(2, 'looking', [1, 7, 1], last);
    bench.hear(3, 'looking', [1, 7, 1], last);
    expect(bench.outcome()).toBe(`leading 1 zxid 7 epoch 1 round ${last}`);
  });

  it('each election has a round of its own', () => {
    const bench = new Bench();
    bench.start();
    bench.start(8, 2);
    expect(bench.machine.electionEpoch).toBe(2);
    expect(bench.take().at(-1)).toBe('3 <- looking 1 zxid 8 epoch 2 round 2');
  });

  it('the voters of the coming configuration are told as well', () => {
    const bench = new Bench(new JointQuorum(new MajorityQuorum([1, 2]), new MajorityQuorum([1, 3, 4])));
    bench.start();
    expect(bench.said.map(({ to }) => to)).toEqual([2, 3, 4]);
  });

  it.each([
    ['an observer', { sid: 9, role: 'observer' }],
    ['a participant that was removed', { sid: 9, role: 'participant' }],
  ] as const)('%s asks the voters and votes for nobody', (_, options) => {
    const bench = new Bench([1, 2, 3], options);
    bench.start();
    expect(bench.take()).toEqual([1, 2, 3].map((to) => `${to} <- looking nobody round 1`));
    expect(bench.said[0]!.notification).toMatchObject({ leader: noVote, zxid: noVote, peerEpoch: noVote });
  });

  it('C4-3: a single voter is a quorum and leads at once', () => {
    const bench = new Bench([1]);
    bench.start(7, 4);
    expect(bench.outcome()).toBe('leading 1 zxid 7 epoch 4 round 1');
    expect(bench.take()).toEqual([]);
    expect(bench.machine.deadline()).toBeUndefined();
  });

  it('before it nothing is said and nothing decided', () => {
    const bench = new Bench();
    bench.hear(2, 'looking', [2, 7, 1]);
    bench.hear(9, 'looking', [2, 7, 1]);
    bench.machine.unreachable(2, bench.now);
    bench.machine.updateVote(4);
    bench.pass(100_000);
    expect(bench.take()).toEqual([]);
    expect(bench.outcome()).toBeUndefined();
  });
});

describe('repetition', () => {
  it('A51: what nobody answers is said again after 200 ms, then after twice as long each time, up to a minute', () => {
    const bench = new Bench();
    bench.start();
    bench.take();
    const waits: number[] = [];
    for (let repeat = 0; repeat < 11; repeat++) {
      const before = bench.nowMs;
      bench.pass(bench.machine.deadline()! - before);
      waits.push(bench.nowMs - before);
      expect(bench.take()).toEqual(['2 <- looking 1 zxid 7 epoch 1 round 1', '3 <- looking 1 zxid 7 epoch 1 round 1']);
    }
    expect(waits).toEqual([200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 51_200, 60_000, 60_000]);
  });

  it('a new election begins with the shortest wait', () => {
    const bench = new Bench();
    bench.start();
    bench.pass(30_000);
    bench.start();
    expect(bench.machine.deadline()! - bench.nowMs).toBe(200);
  });

  it('the times can be set', () => {
    const bench = new Bench([1, 2, 3], { minNotificationIntervalMs: 10, maxNotificationIntervalMs: 30, finalizeWaitMs: 50 });
    bench.start();
    const waits = [1, 2, 3, 4].map(() => {
      const wait = bench.machine.deadline()! - bench.nowMs;
      bench.pass(wait);
      return wait;
    });
    expect(waits).toEqual([10, 20, 30, 30]);
    bench.hear(2, 'looking', [1, 7, 1]);
    expect(bench.machine.deadline()! - bench.nowMs).toBe(50);
  });

  it('a message that changes nothing does not put it off', () => {
    const bench = new Bench();
    bench.start();
    bench.take();
    for (let turn = 0; turn < 4; turn++) {
      bench.pass(50);
      bench.hear(2, 'observing', [3, 9, 1]);
    }
    expect(bench.take()).toEqual(['2 <- looking 1 zxid 7 epoch 1 round 1', '3 <- looking 1 zxid 7 epoch 1 round 1']);
  });
});

describe('votes of those who look', () => {
  it('C4-9: a better vote is taken over, and everyone is told', () => {
    const bench = new Bench();
    bench.start();
    bench.take();
    bench.hear(2, 'looking', [2, 8, 1]);
    expect(bench.take()).toEqual(['2 <- looking 2 zxid 8 epoch 1 round 1', '3 <- looking 2 zxid 8 epoch 1 round 1']);
  });

  it('C4-9: a worse vote is not, and nobody is told', () => {
    const bench = new Bench();
    bench.start();
    bench.take();
    bench.hear(2, 'looking', [2, 6, 1]);
    expect(bench.take()).toEqual([]);
    bench.hear(3, 'looking', [1, 7, 1]);
    bench.pass(200);
    expect(bench.outcome()).toBe('leading 1 zxid 7 epoch 1 round 1');
  });

  it('A51: a later round is taken over with the better of its vote and the own one, and earlier votes are void', () => {
    const bench = new Bench([1, 2, 3, 4, 5]);
    bench.start();
    bench.hear(2, 'looking', [2, 9, 1]);
    bench.hear(3, 'looking', [2, 9, 1]);
    bench.take();
    // Less than ours: we are back to ourselves, not with 2, of which nothing is known in this round.
    bench.hear(4, 'looking', [4, 6, 1], 3);
    expect(bench.machine.electionEpoch).toBe(3);
    expect(bench.take()[0]).toBe('2 <- looking 1 zxid 7 epoch 1 round 3');
    bench.hear(5, 'looking', [5, 8, 1], 4);
    expect(bench.take()[0]).toBe('2 <- looking 5 zxid 8 epoch 1 round 4');
    bench.pass(190);
    expect(bench.outcome()).toBeUndefined();
  });

  it('A51: an earlier round is not counted, and its sender is told the present vote', () => {
    const bench = new Bench();
    bench.start();
    bench.start();
    bench.take();
    bench.hear(2, 'looking', [1, 7, 1], 1);
    expect(bench.take()).toEqual(['2 <- looking 1 zxid 7 epoch 1 round 2']);
    bench.pass(199);
    expect(bench.outcome()).toBeUndefined();
    bench.hear(2, 'following', [3, 9, 1], 1);
    expect(bench.take()).toEqual([]);
  });

  it('a server without data neither chooses nor is chosen', () => {
    const empty = new Bench();
    empty.start(-1, 0);
    empty.take();
    empty.hear(2, 'looking', [2, 8, 1], 4);
    empty.hear(3, 'looking', [2, 8, 1], 4);
    expect(empty.take()).toEqual([]);
    expect(empty.machine.electionEpoch).toBe(1);
    empty.hear(2, 'leading', [2, 8, 1], 4);
    empty.hear(3, 'following', [2, 8, 1], 4);
    expect(empty.outcome()).toBe('following 2 zxid 8 epoch 1 round 4');

    const alone = new Bench([1]);
    alone.start(-1, 0);
    alone.pass(1000);
    expect(alone.outcome()).toBeUndefined();

    const bench = new Bench();
    bench.start(0, 0);
    bench.take();
    bench.hear(2, 'looking', [2, -1, 9], 4);
    bench.hear(3, 'looking', [1, 0, 0]);
    bench.pass(200);
    expect(bench.outcome()).toBe('leading 1 zxid 0 epoch 0 round 1');
  });

  it('ZOOKEEPER-764, 2959: who is no voter is neither counted nor voted for', () => {
    const bench = new Bench();
    bench.start();
    bench.take();
    bench.hear(2, 'looking', [9, 99, 9]);
    bench.hear(9, 'looking', [1, 7, 1]);
    bench.hear(9, 'following', [1, 7, 1]);
    bench.hear(3, 'leading', [9, 99, 9]);
    bench.hear(3, 'looking', [9, 99, 9], 8);
    expect(bench.machine.electionEpoch).toBe(1);
    expect(bench.take()).toEqual(['9 <- looking 1 zxid 7 epoch 1 round 1', '9 <- looking 1 zxid 7 epoch 1 round 1']);
    bench.pass(100);
    expect(bench.outcome()).toBeUndefined();
  });

  it('who observes is not heeded', () => {
    const bench = new Bench();
    bench.start();
    bench.hear(2, 'observing', [1, 7, 1]);
    bench.hear(3, 'observing', [1, 7, 1]);
    bench.pass(190);
    expect(bench.outcome()).toBeUndefined();
  });

  it('a server of weight 0 is not voted for, whatever it has, and takes the better vote itself', () => {
    const verifier = new HierarchicalQuorum({ voters: [1, 2, 3], groups: new Map([[1, [1, 2, 3]]]), weights: new Map([[3, 0]]) });
    const bench = new Bench(verifier);
    bench.start();
    bench.take();
    bench.hear(3, 'looking', [3, 99, 9]);
    expect(bench.take()).toEqual([]);
    const without = new Bench(verifier, { sid: 3 });
    without.start(99, 9);
    without.take();
    without.hear(1, 'looking', [1, 7, 1]);
    expect(without.take()[0]).toBe('1 <- looking 1 zxid 7 epoch 1 round 1');
  });

  it('a vote that was lost on the way is said again to a server that shows it has not heard it', () => {
    const bench = new Bench();
    bench.start();
    bench.pass(5000);
    bench.take();
    bench.hear(2, 'looking', [2, 6, 1]);
    expect(bench.take()).toEqual(['2 <- looking 1 zxid 7 epoch 1 round 1']);
    // It is under way now.
    bench.hear(2, 'looking', [2, 6, 1]);
    expect(bench.take()).toEqual([]);
    // To another process at the same place nothing has been said.
    bench.machine.reachable(2);
    bench.hear(2, 'looking', [2, 6, 1]);
    expect(bench.take()).toEqual(['2 <- looking 1 zxid 7 epoch 1 round 1']);
  });

  it('and so is a vote to a server that had settled when it got it, as soon as that one looks too', () => {
    const bench = new Bench();
    bench.start();
    bench.start();
    bench.take();
    bench.hear(2, 'following', [3, 5, 1]);
    expect(bench.take()).toEqual([]);
    bench.hear(2, 'looking', [2, 6, 1], 2);
    expect(bench.take()).toEqual(['2 <- looking 1 zxid 7 epoch 1 round 2']);
  });

  it('a round that is no exact number is not taken over (ZOOKEEPER-2988: nor does such a message stop the server)', () => {
    const bench = new Bench();
    bench.start();
    bench.take();
    for (const round of [2 ** 53, 2 ** 63, Number.NaN, Number.POSITIVE_INFINITY, 1.5]) bench.hear(2, 'looking', [2, 9, 1], round);
    expect(bench.take()).toEqual([]);
    bench.hear(2, 'looking', [2, 9, 1], 1);
    expect(bench.take()).toHaveLength(2);
  });

  it('what seems to come from itself is not heeded', () => {
    const bench = new Bench();
    bench.start();
    bench.take();
    bench.hear(1, 'looking', [2, 9, 1]);
    bench.hear(2, 'looking', [1, 7, 1]);
    bench.pass(200);
    expect(bench.outcome()).toBe('leading 1 zxid 7 epoch 1 round 1');
  });
});

describe('the settling wait', () => {
  it('C4-11: the vote of a quorum is decided when nothing better came for 200 ms', () => {
    const bench = new Bench();
    bench.start();
    bench.hear(2, 'looking', [2, 8, 1]);
    bench.pass(199);
    expect(bench.outcome()).toBeUndefined();
    bench.pass(1);
    expect(bench.outcome()).toBe('following 2 zxid 8 epoch 1 round 1');
    expect(bench.machine.deadline()).toBeUndefined();
  });

  it('C4-2, C4-11: who is elected leads, an observer observes', () => {
    const leader = new Bench();
    leader.start();
    leader.hear(2, 'looking', [1, 7, 1]);
    leader.pass(200);
    expect(leader.outcome()).toBe('leading 1 zxid 7 epoch 1 round 1');

    const observer = new Bench([1, 2, 3], { sid: 9, role: 'observer' });
    observer.start();
    observer.hear(1, 'looking', [2, 8, 1]);
    observer.pass(1000);
    expect(observer.outcome()).toBeUndefined();
    observer.hear(2, 'looking', [2, 8, 1]);
    observer.pass(200);
    expect(observer.outcome()).toBe('observing 2 zxid 8 epoch 1 round 1');

    const removed = new Bench([1, 2, 3], { sid: 9 });
    removed.start();
    removed.hear(1, 'looking', [2, 8, 1]);
    removed.hear(2, 'looking', [2, 8, 1]);
    removed.pass(200);
    expect(removed.outcome()).toBe('following 2 zxid 8 epoch 1 round 1');
  });

  it('C4-10: a better vote within it is taken over, and the wait is for that one', () => {
    const bench = new Bench();
    bench.start();
    bench.hear(2, 'looking', [2, 8, 1]);
    bench.pass(150);
    bench.take();
    bench.hear(3, 'looking', [3, 8, 1]);
    expect(bench.take()).toHaveLength(2);
    bench.pass(150);
    expect(bench.outcome()).toBeUndefined();
    bench.pass(50);
    expect(bench.outcome()).toBe('following 3 zxid 8 epoch 1 round 1');
  });

  it('a vote that was not known begins it anew, a repeated one does not', () => {
    const bench = new Bench([1, 2, 3, 4, 5]);
    bench.start();
    bench.hear(2, 'looking', [1, 7, 1]);
    bench.hear(3, 'looking', [1, 7, 1]);
    bench.pass(150);
    bench.hear(4, 'looking', [4, 6, 1]);
    bench.pass(150);
    bench.hear(4, 'looking', [4, 6, 1]);
    bench.hear(2, 'looking', [1, 7, 1]);
    expect(bench.outcome()).toBeUndefined();
    bench.pass(50);
    expect(bench.outcome()).toBe('leading 1 zxid 7 epoch 1 round 1');
  });

  it('it ends without a decision when the quorum is gone', () => {
    const bench = new Bench();
    bench.start();
    bench.hear(2, 'looking', [1, 7, 1]);
    // It has failed, come back with nothing, and is in the same round by chance.
    bench.hear(2, 'looking', [2, 0, 0]);
    bench.pass(199);
    expect(bench.outcome()).toBeUndefined();
  });

  it('a quorum of the configuration in force and of the last seen one is needed', () => {
    const bench = new Bench(new JointQuorum(new MajorityQuorum([1, 2, 3]), new MajorityQuorum([1, 4, 5])));
    bench.start();
    bench.hear(2, 'looking', [1, 7, 1]);
    bench.hear(3, 'looking', [1, 7, 1]);
    bench.pass(190);
    expect(bench.outcome()).toBeUndefined();
    bench.hear(4, 'looking', [1, 7, 1]);
    bench.pass(200);
    expect(bench.outcome()).toBe('leading 1 zxid 7 epoch 1 round 1');
  });
});

describe('settling early', () => {
  it('when every voter has announced the same vote', () => {
    const bench = new Bench();
    bench.start();
    bench.hear(2, 'looking', [1, 7, 1]);
    expect(bench.outcome()).toBeUndefined();
    bench.hear(3, 'looking', [1, 7, 1]);
    expect(bench.outcome()).toBe('leading 1 zxid 7 epoch 1 round 1');
  });

  it('when those who have not cannot be reached, and the dial was refused', () => {
    const bench = new Bench();
    bench.machine.unreachable(3, bench.now);
    bench.start();
    bench.hear(2, 'looking', [1, 7, 1]);
    expect(bench.outcome()).toBe('leading 1 zxid 7 epoch 1 round 1');
  });

  it('also if that turns out last', () => {
    const bench = new Bench();
    bench.start();
    bench.hear(2, 'looking', [1, 7, 1]);
    bench.pass(20);
    bench.machine.unreachable(3, bench.now);
    expect(bench.outcome()).toBe('leading 1 zxid 7 epoch 1 round 1');
  });

  it('not if a connection has come about since', () => {
    const bench = new Bench();
    bench.machine.unreachable(3, bench.now);
    bench.machine.reachable(3);
    bench.start();
    bench.hear(2, 'looking', [1, 7, 1]);
    expect(bench.outcome()).toBeUndefined();
    bench.pass(200);
    expect(bench.outcome()).toBe('leading 1 zxid 7 epoch 1 round 1');
  });

  it('not with less than a quorum, however few can be reached', () => {
    const bench = new Bench();
    bench.start();
    bench.machine.unreachable(2, bench.now);
    bench.machine.unreachable(3, bench.now);
    bench.pass(100_000);
    expect(bench.outcome()).toBeUndefined();
  });

  it('not while one that can be reached has announced another vote, or none, or this one in another round', () => {
    const bench = new Bench([1, 2, 3, 4]);
    bench.start();
    bench.start();
    bench.hear(2, 'looking', [1, 7, 1], 2);
    bench.hear(3, 'looking', [1, 7, 1], 2);
    expect(bench.outcome()).toBeUndefined();
    bench.hear(4, 'looking', [1, 7, 1], 1);
    expect(bench.outcome()).toBeUndefined();
    bench.hear(4, 'looking', [4, 5, 1], 2);
    expect(bench.outcome()).toBeUndefined();
    bench.hear(4, 'looking', [1, 7, 1], 2);
    expect(bench.outcome()).toBe('leading 1 zxid 7 epoch 1 round 2');
  });

  it('not for a leader that itself cannot be reached: it may just have failed', () => {
    const bench = new Bench();
    bench.start();
    bench.hear(3, 'looking', [3, 8, 1]);
    bench.machine.unreachable(3, bench.now);
    bench.hear(2, 'looking', [3, 8, 1]);
    expect(bench.outcome()).toBeUndefined();
    bench.pass(200);
    expect(bench.outcome()).toBe('following 3 zxid 8 epoch 1 round 1');
  });

  it('nor for one that has not said so itself, though all others have', () => {
    const bench = new Bench();
    bench.start();
    bench.hear(2, 'looking', [3, 8, 1]);
    expect(bench.outcome()).toBeUndefined();
    bench.hear(3, 'looking', [3, 8, 1]);
    expect(bench.outcome()).toBe('following 3 zxid 8 epoch 1 round 1');
  });

  it('an observer too, when all voters agree', () => {
    const bench = new Bench([1, 2, 3], { sid: 9, role: 'observer' });
    bench.start();
    for (const sid of [1, 2, 3]) bench.hear(sid, 'looking', [2, 8, 1]);
    expect(bench.outcome()).toBe('observing 2 zxid 8 epoch 1 round 1');
  });

  it('not at all if it is switched off', () => {
    const bench = new Bench([1, 2, 3], { earlySettling: false });
    bench.start();
    bench.hear(2, 'looking', [1, 7, 1]);
    bench.hear(3, 'looking', [1, 7, 1]);
    expect(bench.outcome()).toBeUndefined();
    bench.pass(200);
    expect(bench.outcome()).toBe('leading 1 zxid 7 epoch 1 round 1');
  });
});

describe('those who have settled already', () => {
  it('C4-6: who comes late follows the leader that a quorum follows, in that one’s round', () => {
    const bench = new Bench();
    bench.start(99, 9);
    bench.hear(2, 'following', [3, 8, 1], 5);
    expect(bench.outcome()).toBeUndefined();
    bench.hear(3, 'leading', [3, 8, 1], 5);
    expect(bench.outcome()).toBe('following 3 zxid 8 epoch 1 round 5');
    expect(bench.machine.electionEpoch).toBe(5);
  });

  it('C4-6: not a leader that others follow and that has not said it leads', () => {
    const bench = new Bench([1, 2, 3, 4, 5]);
    bench.start();
    for (const sid of [2, 3, 4]) bench.hear(sid, 'following', [5, 8, 1], 5);
    expect(bench.outcome()).toBeUndefined();
    bench.hear(5, 'looking', [5, 8, 1], 1);
    expect(bench.outcome()).toBeUndefined();
    bench.hear(5, 'leading', [5, 8, 1], 5);
    expect(bench.outcome()).toBe('following 5 zxid 8 epoch 1 round 5');
  });

  it('nor one without a quorum', () => {
    const bench = new Bench();
    bench.start();
    bench.hear(3, 'leading', [3, 8, 1], 5);
    bench.pass(10_000);
    expect(bench.outcome()).toBeUndefined();
  });

  it('ZOOKEEPER-1805: zxid and round of their votes may differ, leader and epoch may not', () => {
    const bench = new Bench();
    bench.start();
    bench.hear(2, 'following', [3, 8, 2], 5);
    bench.hear(3, 'leading', [3, 9, 1], 6);
    expect(bench.outcome()).toBeUndefined();
    bench.hear(2, 'following', [3, 8, 1], 5);
    expect(bench.outcome()).toBe('following 3 zxid 8 epoch 1 round 5');
  });

  it('ZOOKEEPER-1732: beside a server that does not raise the epoch of its vote the leader is enough', () => {
    const bench = new Bench();
    bench.start();
    bench.hear(2, 'following', [3, 8, 1], 5, { version: 0, config: undefined });
    bench.hear(3, 'leading', [3, 8, 2], 5);
    expect(bench.outcome()).toBe('following 3 zxid 8 epoch 2 round 5');
  });

  it('of the same round they are counted with those who still look, if the votes are the same', () => {
    const bench = new Bench();
    bench.start();
    bench.hear(3, 'looking', [3, 8, 1]);
    bench.hear(3, 'leading', [3, 8, 1]);
    expect(bench.outcome()).toBe('following 3 zxid 8 epoch 1 round 1');
  });

  it('of the same round it does not matter who has raised the epoch of its vote already', () => {
    const bench = new Bench([1, 2, 3, 4, 5]);
    bench.start();
    bench.hear(2, 'following', [5, 8, 1]);
    bench.hear(3, 'following', [5, 8, 2]);
    bench.hear(5, 'leading', [5, 8, 2]);
    expect(bench.outcome()).toBe('following 5 zxid 8 epoch 2 round 1');
  });

  it('one who follows already has announced its vote too', () => {
    const bench = new Bench();
    bench.start();
    bench.hear(2, 'following', [1, 7, 1]);
    expect(bench.outcome()).toBe('leading 1 zxid 7 epoch 1 round 1');
  });

  it('a leader that failed and came back before anyone noticed leads on, in the same round only', () => {
    const bench = new Bench();
    bench.start(9, 2);
    bench.hear(2, 'following', [1, 7, 2], 5);
    bench.hear(3, 'following', [1, 7, 2], 5);
    expect(bench.outcome()).toBeUndefined();
    const same = new Bench();
    same.start(9, 2);
    same.hear(2, 'following', [1, 7, 2], 1);
    same.hear(3, 'following', [1, 7, 2], 1);
    expect(same.outcome()).toBe('leading 1 zxid 7 epoch 2 round 1');
  });

  it.each([
    ['nothing', -1, 0],
    ['an older log', 6, 2],
    ['an older epoch', 9, 1],
  ])('but not if it came back with %s', (_, zxid, epoch) => {
    const bench = new Bench();
    bench.start(zxid, epoch);
    bench.hear(2, 'following', [1, 7, 2], 1);
    bench.hear(3, 'following', [1, 7, 2], 1);
    bench.pass(190);
    expect(bench.outcome()).toBeUndefined();
  });

  it('nor does what they said in an earlier round count in a later one', () => {
    const bench = new Bench([1, 2, 3, 4, 5]);
    bench.start();
    bench.hear(2, 'following', [5, 8, 1]);
    bench.hear(3, 'following', [5, 8, 1]);
    bench.hear(4, 'looking', [4, 6, 1], 3);
    bench.hear(5, 'leading', [5, 8, 2], 3);
    expect(bench.outcome()).toBeUndefined();
    bench.hear(2, 'following', [5, 8, 2], 3);
    bench.hear(3, 'following', [5, 8, 2], 3);
    expect(bench.outcome()).toBe('following 5 zxid 8 epoch 2 round 3');
  });

  it('what they said in an earlier election is forgotten with the next', () => {
    const bench = new Bench();
    bench.start();
    bench.hear(3, 'leading', [3, 8, 1], 5);
    bench.start();
    bench.hear(2, 'following', [3, 8, 1], 5);
    expect(bench.outcome()).toBeUndefined();
  });
});

describe('an oracle', () => {
  it('A57: of two voters the one that may go on alone leads after the wait', () => {
    const oracle = new OracleQuorum([1, 2]);
    const bench = new Bench(oracle);
    bench.start();
    bench.pass(5000);
    expect(bench.outcome()).toBeUndefined();
    oracle.oracleSaid(true);
    bench.machine.reconfigure(bench.config(oracle), bench.now);
    bench.pass(199);
    expect(bench.outcome()).toBeUndefined();
    bench.pass(1);
    expect(bench.outcome()).toBe('leading 1 zxid 7 epoch 1 round 1');
  });

  it('A57: also if nobody tells the machine: the next repetition asks', () => {
    const oracle = new OracleQuorum([1, 2]);
    const bench = new Bench(oracle);
    bench.start();
    bench.pass(100);
    oracle.oracleSaid(true);
    bench.pass(100 + 200);
    expect(bench.outcome()).toBe('leading 1 zxid 7 epoch 1 round 1');
  });

  it('A57: the one that may not follows whoever leads', () => {
    const bench = new Bench(new OracleQuorum([1, 2]));
    bench.start(99, 9);
    bench.hear(2, 'following', [2, 7, 1], 4);
    expect(bench.outcome()).toBeUndefined();
    bench.hear(2, 'leading', [2, 7, 1], 4);
    expect(bench.outcome()).toBe('following 2 zxid 7 epoch 1 round 4');
  });
});

describe('what a server says while it does not look', () => {
  function leading(): Bench {
    const bench = new Bench();
    bench.start();
    bench.hear(2, 'looking', [1, 7, 1]);
    bench.hear(3, 'looking', [1, 7, 1]);
    bench.take();
    return bench;
  }

  it('C4-6: it tells who looks how its election ended', () => {
    const bench = leading();
    bench.hear(3, 'looking', [3, 99, 9], 7);
    expect(bench.take()).toEqual(['3 <- leading 1 zxid 7 epoch 1 round 1']);
    expect(bench.outcome()).toBe('leading 1 zxid 7 epoch 1 round 1');
  });

  it('its vote is of the new epoch when it is in step', () => {
    const bench = leading();
    bench.machine.updateVote(2);
    bench.hear(3, 'looking', [3, 99, 9], 7);
    expect(bench.take()).toEqual(['3 <- leading 1 zxid 7 epoch 2 round 1']);
    expect(bench.outcome()).toBe('leading 1 zxid 7 epoch 2 round 1');
  });

  it('it says nothing to who has settled too, and repeats nothing', () => {
    const bench = leading();
    bench.hear(2, 'following', [1, 7, 1]);
    bench.hear(3, 'leading', [3, 9, 4], 9);
    bench.pass(100_000);
    expect(bench.take()).toEqual([]);
  });

  it('an observer is told too, with the round of the server', () => {
    const bench = leading();
    bench.hear(9, 'looking', [noVote, noVote, noVote], 7);
    expect(bench.take()).toEqual(['9 <- leading 1 zxid 7 epoch 1 round 1']);
    const looking = new Bench();
    looking.start();
    looking.start();
    looking.take();
    looking.hear(9, 'looking', [noVote, noVote, noVote], 7);
    expect(looking.take()).toEqual(['9 <- looking 1 zxid 7 epoch 1 round 2']);
    expect(looking.machine.electionEpoch).toBe(2);
  });

  it('a leader that was named by a reconfiguration is told in the same way', () => {
    const bench = leading();
    const vote = { leader: 3, zxid: 12, electionEpoch: 2, peerEpoch: 4 };
    bench.machine.settle({ state: 'following', vote }, bench.now);
    bench.hear(2, 'looking', [2, 9, 1], 7);
    bench.hear(9, 'looking', [noVote, noVote, noVote], 7);
    // A voter is told the round of the vote, an observer that of the server.
    expect(bench.take()).toEqual(['2 <- following 3 zxid 12 epoch 4 round 2', '9 <- following 3 zxid 12 epoch 4 round 1']);
    expect(bench.machine.deadline()).toBeUndefined();
  });

  it('the same question is answered again after a while, another one at once', () => {
    const bench = leading();
    const ask = (round: number): number => {
      bench.hear(3, 'looking', [3, 99, 9], round);
      return bench.take().length;
    };
    expect([ask(7), ask(7), ask(8)]).toEqual([1, 0, 1]);
    bench.pass(99);
    expect(ask(8)).toBe(0);
    bench.pass(1);
    expect(ask(8)).toBe(1);
    // Nor is another answer held back.
    bench.machine.updateVote(2);
    expect(ask(8)).toBe(1);
    // A new connection may lead to a process that has heard nothing.
    bench.machine.reachable(3);
    expect(ask(8)).toBe(1);
  });

  it('two servers that answer each other come to an end', () => {
    // An observer two rounds ahead asks a voter that looks: each takes the other for one that must be told.
    const machines = new Map<Sid, FastLeaderElection>();
    const wire: { from: Sid; to: Sid; notification: Notification }[] = [];
    const now = { elapsedMs: 0, wallMs: 0 };
    for (const [sid, role] of [
      [1, 'participant'],
      [9, 'observer'],
    ] as const) {
      const config = { verifier: new MajorityQuorum([1, 2, 3]), text: configText, version: 5 };
      const out = {
        notify: (to: Sid, notification: Notification) => wire.push({ from: sid, to, notification }),
        configSeen: () => undefined,
      };
      machines.set(sid, new FastLeaderElection({ sid, role }, config, out, out));
    }
    machines.get(1)!.start(7, 1, now);
    for (let round = 0; round < 3; round++) machines.get(9)!.start(0, 0, now);
    let carried = 0;
    for (let next = wire.shift(); next !== undefined && carried < 1000; next = wire.shift()) {
      carried++;
      machines.get(next.to)?.notified(next.from, next.notification, now);
    }
    expect(carried).toBeLessThan(30);
  });
});

describe('a configuration of a higher version', () => {
  const newer = { config: 'server.1=h:1:2:participant\nversion=6' };

  it('is told to the owner, before the vote that came with it is judged', () => {
    const bench = new Bench([1, 2, 3], { reconfigEnabled: true });
    bench.start();
    bench.take();
    bench.hear(2, 'looking', [2, 8, 1], 1, newer);
    expect(bench.take()).toEqual([
      `config of 2: ${newer.config}`,
      '2 <- looking 2 zxid 8 epoch 1 round 1',
      '3 <- looking 2 zxid 8 epoch 1 round 1',
    ]);
  });

  it.each<[string, Partial<Notification>, Partial<ElectionOptions>]>([
    ['of the same version', {}, { reconfigEnabled: true }],
    ['of a lower version', { config: 'version=4' }, { reconfigEnabled: true }],
    ['without a version', { config: 'server.1=h:1:2:participant' }, { reconfigEnabled: true }],
    ['that cannot be read', { config: 'server.1=h\nversion=6' }, { reconfigEnabled: true }],
    ['that is not there', { config: undefined, version: 1 }, { reconfigEnabled: true }],
    ['without reconfigEnabled', newer, {}],
  ])('one %s is not', (_, over, options) => {
    const bench = new Bench([1, 2, 3], options);
    bench.start();
    bench.take();
    bench.hear(2, 'looking', [2, 6, 1], 1, over);
    expect(bench.take()).toEqual([]);
  });

  it('is not told to a server that has settled: its leader tells it', () => {
    const bench = new Bench([1, 2], { reconfigEnabled: true });
    bench.start();
    bench.hear(2, 'looking', [1, 7, 1]);
    bench.take();
    bench.hear(2, 'looking', [2, 6, 1], 2, newer);
    expect(bench.take()).toEqual(['2 <- leading 1 zxid 7 epoch 1 round 1']);
  });

  it('holds at once for a running election, and its text goes out with what is said next', () => {
    const bench = new Bench();
    bench.start();
    bench.hear(2, 'looking', [2, 6, 1]);
    bench.machine.reconfigure({ verifier: new MajorityQuorum([1]), text: newer.config, version: 6 }, bench.now);
    expect(bench.outcome()).toBe('leading 1 zxid 7 epoch 1 round 1');
    bench.hear(2, 'looking', [2, 6, 1], 3);
    expect(bench.said.at(-1)!.notification.config).toBe(newer.config);
  });
});

function fingerprintOf(bench: Bench): string {
  const words: (number | string)[] = [];
  const to: Fingerprint = { number: (value) => words.push(value), text: (value) => words.push(value) };
  bench.machine.fingerprint(to, bench.now);
  return words.join(' ');
}

describe('the fingerprint', () => {
  it('is the same for machines that will do the same, whenever and however they came there', () => {
    const [one, other] = [new Bench([1, 2, 3, 4, 5]), new Bench([1, 2, 3, 4, 5])];
    one.start();
    one.pass(50);
    one.hear(2, 'looking', [2, 6, 1]);
    one.hear(3, 'looking', [3, 6, 1]);
    other.nowMs = 77_000;
    other.start();
    other.pass(50);
    other.hear(3, 'looking', [3, 6, 1]);
    other.hear(2, 'looking', [2, 6, 1]);
    expect(fingerprintOf(one)).toBe(fingerprintOf(other));
  });

  it('is another one after each input that matters', () => {
    const bench = new Bench([1, 2, 3, 4, 5]);
    const steps: (() => void)[] = [
      () => bench.start(),
      () => bench.pass(10),
      () => bench.hear(2, 'looking', [1, 7, 1]),
      () => bench.hear(3, 'looking', [3, 6, 1]),
      () => bench.hear(4, 'following', [5, 6, 1], 9),
      () => bench.machine.unreachable(5, bench.now),
      () => bench.machine.reachable(5),
      () => bench.pass(400),
      () => bench.hear(3, 'looking', [1, 7, 1]),
      () => bench.pass(100),
      () => bench.pass(100),
      () => bench.machine.updateVote(6),
      () => bench.hear(3, 'looking', [3, 6, 1], 4),
      () => bench.hear(3, 'looking', [3, 6, 1], 5),
      () => bench.machine.reconfigure({ ...bench.config([1, 2]), version: 6 }, bench.now),
      () => bench.start(),
      () => bench.start(8, 1),
    ];
    const seen = [fingerprintOf(bench)];
    for (const step of steps) {
      step();
      seen.push(fingerprintOf(bench));
    }
    expect(new Set(seen).size).toBe(seen.length);
  });
});

describe('a server that is shunned', () => {
  it('is not voted for, though its vote is the best; when its time is over the best vote counts again', () => {
    const bench = new Bench([1, 2, 3]);
    bench.machine.shun(3, bench.nowMs + 500);
    bench.start();
    bench.take();
    bench.hear(3, 'looking', [3, 9, 1]);
    bench.hear(2, 'looking', [3, 9, 1]);
    expect(bench.take()).toEqual([]);
    bench.pass(499);
    expect(bench.take().filter((line) => !line.includes('looking 1 '))).toEqual([]);
    bench.pass(1);
    expect(bench.take()).toEqual(['2 <- looking 3 zxid 9 epoch 1 round 1', '3 <- looking 3 zxid 9 epoch 1 round 1']);
    expect(bench.outcome()).toBe('following 3 zxid 9 epoch 1 round 1');
  });

  it('is not voted for in a later round either', () => {
    const bench = new Bench([1, 2, 3]);
    bench.machine.shun(3, bench.nowMs + 500);
    bench.start();
    bench.take();
    bench.hear(3, 'looking', [3, 9, 1], 4);
    expect(bench.take()).toEqual(['2 <- looking 1 zxid 7 epoch 1 round 4', '3 <- looking 1 zxid 7 epoch 1 round 4']);
  });

  it('is followed all the same when others have settled on it, so that nobody is kept from an ensemble that works', () => {
    const bench = new Bench([1, 2, 3]);
    bench.machine.shun(3, bench.nowMs + 500);
    bench.start();
    bench.hear(2, 'following', [3, 9, 1]);
    bench.hear(3, 'leading', [3, 9, 1]);
    expect(bench.outcome()).toContain('following 3');
  });

  it('says nothing of itself if it is this one, and helps others', () => {
    const bench = new Bench([1, 2, 3]);
    bench.machine.shun(1, bench.nowMs + 500);
    bench.start();
    bench.hear(2, 'looking', [2, 5, 1]);
    bench.pass(450);
    expect(bench.take()).toEqual([]);
    bench.hear(3, 'looking', [3, 9, 1]);
    expect(bench.take()).toEqual(['2 <- looking 3 zxid 9 epoch 1 round 1', '3 <- looking 3 zxid 9 epoch 1 round 1']);
  });

  it('speaks of itself again when its time is over', () => {
    const bench = new Bench([1, 2, 3]);
    bench.machine.shun(1, bench.nowMs + 500);
    bench.start();
    bench.pass(500);
    expect(bench.take()).toEqual(['2 <- looking 1 zxid 7 epoch 1 round 1', '3 <- looking 1 zxid 7 epoch 1 round 1']);
  });

  it('announces its vote again, if it is this one, when a quorum votes for it in an earlier round', () => {
    const bench = new Bench([1, 2, 3, 4, 5]);
    bench.start();
    bench.machine.shun(1, bench.nowMs + 5000);
    bench.start();
    bench.take();
    bench.hear(2, 'looking', [1, 7, 1], 1);
    bench.hear(3, 'looking', [1, 7, 1], 1);
    expect(bench.take().filter((line) => line.startsWith('4'))).toEqual(['4 <- looking 1 zxid 7 epoch 1 round 2']);
    bench.hear(2, 'looking', [1, 7, 1], 2);
    bench.hear(3, 'looking', [1, 7, 1], 2);
    bench.pass(200);
    expect(bench.outcome()).toBe('leading 1 zxid 7 epoch 1 round 2');
  });

  it('stays silent, if it is this one, while fewer vote for it, or did so before its last election', () => {
    const bench = new Bench([1, 2, 3, 4, 5]);
    bench.start();
    bench.machine.shun(1, bench.nowMs + 5000);
    bench.start();
    bench.take();
    bench.hear(2, 'looking', [1, 7, 1], 1);
    bench.hear(2, 'looking', [2, 7, 1], 1);
    bench.hear(3, 'looking', [1, 7, 1], 1);
    bench.start();
    bench.hear(4, 'looking', [1, 7, 1], 2);
    expect(bench.take()).toEqual([]);
  });

  it('is forgiven when somebody leads', () => {
    const bench = new Bench([1, 2, 3]);
    bench.machine.shun(3, bench.nowMs + 500);
    bench.machine.forgive();
    bench.start();
    bench.hear(3, 'looking', [3, 9, 1]);
    expect(bench.take().at(-1)).toBe('3 <- looking 3 zxid 9 epoch 1 round 1');
  });
});

describe('a server that did not answer a dial', () => {
  function unanswering(): Bench {
    const bench = new Bench([1, 2, 3]);
    bench.machine.unanswering(3, bench.nowMs + 5000);
    bench.start();
    bench.take();
    bench.hear(3, 'looking', [3, 9, 1]);
    return bench;
  }

  it('is not voted for, though it is heard, before it is connected anew', () => {
    const bench = unanswering();
    bench.pass(4000);
    expect(bench.take().filter((line) => !line.includes('looking 1 '))).toEqual([]);
    bench.machine.reachable(3);
    bench.hear(3, 'looking', [3, 9, 1]);
    expect(bench.take()).toEqual(['2 <- looking 3 zxid 9 epoch 1 round 1', '3 <- looking 3 zxid 9 epoch 1 round 1']);
  });

  it('is voted for after a long time all the same, and when somebody leads', () => {
    const bench = unanswering();
    bench.pass(5000);
    expect(bench.take().at(-1)).toBe('3 <- looking 3 zxid 9 epoch 1 round 1');
    const forgiving = unanswering();
    forgiving.machine.forgive();
    forgiving.hear(3, 'looking', [3, 9, 1]);
    expect(forgiving.take().at(-1)).toBe('3 <- looking 3 zxid 9 epoch 1 round 1');
  });

  it('is followed when others have settled on it', () => {
    const bench = unanswering();
    bench.hear(2, 'following', [3, 9, 1]);
    bench.hear(3, 'leading', [3, 9, 1]);
    expect(bench.outcome()).toContain('following 3');
  });
});

describe('a vote that too many of a quorum do not share, and that is better than theirs', () => {
  /** 5 is the best, and is heard by this server alone; 4, 3 and 2 have to do without. */
  function alone(): Bench {
    const bench = new Bench([1, 2, 3, 4, 5]);
    bench.start();
    bench.hear(5, 'looking', [5, 9, 1]);
    for (const sid of [2, 3, 4]) bench.hear(sid, 'looking', [4, 8, 1]);
    bench.take();
    return bench;
  }

  it('is given up after three times the wait, for the next best', () => {
    const bench = alone();
    bench.pass(599);
    expect(bench.take().filter((line) => !line.includes('looking 5 '))).toEqual([]);
    bench.pass(1);
    expect(bench.take().at(-1)).toBe('5 <- looking 4 zxid 8 epoch 1 round 1');
    bench.pass(200);
    expect(bench.outcome()).toBe('following 4 zxid 8 epoch 1 round 1');
  });

  it('is given up for the next best that has as much, when it is the own one', () => {
    const bench = new Bench([1, 2, 3, 4, 5], { sid: 5 });
    bench.start(8);
    for (const sid of [2, 3]) bench.hear(sid, 'looking', [3, 8, 1]);
    bench.hear(1, 'looking', [1, 8, 1]);
    bench.take();
    bench.pass(600);
    expect(bench.take().at(-1)).toBe('4 <- looking 3 zxid 8 epoch 1 round 1');
    bench.pass(200);
    expect(bench.outcome()).toBe('following 3 zxid 8 epoch 1 round 1');
  });

  it('is not given up for one that has less, when it is the own one: such a leader could not have this server with it', () => {
    const bench = new Bench([1, 2, 3, 4, 5], { sid: 5 });
    bench.start(8);
    for (const sid of [1, 2, 3]) bench.hear(sid, 'looking', [3, 7, 1]);
    bench.pass(600);
    bench.take();
    bench.pass(300);
    expect([bench.take(), bench.outcome()]).toEqual([[], undefined]);
  });

  it('is kept while they may still take it over: when one of them has, the wait is over', () => {
    const bench = alone();
    bench.pass(500);
    for (const sid of [2, 3]) bench.hear(sid, 'looking', [5, 9, 1]);
    bench.pass(200);
    expect(bench.outcome()).toBe('following 5 zxid 9 epoch 1 round 1');
  });

  it('is kept when those who do not share it vote for more: they have to come down', () => {
    const bench = new Bench([1, 2, 3, 4, 5]);
    bench.machine.shun(5, bench.nowMs + 60_000);
    bench.start();
    for (const sid of [2, 3]) bench.hear(sid, 'looking', [4, 8, 1]);
    for (const sid of [4, 5]) bench.hear(sid, 'looking', [5, 9, 1]);
    bench.take();
    bench.pass(10_000);
    expect(bench.take().filter((line) => !line.includes('looking 4 '))).toEqual([]);
  });

  it('is kept when no quorum has been heard: there is nothing to be had by giving it up', () => {
    const bench = new Bench([1, 2, 3, 4, 5]);
    bench.start();
    bench.hear(2, 'looking', [2, 5, 1]);
    bench.take();
    bench.pass(10_000);
    expect(bench.take().filter((line) => !line.includes('looking 1 '))).toEqual([]);
  });
});

describe('a server that has settled', () => {
  function leading(): Bench {
    const bench = new Bench([1, 2, 3, 4, 5]);
    bench.start(9);
    for (const sid of [2, 3]) bench.hear(sid, 'looking', [1, 9, 1]);
    bench.pass(300);
    expect(bench.outcome()).toContain('leading 1');
    return bench;
  }
  const lost = ({ machine }: Bench) => [2, 3, 4, 5].filter((sid) => machine.lost.has(sid));

  it('knows who has gone on without its leader: in a later round, or with another leader', () => {
    const bench = leading();
    bench.hear(2, 'looking', [2, 7, 1], 2);
    bench.hear(3, 'following', [5, 7, 1], 1);
    bench.hear(4, 'looking', [4, 7, 1], 1);
    bench.hear(5, 'looking', [5, 7, 1], 1);
    expect(lost(bench)).toEqual([2, 3]);
    bench.machine.unreachable(5, bench.now);
    expect(lost(bench)).toEqual([2, 3, 5]);
    bench.machine.reachable(5);
    expect(lost(bench)).toEqual([2, 3]);
  });

  it('does not count on those who have said nothing since it began to look, whatever they said before', () => {
    const bench = new Bench([1, 2, 3, 4, 5]);
    bench.start(9);
    for (const sid of [2, 3, 4]) bench.hear(sid, 'looking', [1, 9, 1]);
    bench.pass(300);
    bench.start(9);
    for (const sid of [2, 3]) bench.hear(sid, 'looking', [1, 9, 1], 2);
    bench.pass(300);
    expect(bench.outcome()).toContain('leading 1');
    expect(lost(bench)).toEqual([4, 5]);
  });

  it('knows that its leader leads no more when that looks in a later round, or when nobody listens where it was', () => {
    for (const isKilled of [false, true]) {
      const bench = new Bench([1, 2, 3]);
      bench.start(9);
      for (const sid of [2, 3]) bench.hear(sid, 'looking', [3, 10, 1]);
      bench.pass(300);
      expect([bench.outcome()?.split(' ')[0], bench.machine.isLeaderGone]).toEqual(['following', false]);
      bench.hear(3, 'looking', [3, 10, 1], 1);
      bench.hear(2, 'looking', [3, 10, 1], 2);
      expect(bench.machine.isLeaderGone).toBe(false);
      if (isKilled) bench.machine.unreachable(3, bench.now);
      else bench.hear(3, 'looking', [3, 10, 1], 2);
      expect(bench.machine.isLeaderGone).toBe(true);
    }
  });

  it('forgets that when they come back, and with the next election', () => {
    const bench = leading();
    for (const sid of [2, 3]) bench.hear(sid, 'looking', [sid, 7, 1], 2);
    bench.hear(2, 'following', [1, 9, 1], 1);
    expect(lost(bench)).toEqual([3, 4, 5]);
    bench.start(9);
    for (const sid of [3, 4, 5]) bench.hear(sid, 'looking', [1, 9, 1], 2);
    expect(lost(bench)).toEqual([2]);
  });
});

describe('a server that has looked for long', () => {
  function lookingForLong(): Bench {
    const bench = new Bench([1, 2, 3]);
    bench.start();
    bench.pass(200_000);
    bench.take();
    return bench;
  }

  it('asks again soon when others follow one leader and have not all raised the epoch of their votes yet', () => {
    const bench = lookingForLong();
    bench.hear(2, 'following', [3, 9, 1], 5);
    bench.hear(3, 'leading', [3, 9, 0], 5);
    expect(bench.outcome()).toBeUndefined();
    bench.pass(200);
    expect(bench.take()).toEqual(['2 <- looking 1 zxid 7 epoch 1 round 1', '3 <- looking 1 zxid 7 epoch 1 round 1']);
    bench.hear(3, 'leading', [3, 9, 1], 5);
    expect(bench.outcome()).toContain('following 3');
  });

  it('is in no hurry when it hears of a leader that it cannot hear, or that a quorum does not follow', () => {
    const bench = lookingForLong();
    bench.hear(2, 'following', [3, 9, 1], 5);
    bench.pass(1000);
    expect(bench.take()).toEqual([]);
    const other = lookingForLong();
    other.hear(3, 'leading', [3, 9, 0], 5);
    other.pass(1000);
    expect(other.take()).toEqual([]);
  });
});
