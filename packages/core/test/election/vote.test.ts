import { describe, expect, it } from 'vitest';
import { noVote, type ServerState } from '@tskeeper/protocol';
import { agree, type AnnouncedVote, isBetterVote, sameVote, type Vote } from '../../src/election/vote.ts';
import { HierarchicalQuorum } from '../../src/quorum/hierarchical-quorum.ts';
import { JointQuorum } from '../../src/quorum/joint-quorum.ts';
import { MajorityQuorum } from '../../src/quorum/majority-quorum.ts';

const majority = new MajorityQuorum([1, 2, 3]);

/** epoch, zxid, sid, and the round, which must not matter. */
function vote([peerEpoch, zxid, leader]: readonly [number, number, number], electionEpoch = 1): Vote {
  return { leader, zxid, electionEpoch, peerEpoch };
}

describe('the order of votes', () => {
  it.each([
    ['a later epoch', [2, 0, 1], [1, 0, 1]],
    ['a later epoch with an older log', [2, 0x10, 1], [1, 0x99, 3]],
    ['a later zxid', [1, 8, 2], [1, 7, 2]],
    ['a later zxid with a lower sid', [1, 8, 1], [1, 7, 3]],
    ['a higher sid', [1, 7, 3], [1, 7, 2]],
    ['any vote, against none', [0, 0, 1], [noVote, noVote, noVote]],
    ['an empty log, against no vote', [0, -1, 1], [noVote, noVote, noVote]],
  ] as const)('C4-9, C4-10, A51: compares epoch, then zxid, then sid: %s wins', (_, better, worse) => {
    expect(isBetterVote(vote(better), vote(worse), majority)).toBe(true);
    expect(isBetterVote(vote(worse), vote(better), majority)).toBe(false);
  });

  it('C4-9: an equal vote is not better, and neither is one of a later round', () => {
    expect(isBetterVote(vote([1, 7, 2], 9), vote([1, 7, 2], 1), majority)).toBe(false);
    expect(isBetterVote(vote([1, 7, 1], 9), vote([1, 7, 2], 1), majority)).toBe(false);
  });

  it('P32: while a configuration is pending, a server that votes in it alone loses against an equal history', () => {
    const joint = new JointQuorum(majority, new MajorityQuorum([1, 2, 3, 4]));
    expect(isBetterVote(vote([1, 7, 4]), vote([1, 7, 3]), joint)).toBe(false);
    expect(isBetterVote(vote([1, 7, 3]), vote([1, 7, 4]), joint)).toBe(true);
    expect(isBetterVote(vote([1, 8, 4]), vote([1, 7, 3]), joint)).toBe(true);
    // A server that is to leave may lead until then.
    const leaving = new JointQuorum(new MajorityQuorum([1, 2, 3, 4]), majority);
    expect(isBetterVote(vote([1, 7, 4]), vote([1, 7, 3]), leaving)).toBe(true);
  });

  it('C4-10: finds the same best of several votes in any order', () => {
    const votes = [vote([1, 9, 3]), vote([2, 1, 1]), vote([2, 5, 1]), vote([2, 5, 2]), vote([1, 9, 2])];
    for (let turn = 0; turn < votes.length; turn++) {
      const rotated = [...votes.slice(turn), ...votes.slice(0, turn)];
      expect(rotated.reduce((best, next) => (isBetterVote(next, best, majority) ? next : best))).toEqual(vote([2, 5, 2]));
    }
  });

  it('A51: a vote for a server of weight 0, or for none, never wins', () => {
    const verifier = new HierarchicalQuorum({ voters: [1, 2, 3], groups: new Map([[1, [1, 2, 3]]]), weights: new Map([[3, 0]]) });
    expect(isBetterVote(vote([9, 9, 3]), vote([1, 1, 1]), verifier)).toBe(false);
    expect(isBetterVote(vote([1, 1, 1]), vote([9, 9, 3]), verifier)).toBe(true);
    expect(isBetterVote(vote([9, 9, 7]), vote([1, 1, 1]), verifier)).toBe(false);
    expect(isBetterVote(vote([9, 9, 3]), vote([noVote, noVote, noVote]), verifier)).toBe(false);
  });
});

describe('two votes', () => {
  function announced(state: ServerState, over: Partial<AnnouncedVote> = {}): AnnouncedVote {
    return { leader: 3, zxid: 7, electionEpoch: 4, peerEpoch: 2, state, version: 2, ...over };
  }

  it.each([
    ['equal fields', 'looking', {}, 'looking', {}, true],
    ['another leader', 'looking', {}, 'looking', { leader: 2 }, false],
    ['another zxid', 'looking', {}, 'looking', { zxid: 8 }, false],
    ['another round', 'looking', {}, 'looking', { electionEpoch: 5 }, false],
    ['another epoch', 'looking', {}, 'looking', { peerEpoch: 3 }, false],
    ['another zxid', 'looking', {}, 'following', { zxid: 8 }, false],
    ['equal fields', 'looking', {}, 'leading', {}, true],
    ['another version', 'looking', {}, 'looking', { version: 0 }, true],
    ['another zxid and round', 'following', {}, 'leading', { zxid: 8, electionEpoch: 9 }, true],
    ['another leader', 'following', {}, 'following', { leader: 2 }, false],
    ['another epoch', 'following', {}, 'following', { peerEpoch: 3 }, false],
    ['another epoch, both old', 'following', { version: 0 }, 'following', { peerEpoch: 3, version: 0 }, false],
    ['another epoch, one old', 'following', {}, 'leading', { peerEpoch: 3, version: 0 }, true],
    ['another leader, one old', 'following', {}, 'leading', { leader: 2, version: 0 }, false],
    ['versions 1 and 2', 'following', { version: 1 }, 'following', { peerEpoch: 3 }, false],
  ] as const)('A51: with %s, as %s %j and %s %j, count together: %s', (_, stateA, a, stateB, b, together) => {
    expect(agree(announced(stateA, a), announced(stateB, b))).toBe(together);
    expect(agree(announced(stateB, b), announced(stateA, a))).toBe(together);
  });

  it('are the same only if leader, zxid, round and epoch are equal', () => {
    const one = vote([1, 2, 3]);
    expect(sameVote(one, { ...one })).toBe(true);
    for (const key of ['leader', 'zxid', 'electionEpoch', 'peerEpoch'] as const) expect(sameVote(one, { ...one, [key]: 77 })).toBe(false);
  });
});
