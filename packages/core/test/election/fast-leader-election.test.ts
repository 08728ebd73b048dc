import { describe, expect, it } from 'vitest';
import type { PeerRole } from '@tskeeper/protocol';
import { formatQuorumConfig, type Notification, noVote, type ServerState, type Sid, type QuorumConfig } from '@tskeeper/protocol';
import type { ElectionOptions } from '../../src/election/election-options.ts';
import { FastLeaderElection } from '../../src/election/fast-leader-election.ts';
import type { Fingerprint } from '../../src/fingerprint.ts';
import type { Now } from '../../src/now.ts';
import type { ElectionConfig } from '../../src/quorum/election-config.ts';
import { HierarchicalQuorum } from '../../src/quorum/hierarchical-quorum.ts';
import { JointQuorum } from '../../src/quorum/joint-quorum.ts';
import { MajorityQuorum } from '../../src/quorum/majority-quorum.ts';
import { OracleQuorum } from '../../src/quorum/oracle-quorum.ts';
import type { QuorumVerifier } from '../../src/quorum/quorum-verifier.ts';

const configText = 'server.1=h:1:2:participant\nversion=5';

/** One machine, its output, and a clock that the test moves. */
function verifierOfVoters(verifier: QuorumVerifier | readonly Sid[]): QuorumVerifier {
  return 'voters' in verifier ? verifier : new MajorityQuorum(verifier);
}

class Bench {
  readonly out: string[] = [];
  readonly said: { to: Sid; notification: Notification }[] = [];
  readonly machine: FastLeaderElection;
  readonly config: ElectionConfig;
  nowMs = 1000;

  constructor(
    verifier: QuorumVerifier | readonly Sid[] = [1, 2, 3],
    { ownRole = 'participant', ...options }: Partial<ElectionOptions> & { readonly ownRole?: PeerRole } = {},
  ) {
    this.config = {
      verifier: verifierOfVoters(verifier),
      text: configText,
      version: 5,
      ownRole,
      announcedVoters: [],
      pendingText: undefined,
    };
    const links = {
      notify: (to: Sid, notification: Notification) => {
        this.said.push({ to, notification });
        this.out.push(`${to} <- ${shown(notification)}`);
      },
    };
    const configs = {
      configSeen: (from: Sid, config: QuorumConfig) => {
        this.out.push(`config of ${from}: ${formatQuorumConfig(config)}`);
        return false;
      },
      pendingConfigSeen: () => undefined,
    };
    this.machine = new FastLeaderElection({ sid: 1, ...options }, this.config, links, configs);
  }

  /** The owner has another configuration. */
  reconfigure(change: Partial<ElectionConfig>): void {
    Object.assign(this.config, change);
    this.machine.quorumChanged(this.now);
  }

  get now(): Now {
    return { elapsedMs: this.nowMs, wallMs: 0 };
  }

  /** The output since the last call. */
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

  /** Advances the clock, and wakes the machine at its deadline. */
  pass(ms: number): void {
    const until = this.nowMs + ms;
    for (let due = this.machine.deadline(); due !== undefined && due <= until; due = this.machine.deadline()) {
      this.nowMs = Math.max(this.nowMs, due);
      this.machine.wake(this.now);
    }
    this.nowMs = until;
  }

  outcome(): string | undefined {
    const { outcome } = this.machine;
    if (outcome === undefined) return undefined;
    const { leader, zxid, electionEpoch, peerEpoch } = outcome.vote;
    return `${outcome.state} ${leader} zxid ${zxid} epoch ${peerEpoch} round ${electionEpoch}`;
  }
}

function shown({ state, leader, zxid, peerEpoch, electionEpoch }: Notification): string {
  return leader === noVote
    ? `${state} none round ${electionEpoch}`
    : `${state} ${leader} zxid ${zxid} epoch ${peerEpoch} round ${electionEpoch}`;
}

describe('the start of an election', () => {
  it('C4-2, C4-8: a server that starts looking sends every other voter its round, sid, last zxid and epoch, once', () => {
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

  it('the highest possible round, sent by any peer, does not prevent a server from electing and from being understood', () => {
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

  it('each election of a server has a new round', () => {
    const bench = new Bench();
    bench.start();
    bench.start(8, 2);
    expect(bench.machine.electionEpoch).toBe(2);
    expect(bench.take().at(-1)).toBe('3 <- looking 1 zxid 8 epoch 2 round 2');
  });

  it('the voters of the next configuration are notified as well', () => {
    const bench = new Bench(new JointQuorum(new MajorityQuorum([1, 2]), new MajorityQuorum([1, 3, 4])));
    bench.start();
    expect(bench.said.map(({ to }) => to)).toEqual([2, 3, 4]);
  });

  it.each([
    ['an observer', { sid: 9, ownRole: 'observer' }],
    ['a removed participant', { sid: 9, role: 'participant' }],
  ] as const)('%s asks the voters and votes for no server', (_, options) => {
    const bench = new Bench([1, 2, 3], options);
    bench.start();
    expect(bench.take()).toEqual([1, 2, 3].map((to) => `${to} <- looking none round 1`));
    expect(bench.said[0]!.notification).toMatchObject({ leader: noVote, zxid: noVote, peerEpoch: noVote });
  });

  it('C4-3: a single voter is a quorum and leads at once', () => {
    const bench = new Bench([1]);
    bench.start(7, 4);
    expect(bench.outcome()).toBe('leading 1 zxid 7 epoch 4 round 1');
    expect(bench.take()).toEqual([]);
    expect(bench.machine.deadline()).toBeUndefined();
  });

  it('a server sends and decides nothing before its first election', () => {
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

describe('repetition of notifications', () => {
  it('A51: an unanswered notification is repeated after 200 ms, then after twice as long each time, up to a minute', () => {
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

  it('an observer asks every five seconds at the latest, since no voter notifies it', () => {
    const bench = new Bench([1, 2, 3], { sid: 9, ownRole: 'observer' });
    bench.start();
    const waits: number[] = [];
    for (let turn = 0; turn < 8; turn++) {
      const wait = bench.machine.deadline()! - bench.nowMs;
      waits.push(wait);
      bench.pass(wait);
    }
    expect(waits).toEqual([200, 400, 800, 1600, 3200, 5000, 5000, 5000]);
  });

  it('a new election starts with the shortest interval', () => {
    const bench = new Bench();
    bench.start();
    bench.pass(30_000);
    bench.start();
    expect(bench.machine.deadline()! - bench.nowMs).toBe(200);
  });

  it('the intervals can be configured', () => {
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

  it('a notification that changes nothing does not delay the repetition', () => {
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

describe('votes of looking servers', () => {
  it('C4-9: a better vote is adopted, and all voters are notified', () => {
    const bench = new Bench();
    bench.start();
    bench.take();
    bench.hear(2, 'looking', [2, 8, 1]);
    expect(bench.take()).toEqual(['2 <- looking 2 zxid 8 epoch 1 round 1', '3 <- looking 2 zxid 8 epoch 1 round 1']);
  });

  it('C4-9: a worse vote is not adopted, and no voter is notified', () => {
    const bench = new Bench();
    bench.start();
    bench.take();
    bench.hear(2, 'looking', [2, 6, 1]);
    expect(bench.take()).toEqual([]);
    bench.hear(3, 'looking', [1, 7, 1]);
    bench.pass(200);
    expect(bench.outcome()).toBe('leading 1 zxid 7 epoch 1 round 1');
  });

  it('A51: a later round is adopted with the better of its vote and the own one, and earlier votes are void', () => {
    const bench = new Bench([1, 2, 3, 4, 5]);
    bench.start();
    bench.hear(2, 'looking', [2, 9, 1]);
    bench.hear(3, 'looking', [2, 9, 1]);
    bench.take();
    // Less than ours: we vote for ourselves again, not for 2, which has not voted in this round.
    bench.hear(4, 'looking', [4, 6, 1], 3);
    expect(bench.machine.electionEpoch).toBe(3);
    expect(bench.take()[0]).toBe('2 <- looking 1 zxid 7 epoch 1 round 3');
    bench.hear(5, 'looking', [5, 8, 1], 4);
    expect(bench.take()[0]).toBe('2 <- looking 5 zxid 8 epoch 1 round 4');
    bench.pass(190);
    expect(bench.outcome()).toBeUndefined();
  });

  it('A51: a vote of an earlier round does not count, and its sender gets the present vote', () => {
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

  it('a server without data neither votes nor gets votes', () => {
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

  it('ZOOKEEPER-764, 2959: a server that is not a voter neither counts nor gets votes', () => {
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

  it('votes of observing servers are ignored', () => {
    const bench = new Bench();
    bench.start();
    bench.hear(2, 'observing', [1, 7, 1]);
    bench.hear(3, 'observing', [1, 7, 1]);
    bench.pass(190);
    expect(bench.outcome()).toBeUndefined();
  });

  it('a server of weight 0 gets no votes, whatever its history, and adopts the better vote itself', () => {
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

  it('a lost vote is sent again to a server whose vote shows that it has not received it', () => {
    const bench = new Bench();
    bench.start();
    bench.pass(5000);
    bench.take();
    bench.hear(2, 'looking', [2, 6, 1]);
    expect(bench.take()).toEqual(['2 <- looking 1 zxid 7 epoch 1 round 1']);
    // It is in flight now.
    bench.hear(2, 'looking', [2, 6, 1]);
    expect(bench.take()).toEqual([]);
    // A new process at the same address has received nothing.
    bench.machine.reachable(2);
    bench.hear(2, 'looking', [2, 6, 1]);
    expect(bench.take()).toEqual(['2 <- looking 1 zxid 7 epoch 1 round 1']);
  });

  it('a vote sent to a settled server is sent again as soon as that server looks too', () => {
    const bench = new Bench();
    bench.start();
    bench.start();
    bench.take();
    bench.hear(2, 'following', [3, 5, 1]);
    expect(bench.take()).toEqual([]);
    bench.hear(2, 'looking', [2, 6, 1], 2);
    expect(bench.take()).toEqual(['2 <- looking 1 zxid 7 epoch 1 round 2']);
  });

  it('a round that is not an exact number is ignored (ZOOKEEPER-2988: and does not stop the server)', () => {
    const bench = new Bench();
    bench.start();
    bench.take();
    for (const round of [2 ** 53, 2 ** 63, Number.NaN, Number.POSITIVE_INFINITY, 1.5]) bench.hear(2, 'looking', [2, 9, 1], round);
    expect(bench.take()).toEqual([]);
    bench.hear(2, 'looking', [2, 9, 1], 1);
    expect(bench.take()).toHaveLength(2);
  });

  it('notifications with the own sid as sender are ignored', () => {
    const bench = new Bench();
    bench.start();
    bench.take();
    bench.hear(1, 'looking', [2, 9, 1]);
    bench.hear(2, 'looking', [1, 7, 1]);
    bench.pass(200);
    expect(bench.outcome()).toBe('leading 1 zxid 7 epoch 1 round 1');
  });
});

describe('a vote for this server that it has not given', () => {
  it('is not adopted if it promises more than the server has: a TRUNC has taken txns that it announced before', () => {
    const bench = new Bench([1, 2, 3], { sid: 3 });
    bench.start(7);
    bench.take();
    bench.hear(2, 'looking', [3, 8, 1]);
    expect(bench.take()).toEqual([]);
    bench.hear(2, 'looking', [3, 8, 1], 2);
    expect(bench.take()).toEqual([1, 2].map((to) => `${to} <- looking 3 zxid 7 epoch 1 round 2`));
    bench.hear(1, 'looking', [3, 8, 1], 2);
    bench.pass(200);
    expect(bench.outcome()).toBeUndefined();
    bench.hear(2, 'looking', [2, 8, 1], 2);
    expect(bench.take().at(-1)).toBe('2 <- looking 2 zxid 8 epoch 1 round 2');
  });
});

describe('the finalize wait', () => {
  it('C4-11: the vote of a quorum is decided if no better one arrives for 200 ms', () => {
    const bench = new Bench();
    bench.start();
    bench.hear(2, 'looking', [2, 8, 1]);
    bench.pass(199);
    expect(bench.outcome()).toBeUndefined();
    bench.pass(1);
    expect(bench.outcome()).toBe('following 2 zxid 8 epoch 1 round 1');
    expect(bench.machine.deadline()).toBeUndefined();
  });

  it('C4-2, C4-11: the elected server leads, and an observer observes', () => {
    const leader = new Bench();
    leader.start();
    leader.hear(2, 'looking', [1, 7, 1]);
    leader.pass(200);
    expect(leader.outcome()).toBe('leading 1 zxid 7 epoch 1 round 1');

    const observer = new Bench([1, 2, 3], { sid: 9, ownRole: 'observer' });
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

  it('C4-10: a better vote during the wait is adopted, and the wait starts again for it', () => {
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

  it('a new vote restarts the wait, a repeated one does not', () => {
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

  it('the wait ends without a decision when the quorum is lost', () => {
    const bench = new Bench();
    bench.start();
    bench.hear(2, 'looking', [1, 7, 1]);
    // It has failed, restarted without data, and is in the same round by chance.
    bench.hear(2, 'looking', [2, 0, 0]);
    bench.pass(199);
    expect(bench.outcome()).toBeUndefined();
  });

  it('needs a quorum of both the active and the last seen configuration', () => {
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

describe('finalizing early', () => {
  it('happens when every voter has announced the same vote', () => {
    const bench = new Bench();
    bench.start();
    bench.hear(2, 'looking', [1, 7, 1]);
    expect(bench.outcome()).toBeUndefined();
    bench.hear(3, 'looking', [1, 7, 1]);
    expect(bench.outcome()).toBe('leading 1 zxid 7 epoch 1 round 1');
  });

  it('happens when each voter that has not announced it is unreachable and refused a dial', () => {
    const bench = new Bench();
    bench.machine.unreachable(3, bench.now);
    bench.start();
    bench.hear(2, 'looking', [1, 7, 1]);
    expect(bench.outcome()).toBe('leading 1 zxid 7 epoch 1 round 1');
  });

  it('happens when the last voter turns out to be unreachable', () => {
    const bench = new Bench();
    bench.start();
    bench.hear(2, 'looking', [1, 7, 1]);
    bench.pass(20);
    bench.machine.unreachable(3, bench.now);
    expect(bench.outcome()).toBe('leading 1 zxid 7 epoch 1 round 1');
  });

  it('does not happen if a connection with that voter has been opened since', () => {
    const bench = new Bench();
    bench.machine.unreachable(3, bench.now);
    bench.machine.reachable(3);
    bench.start();
    bench.hear(2, 'looking', [1, 7, 1]);
    expect(bench.outcome()).toBeUndefined();
    bench.pass(200);
    expect(bench.outcome()).toBe('leading 1 zxid 7 epoch 1 round 1');
  });

  it('does not happen with less than a quorum, however few voters are reachable', () => {
    const bench = new Bench();
    bench.start();
    bench.machine.unreachable(2, bench.now);
    bench.machine.unreachable(3, bench.now);
    bench.pass(100_000);
    expect(bench.outcome()).toBeUndefined();
  });

  it('does not happen while a reachable voter has announced another vote, or none, or this one in another round', () => {
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

  it('does not happen for a leader that is itself unreachable: it may just have failed', () => {
    const bench = new Bench();
    bench.start();
    bench.hear(3, 'looking', [3, 8, 1]);
    bench.machine.unreachable(3, bench.now);
    bench.hear(2, 'looking', [3, 8, 1]);
    expect(bench.outcome()).toBeUndefined();
    bench.pass(200);
    expect(bench.outcome()).toBe('following 3 zxid 8 epoch 1 round 1');
  });

  it('does not happen for a leader that has not announced the vote itself, though all others have', () => {
    const bench = new Bench();
    bench.start();
    bench.hear(2, 'looking', [3, 8, 1]);
    expect(bench.outcome()).toBeUndefined();
    bench.hear(3, 'looking', [3, 8, 1]);
    expect(bench.outcome()).toBe('following 3 zxid 8 epoch 1 round 1');
  });

  it('happens on an observer too, when all voters agree', () => {
    const bench = new Bench([1, 2, 3], { sid: 9, ownRole: 'observer' });
    bench.start();
    for (const sid of [1, 2, 3]) bench.hear(sid, 'looking', [2, 8, 1]);
    expect(bench.outcome()).toBe('observing 2 zxid 8 epoch 1 round 1');
  });

  it('does not happen if it is disabled', () => {
    const bench = new Bench([1, 2, 3], { earlyFinalization: false });
    bench.start();
    bench.hear(2, 'looking', [1, 7, 1]);
    bench.hear(3, 'looking', [1, 7, 1]);
    expect(bench.outcome()).toBeUndefined();
    bench.pass(200);
    expect(bench.outcome()).toBe('leading 1 zxid 7 epoch 1 round 1');
  });
});

describe('votes of servers that have settled', () => {
  it("C4-6: a late server follows the leader of a quorum, in that leader's round", () => {
    const bench = new Bench();
    bench.start(99, 9);
    bench.hear(2, 'following', [3, 8, 1], 5);
    expect(bench.outcome()).toBeUndefined();
    bench.hear(3, 'leading', [3, 8, 1], 5);
    expect(bench.outcome()).toBe('following 3 zxid 8 epoch 1 round 5');
    expect(bench.machine.electionEpoch).toBe(5);
  });

  it('C4-6: a late server does not follow a leader that has not announced that it leads', () => {
    const bench = new Bench([1, 2, 3, 4, 5]);
    bench.start();
    for (const sid of [2, 3, 4]) bench.hear(sid, 'following', [5, 8, 1], 5);
    expect(bench.outcome()).toBeUndefined();
    bench.hear(5, 'looking', [5, 8, 1], 1);
    expect(bench.outcome()).toBeUndefined();
    bench.hear(5, 'leading', [5, 8, 1], 5);
    expect(bench.outcome()).toBe('following 5 zxid 8 epoch 1 round 5');
  });

  it('a late server does not follow a leader without a quorum', () => {
    const bench = new Bench();
    bench.start();
    bench.hear(3, 'leading', [3, 8, 1], 5);
    bench.pass(10_000);
    expect(bench.outcome()).toBeUndefined();
  });

  it('ZOOKEEPER-1805: zxid and round of settled votes may differ, leader and epoch may not', () => {
    const bench = new Bench();
    bench.start();
    bench.hear(2, 'following', [3, 8, 2], 5);
    bench.hear(3, 'leading', [3, 9, 1], 6);
    expect(bench.outcome()).toBeUndefined();
    bench.hear(2, 'following', [3, 8, 1], 5);
    expect(bench.outcome()).toBe('following 3 zxid 8 epoch 1 round 5');
  });

  it('ZOOKEEPER-1732: with a server that does not raise the epoch of its vote, only the leader is compared', () => {
    const bench = new Bench();
    bench.start();
    bench.hear(2, 'following', [3, 8, 1], 5, { version: 0, config: undefined });
    bench.hear(3, 'leading', [3, 8, 2], 5);
    expect(bench.outcome()).toBe('following 3 zxid 8 epoch 2 round 5');
  });

  it('a quorum of the active configuration is enough while another one is pending here only', () => {
    for (const round of [1, 5]) {
      const bench = new Bench();
      const [active, next] = [new MajorityQuorum([1, 2, 3]), new MajorityQuorum([1, 2])];
      bench.reconfigure({ verifier: new JointQuorum(active, next) });
      bench.start();
      bench.hear(2, 'leading', [2, 9, 2], round);
      expect(bench.outcome()).toBeUndefined();
      bench.hear(3, 'following', [2, 9, 2], round);
      expect(bench.outcome()).toBe(`following 2 zxid 9 epoch 2 round ${round}`);
    }
  });

  it('settled votes of the same round count together with equal votes of looking servers', () => {
    const bench = new Bench();
    bench.start();
    bench.hear(3, 'looking', [3, 8, 1]);
    bench.hear(3, 'leading', [3, 8, 1]);
    expect(bench.outcome()).toBe('following 3 zxid 8 epoch 1 round 1');
  });

  it('settled votes of the same round count whether or not they have raised their epoch', () => {
    const bench = new Bench([1, 2, 3, 4, 5]);
    bench.start();
    bench.hear(2, 'following', [5, 8, 1]);
    bench.hear(3, 'following', [5, 8, 2]);
    bench.hear(5, 'leading', [5, 8, 2]);
    expect(bench.outcome()).toBe('following 5 zxid 8 epoch 2 round 1');
  });

  it('the vote of a server that already follows counts as announced', () => {
    const bench = new Bench();
    bench.start();
    bench.hear(2, 'following', [1, 7, 1]);
    expect(bench.outcome()).toBe('leading 1 zxid 7 epoch 1 round 1');
  });

  it('a leader that failed and restarted unnoticed continues to lead, in the same round only', () => {
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
  ])('a leader that failed and restarted with %s does not continue to lead', (_, zxid, epoch) => {
    const bench = new Bench();
    bench.start(zxid, epoch);
    bench.hear(2, 'following', [1, 7, 2], 1);
    bench.hear(3, 'following', [1, 7, 2], 1);
    bench.pass(190);
    expect(bench.outcome()).toBeUndefined();
  });

  it('settled votes of an earlier round for this server do not count in a later one', () => {
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

  it('settled votes of an earlier election are forgotten in the next', () => {
    const bench = new Bench();
    bench.start();
    bench.hear(3, 'leading', [3, 8, 1], 5);
    bench.start();
    bench.hear(2, 'following', [3, 8, 1], 5);
    expect(bench.outcome()).toBeUndefined();
  });
});

describe('an oracle', () => {
  it('A57: the one of two voters that may continue alone leads after the wait', () => {
    const oracle = new OracleQuorum(1, [1, 2]);
    const bench = new Bench(oracle);
    bench.start();
    bench.pass(5000);
    expect(bench.outcome()).toBeUndefined();
    oracle.oracleAnswered(true);
    bench.reconfigure({});
    bench.pass(199);
    expect(bench.outcome()).toBeUndefined();
    bench.pass(1);
    expect(bench.outcome()).toBe('leading 1 zxid 7 epoch 1 round 1');
  });

  it('A57: that voter leads at the next repetition even if its election receives no input', () => {
    const oracle = new OracleQuorum(1, [1, 2]);
    const bench = new Bench(oracle);
    bench.start();
    bench.pass(100);
    oracle.oracleAnswered(true);
    bench.pass(100 + 200);
    expect(bench.outcome()).toBe('leading 1 zxid 7 epoch 1 round 1');
  });

  it.each<[string, QuorumVerifier]>([
    ['outside the two voters', new OracleQuorum(1, [2, 3])],
    ['that a pending configuration gives a vote', new JointQuorum(new OracleQuorum(1, [2, 3]), new MajorityQuorum([1, 2]))],
  ])('A57: a server %s asks its candidate again soon, which may lead without a majority', (_which, verifier) => {
    const bench = new Bench(verifier);
    bench.start();
    bench.pass(10_000);
    bench.hear(2, 'looking', [2, 9, 1]);
    expect(bench.outcome()).toBeUndefined();
    for (let asked = 0; asked < 5; asked++) {
      bench.take();
      bench.pass(200);
      expect(bench.take()).toContainEqual(expect.stringMatching(/^2 <- looking 2 /));
    }
    bench.hear(2, 'leading', [2, 9, 1]);
    expect(bench.outcome()).toBe('following 2 zxid 9 epoch 1 round 1');
  });

  it.each([false, true])('A57: a voter follows the other one that leads, whether it may continue alone or not: %s', (mayContinueAlone) => {
    const oracle = new OracleQuorum(1, [1, 2]);
    oracle.oracleAnswered(mayContinueAlone);
    const bench = new Bench(oracle);
    bench.start(99, 9);
    bench.hear(2, 'following', [2, 7, 1], 4);
    expect(bench.outcome()).toBeUndefined();
    bench.hear(2, 'leading', [2, 7, 1], 4);
    expect(bench.outcome()).toBe('following 2 zxid 7 epoch 1 round 4');
  });
});

describe('a server that is not looking', () => {
  function leading(): Bench {
    const bench = new Bench();
    bench.start();
    bench.hear(2, 'looking', [1, 7, 1]);
    bench.hear(3, 'looking', [1, 7, 1]);
    bench.take();
    return bench;
  }

  it('C4-6: answers looking servers with the result of its election', () => {
    const bench = leading();
    bench.hear(3, 'looking', [3, 99, 9], 7);
    expect(bench.take()).toEqual(['3 <- leading 1 zxid 7 epoch 1 round 1']);
    expect(bench.outcome()).toBe('leading 1 zxid 7 epoch 1 round 1');
  });

  it('has the new epoch in its vote once it is synchronised', () => {
    const bench = leading();
    bench.machine.updateVote(2);
    bench.hear(3, 'looking', [3, 99, 9], 7);
    expect(bench.take()).toEqual(['3 <- leading 1 zxid 7 epoch 2 round 1']);
    expect(bench.outcome()).toBe('leading 1 zxid 7 epoch 2 round 1');
  });

  it('does not answer settled servers, and repeats nothing', () => {
    const bench = leading();
    bench.hear(2, 'following', [1, 7, 1]);
    bench.hear(3, 'leading', [3, 9, 4], 9);
    bench.pass(100_000);
    expect(bench.take()).toEqual([]);
  });

  it('answers observers too, with its round', () => {
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

  it('answers looking servers with the leader named by a reconfiguration', () => {
    const bench = leading();
    const vote = { leader: 3, zxid: 12, electionEpoch: 2, peerEpoch: 4 };
    bench.machine.finalize({ state: 'following', vote }, bench.now);
    bench.hear(2, 'looking', [2, 9, 1], 7);
    bench.hear(9, 'looking', [noVote, noVote, noVote], 7);
    // A voter gets the round of the vote, an observer that of the server.
    expect(bench.take()).toEqual(['2 <- following 3 zxid 12 epoch 4 round 2', '9 <- following 3 zxid 12 epoch 4 round 1']);
    expect(bench.machine.deadline()).toBeUndefined();
  });

  it('answers the same question again after some time, and another one at once', () => {
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
    // Nor is another answer suppressed.
    bench.machine.updateVote(2);
    expect(ask(8)).toBe(1);
    // A new connection may lead to a process that has received nothing.
    bench.machine.reachable(3);
    expect(ask(8)).toBe(1);
  });

  it('does not exchange answers with another server without end', () => {
    // An observer two rounds later asks a looking voter: each considers the other outdated.
    const machines = new Map<Sid, FastLeaderElection>();
    const wire: { from: Sid; to: Sid; notification: Notification }[] = [];
    const now = { elapsedMs: 0, wallMs: 0 };
    for (const [sid, ownRole] of [
      [1, 'participant'],
      [9, 'observer'],
    ] as const) {
      const config = {
        verifier: new MajorityQuorum([1, 2, 3]),
        text: configText,
        version: 5,
        ownRole,
        announcedVoters: [],
        pendingText: undefined,
      };
      const out = {
        notify: (to: Sid, notification: Notification) => wire.push({ from: sid, to, notification }),
        configSeen: () => false,
        pendingConfigSeen: () => undefined,
      };
      machines.set(sid, new FastLeaderElection({ sid }, config, out, out));
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

describe('a pending configuration', () => {
  const joint = new JointQuorum(new MajorityQuorum([1, 2, 3]), new MajorityQuorum([1, 2, 3, 4]));

  it('P35: does not keep a server from a leader that a quorum without it follows', () => {
    // Server 1 has logged it, and servers 2 and 3 have not: their leader will take it back.
    const bench = new Bench(joint, { reconfigEnabled: true });
    bench.start(8);
    bench.hear(2, 'following', [3, 7, 2], 4);
    expect(bench.outcome()).toBeUndefined();
    bench.hear(3, 'leading', [3, 7, 2], 4);
    expect(bench.outcome()).toBe('following 3 zxid 7 epoch 2 round 4');
  });

  it('P32: keeps a server from leading with a quorum of the active one alone', () => {
    const bench = new Bench(joint, { reconfigEnabled: true });
    bench.start(8);
    bench.hear(2, 'following', [1, 8, 1]);
    bench.hear(3, 'looking', [3, 7, 1]);
    expect(bench.outcome()).toBeUndefined();
  });
});

describe('a configuration of a higher version', () => {
  const newer = { config: 'server.1=h:1:2:participant\nversion=6' };

  it('is passed to the owner, before the vote that arrived with it is counted', () => {
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
    ['malformed', { config: 'server.1=h\nversion=6' }, { reconfigEnabled: true }],
    ['missing', { config: undefined, version: 1 }, { reconfigEnabled: true }],
    ['without reconfigEnabled', newer, {}],
  ])('is ignored if it is %s', (_, over, options) => {
    const bench = new Bench([1, 2, 3], options);
    bench.start();
    bench.take();
    bench.hear(2, 'looking', [2, 6, 1], 1, over);
    expect(bench.take()).toEqual([]);
  });

  it('is ignored by a settled server, which gets it from its leader', () => {
    const bench = new Bench([1, 2], { reconfigEnabled: true });
    bench.start();
    bench.hear(2, 'looking', [1, 7, 1]);
    bench.take();
    bench.hear(2, 'looking', [2, 6, 1], 2, newer);
    expect(bench.take()).toEqual(['2 <- leading 1 zxid 7 epoch 1 round 1']);
  });

  it('applies at once to a running election, and its text is sent with the next notification', () => {
    const bench = new Bench();
    bench.start();
    bench.hear(2, 'looking', [2, 6, 1]);
    bench.reconfigure({ verifier: new MajorityQuorum([1]), text: newer.config, version: 6 });
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

describe('the fingerprint of an election', () => {
  it('is equal for servers that will behave the same, whatever their history', () => {
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

  it('changes with each input that affects later behaviour', () => {
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
      () => bench.reconfigure({ verifier: new MajorityQuorum([1, 2]), version: 6 }),
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

describe('a server that backs off', () => {
  /**
   * Server 1 of five, which backs off from its own candidacy, in its second round: it has announced
   * nothing.
   */
  function backedOffInRound2(): Bench {
    const bench = new Bench([1, 2, 3, 4, 5]);
    bench.start();
    bench.machine.eligibility.backOff(1, bench.nowMs + 5000);
    bench.start();
    bench.take();
    return bench;
  }

  it('gets no vote until its backoff ends, though its vote is the best', () => {
    const bench = new Bench([1, 2, 3]);
    bench.machine.eligibility.backOff(3, bench.nowMs + 500);
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

  it('gets no vote in a later round either', () => {
    const bench = new Bench([1, 2, 3]);
    bench.machine.eligibility.backOff(3, bench.nowMs + 500);
    bench.start();
    bench.take();
    bench.hear(3, 'looking', [3, 9, 1], 4);
    expect(bench.take()).toEqual(['2 <- looking 1 zxid 7 epoch 1 round 4', '3 <- looking 1 zxid 7 epoch 1 round 4']);
  });

  it('is followed if others have settled on it, so that every server can join a working ensemble', () => {
    const bench = new Bench([1, 2, 3]);
    bench.machine.eligibility.backOff(3, bench.nowMs + 500);
    bench.start();
    bench.hear(2, 'following', [3, 9, 1]);
    bench.hear(3, 'leading', [3, 9, 1]);
    expect(bench.outcome()).toContain('following 3');
  });

  it('does not announce its own vote if it is this server, and announces a better vote of another', () => {
    const bench = new Bench([1, 2, 3]);
    bench.machine.eligibility.backOff(1, bench.nowMs + 500);
    bench.start();
    bench.hear(2, 'looking', [2, 5, 1]);
    bench.pass(450);
    expect(bench.take()).toEqual([]);
    bench.hear(3, 'looking', [3, 9, 1]);
    expect(bench.take()).toEqual(['2 <- looking 3 zxid 9 epoch 1 round 1', '3 <- looking 3 zxid 9 epoch 1 round 1']);
  });

  it('announces its own vote again after the backoff', () => {
    const bench = new Bench([1, 2, 3]);
    bench.machine.eligibility.backOff(1, bench.nowMs + 500);
    bench.start();
    bench.pass(500);
    expect(bench.take()).toEqual(['2 <- looking 1 zxid 7 epoch 1 round 1', '3 <- looking 1 zxid 7 epoch 1 round 1']);
  });

  it('announces its vote again, if it is this one, when a quorum votes for it in an earlier round', () => {
    const bench = backedOffInRound2();
    bench.hear(2, 'looking', [1, 7, 1], 1);
    bench.hear(3, 'looking', [1, 7, 1], 1);
    expect(bench.take().filter((line) => line.startsWith('4'))).toEqual(['4 <- looking 1 zxid 7 epoch 1 round 2']);
    bench.hear(2, 'looking', [1, 7, 1], 2);
    bench.hear(3, 'looking', [1, 7, 1], 2);
    bench.pass(200);
    expect(bench.outcome()).toBe('leading 1 zxid 7 epoch 1 round 2');
  });

  it('stays silent, if it is this one, while less than a quorum votes for it, or did so before its last election', () => {
    const bench = backedOffInRound2();
    bench.hear(2, 'looking', [1, 7, 1], 1);
    bench.hear(2, 'looking', [2, 7, 1], 1);
    bench.hear(3, 'looking', [1, 7, 1], 1);
    bench.start();
    bench.hear(4, 'looking', [1, 7, 1], 2);
    expect(bench.take()).toEqual([]);
  });

  it('stays silent, if it is this one, when a voter for it in an earlier round has since joined its round', () => {
    const bench = backedOffInRound2();
    bench.hear(2, 'looking', [1, 7, 1], 1);
    bench.hear(2, 'looking', [2, 6, 1], 2);
    bench.hear(3, 'looking', [1, 7, 1], 1);
    expect(bench.take()).toEqual([]);
  });

  it('has no backoff after a success', () => {
    const bench = new Bench([1, 2, 3]);
    bench.machine.eligibility.backOff(3, bench.nowMs + 500);
    bench.machine.eligibility.clearBackoff();
    bench.start();
    bench.hear(3, 'looking', [3, 9, 1]);
    expect(bench.take().at(-1)).toBe('3 <- looking 3 zxid 9 epoch 1 round 1');
  });
});

describe('a server that did not answer a dial', () => {
  function unanswering(): Bench {
    const bench = new Bench([1, 2, 3]);
    bench.machine.eligibility.markUnresponsive(3, bench.nowMs + 5000);
    bench.start();
    bench.take();
    bench.hear(3, 'looking', [3, 9, 1]);
    return bench;
  }

  it('gets no vote, though its votes arrive, until it is connected again', () => {
    const bench = unanswering();
    bench.pass(4000);
    expect(bench.take().filter((line) => !line.includes('looking 1 '))).toEqual([]);
    bench.machine.reachable(3);
    bench.hear(3, 'looking', [3, 9, 1]);
    expect(bench.take()).toEqual(['2 <- looking 3 zxid 9 epoch 1 round 1', '3 <- looking 3 zxid 9 epoch 1 round 1']);
  });

  it('gets votes again after a long time, and after a success', () => {
    const bench = unanswering();
    bench.pass(5000);
    expect(bench.take().at(-1)).toBe('3 <- looking 3 zxid 9 epoch 1 round 1');
    const forgiving = unanswering();
    forgiving.machine.eligibility.clearBackoff();
    forgiving.hear(3, 'looking', [3, 9, 1]);
    expect(forgiving.take().at(-1)).toBe('3 <- looking 3 zxid 9 epoch 1 round 1');
  });

  it('is followed if others have settled on it', () => {
    const bench = unanswering();
    bench.hear(2, 'following', [3, 9, 1]);
    bench.hear(3, 'leading', [3, 9, 1]);
    expect(bench.outcome()).toContain('following 3');
  });
});

describe('a proposed leader without the votes of a quorum', () => {
  /** 5 is the best, and only this server receives its votes; 4, 3 and 2 do not. */
  function alone(): Bench {
    const bench = new Bench([1, 2, 3, 4, 5]);
    bench.start();
    bench.hear(5, 'looking', [5, 9, 1]);
    for (const sid of [2, 3, 4]) bench.hear(sid, 'looking', [4, 8, 1]);
    bench.take();
    return bench;
  }

  it('is given up for the next best after three times the wait', () => {
    const bench = alone();
    bench.pass(599);
    expect(bench.take().filter((line) => !line.includes('looking 5 '))).toEqual([]);
    bench.pass(1);
    expect(bench.take().at(-1)).toBe('5 <- looking 4 zxid 8 epoch 1 round 1');
    bench.pass(200);
    expect(bench.outcome()).toBe('following 4 zxid 8 epoch 1 round 1');
  });

  it('is given up for the next best with an equal history, if it is this server', () => {
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

  it('is not given up for a leader with a shorter history, if it is this server, which could not follow that leader', () => {
    const bench = new Bench([1, 2, 3, 4, 5], { sid: 5 });
    bench.start(8);
    for (const sid of [1, 2, 3]) bench.hear(sid, 'looking', [3, 7, 1]);
    bench.pass(600);
    bench.take();
    bench.pass(300);
    expect([bench.take(), bench.outcome()]).toEqual([[], undefined]);
  });

  it('is kept while the others may still adopt it: when one of them does, the wait ends', () => {
    const bench = alone();
    bench.pass(500);
    for (const sid of [2, 3]) bench.hear(sid, 'looking', [5, 9, 1]);
    bench.pass(200);
    expect(bench.outcome()).toBe('following 5 zxid 9 epoch 1 round 1');
  });

  it('is kept if the others vote for a longer history: they give up', () => {
    const bench = new Bench([1, 2, 3, 4, 5]);
    bench.machine.eligibility.backOff(5, bench.nowMs + 60_000);
    bench.start();
    for (const sid of [2, 3]) bench.hear(sid, 'looking', [4, 8, 1]);
    for (const sid of [4, 5]) bench.hear(sid, 'looking', [5, 9, 1]);
    bench.take();
    bench.pass(10_000);
    expect(bench.take().filter((line) => !line.includes('looking 4 '))).toEqual([]);
  });

  it('is kept if no quorum has voted: giving it up would not help', () => {
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
  const lost = ({ machine }: Bench) => [2, 3, 4, 5].filter((sid) => machine.voterReachability.lostVoters.has(sid));

  it('reports which voters continue without its leader: in a later round, or with another leader', () => {
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

  it('does not count on voters that have sent nothing since it started looking, whatever they sent before', () => {
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

  it('reports that its leader has stopped leading when it looks in a later round, or its host refuses connections', () => {
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

  it('forgets such voters when they return, and in the next election', () => {
    const bench = leading();
    for (const sid of [2, 3]) bench.hear(sid, 'looking', [sid, 7, 1], 2);
    bench.hear(2, 'following', [1, 9, 1], 1);
    expect(lost(bench)).toEqual([3, 4, 5]);
    bench.start(9);
    for (const sid of [3, 4, 5]) bench.hear(sid, 'looking', [1, 9, 1], 2);
    expect(lost(bench)).toEqual([2]);
  });
});

describe('a server that has been looking for long', () => {
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

  it('does not ask sooner for a leader whose notifications do not arrive, or that no quorum follows', () => {
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
