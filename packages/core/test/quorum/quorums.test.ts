import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { breadth } from '../../../../test/breadth.ts';
import { parseQuorumConfig, type Sid } from '@tskeeper/protocol';
import type { Fingerprint } from '../../src/fingerprint.ts';
import { HierarchicalQuorum } from '../../src/quorum/hierarchical-quorum.ts';
import { JointQuorum } from '../../src/quorum/joint-quorum.ts';
import { MajorityQuorum } from '../../src/quorum/majority-quorum.ts';
import { OracleQuorum } from '../../src/quorum/oracle-quorum.ts';
import type { QuorumVerifier } from '../../src/quorum/quorum-verifier.ts';
import { verifierOf } from '../../src/quorum/config-verifier.ts';

const threeByThree = new Map([
  [1, [1, 2, 3]],
  [2, [4, 5, 6]],
  [3, [7, 8, 9]],
]);
const nine = [1, 2, 3, 4, 5, 6, 7, 8, 9];

function contains(verifier: QuorumVerifier, sids: readonly Sid[]): boolean {
  return verifier.containsQuorum(new Set(sids));
}

function fingerprintOf(verifier: QuorumVerifier): string {
  const words: (number | string)[] = [];
  const to: Fingerprint = { number: (value) => words.push(value), text: (value) => words.push(value) };
  verifier.fingerprint(to);
  return words.join(' ');
}

describe('a majority', () => {
  it.each([
    [[1], [1], true],
    [[1], [], false],
    [[1, 2], [1], false],
    [[1, 2], [1, 2], true],
    [[1, 2, 3], [3, 1], true],
    [[1, 2, 3], [2], false],
    [[1, 2, 3, 4], [1, 2], false],
    [[1, 2, 3, 4], [1, 2, 3], true],
    [[1, 2, 3, 4, 5], [5, 3, 1], true],
    [[], [], false],
  ])('of voters %j is reached by %j: %s', (voters, sids, is) => {
    expect(contains(new MajorityQuorum(voters), sids)).toBe(is);
  });

  it('does not count servers that are not voters, however many', () => {
    const verifier = new MajorityQuorum([1, 2, 3]);
    expect(contains(verifier, [1, 7, 8, 9, -1])).toBe(false);
    expect(contains(verifier, [1, 2, 7])).toBe(true);
    expect([1, 7].map((sid) => verifier.isVoter(sid))).toEqual([true, false]);
    expect([1, 7].map((sid) => verifier.weight(sid))).toEqual([1, 0]);
  });

  it('counts a duplicate voter once, and sorts its voters', () => {
    expect(new MajorityQuorum([3, 1, 3, 2]).voters).toEqual([1, 2, 3]);
  });

  it('accepts any object with a membership test', () => {
    const acknowledged = new Map([
      [1, 7],
      [2, 9],
      [3, 5],
    ]);
    const verifier = new MajorityQuorum([1, 2, 3]);
    const upTo = (zxid: number): boolean => verifier.containsQuorum({ has: (sid) => acknowledged.get(sid)! >= zxid });
    expect([5, 7, 8].map((zxid) => upTo(zxid))).toEqual([true, true, false]);
  });
});

describe('a quorum of groups', () => {
  it.each([
    ['two of three groups, two of three servers in each', [1, 2, 4, 5], true],
    ['one complete group and one server in each other', [1, 2, 3, 4, 7], false],
    ['five of nine, in the wrong places', [1, 4, 7, 2, 3], false],
    ['all', nine, true],
    ['none', [], false],
  ])('A56: needs a majority of groups with a majority in each: %s', (_, sids, is) => {
    expect(contains(new HierarchicalQuorum({ voters: nine, groups: threeByThree }), sids)).toBe(is);
  });

  it.each([
    [[1], true],
    [[2, 3], false],
    [[2, 3, 4], false],
    [[1, 4], true],
  ])('A56: counts weights, not servers: of weights 5, 1, 1 and 1, it is reached by %j: %s', (sids, is) => {
    const verifier = new HierarchicalQuorum({ voters: [1, 2, 3, 4], groups: new Map([[1, [1, 2, 3, 4]]]), weights: new Map([[1, 5]]) });
    expect(contains(verifier, sids)).toBe(is);
  });

  it('A56: needs more than half of an even weight, and half of an odd one rounded up', () => {
    const even = new HierarchicalQuorum({
      voters: [1, 2],
      groups: new Map([[1, [1, 2]]]),
      weights: new Map([
        [1, 2],
        [2, 2],
      ]),
    });
    const odd = new HierarchicalQuorum({
      voters: [1, 2],
      groups: new Map([[1, [1, 2]]]),
      weights: new Map([
        [1, 2],
        [2, 1],
      ]),
    });
    expect([contains(even, [1]), contains(odd, [1]), contains(odd, [2])]).toEqual([false, true, false]);
  });

  it('A56: does not count servers of weight 0, nor groups without weight', () => {
    const weights = new Map([7, 8, 9, 3].map((sid): [Sid, number] => [sid, 0]));
    const verifier = new HierarchicalQuorum({ voters: nine, groups: threeByThree, weights });
    expect([3, 9].map((sid) => verifier.weight(sid))).toEqual([0, 0]);
    // Two groups are left, so both are needed; the first one has a weight of 2.
    expect(contains(verifier, [1, 2, 4, 5])).toBe(true);
    expect(contains(verifier, [1, 3, 4, 5])).toBe(false);
    expect(contains(verifier, [4, 5, 6, 7, 8, 9])).toBe(false);
  });

  it('A56: an observer with a weight in a group raises half of the group, as in ZooKeeper, and is not counted', () => {
    const verifier = new HierarchicalQuorum({ voters: [1, 2], groups: new Map([[1, [1, 2, 9]]]), weights: new Map([[9, 2]]) });
    expect(verifier.weight(9)).toBe(0);
    expect(verifier.isVoter(9)).toBe(false);
    expect(contains(verifier, [1, 9])).toBe(false);
    expect(contains(verifier, [1, 2, 9])).toBe(false);
    // Without a weight it has no effect.
    expect(contains(new HierarchicalQuorum({ voters: [1, 2], groups: new Map([[1, [1, 2, 9]]]) }), [1, 2])).toBe(true);
  });

  it.each([
    [
      [
        [1, [1, 2]],
        [2, [2, 3]],
      ],
      undefined,
      /server 2 is in group.1 and in group.2/,
    ],
    [[[1, [1, 2]]], undefined, /server 3 is a voter but in no group/],
    [[[1, [1, 2, 3]]], [[2, -1]], /weight.2 is -1/],
    [[[1, [1, 2, 3]]], [[2, 1.5]], /weight.2 is 1.5/],
  ] as [[number, Sid[]][], [Sid, number][] | undefined, RegExp][])('A56: refuses groups %j with weights %j', (groups, weights, message) => {
    const options = { voters: [1, 2, 3], groups: new Map(groups), ...(weights === undefined ? {} : { weights: new Map(weights) }) };
    expect(() => new HierarchicalQuorum(options)).toThrow(message);
  });
});

describe('an oracle', () => {
  function received(mayGoAlone: boolean, followers: readonly Sid[], voters = [1, 2], own = 1): OracleQuorum {
    const verifier = new OracleQuorum(own, voters);
    verifier.oracleAnswered(mayGoAlone);
    verifier.setFollowers(new Set(followers));
    return verifier;
  }

  it.each([
    [true, [], true],
    [false, [], false],
    [true, [2], false],
    [false, [2], false],
    // A server that has no vote here follows as well.
    [true, [3], true],
  ])(
    'A57: that answered %s to a server with followers %j makes it a quorum alone: %s, and never the other one',
    (said, followers, alone) => {
      const verifier = received(said, followers);
      expect(contains(verifier, [1])).toBe(alone);
      expect(contains(verifier, [1, 3])).toBe(alone);
      expect(contains(verifier, [2])).toBe(false);
      expect(contains(verifier, [2, 3])).toBe(false);
      expect(contains(verifier, [1, 2])).toBe(true);
      expect(contains(verifier, [])).toBe(false);
      expect(contains(verifier, [7])).toBe(false);
    },
  );

  it('A57: denies before its answer has been read', () => {
    expect(contains(new OracleQuorum(1, [1, 2]), [1])).toBe(false);
  });

  it('A57: gives a server outside the two voters no say: neither a leader that was removed, nor an observer', () => {
    const verifier = received(true, [], [1, 2], 3);
    for (const sids of [[1], [2], [3], [1, 3], [2, 3]]) expect(contains(verifier, sids)).toBe(false);
    expect(contains(verifier, [1, 2])).toBe(true);
    // Which must follow the one that leads, though no majority confirms it.
    expect(verifier.mayLackMajority).toBe(true);
  });

  it('is asked again only when the other of the two voters no longer follows', () => {
    const verifier = received(true, [2, 3]);
    expect([verifier.setFollowers(new Set([2])), verifier.setFollowers(new Set([3])), verifier.setFollowers(new Set())]).toEqual([
      false,
      true,
      false,
    ]);
  });

  it('A57: has no effect unless there are two voters', () => {
    expect(contains(received(true, [], [1, 2, 3]), [1])).toBe(false);
    expect(received(false, [], [1, 2, 3]).mayLackMajority).toBe(false);
    expect(received(false, [], [1]).mayLackMajority).toBe(false);
    expect(contains(received(false, [], [1]), [1])).toBe(true);
  });
});

describe('a joint quorum', () => {
  const verifier = new JointQuorum(new MajorityQuorum([1, 2, 3]), new MajorityQuorum([3, 4, 5]));

  it.each([
    [[1, 2], false],
    [[4, 5], false],
    [[1, 2, 4], false],
    [[1, 3, 4], true],
    [[1, 2, 4, 5], true],
  ])('needs a quorum of both configurations, and is reached by %j: %s', (sids, is) => {
    expect(contains(verifier, sids)).toBe(is);
  });

  it('has the voters of both configurations', () => {
    expect(verifier.voters).toEqual([1, 2, 3, 4, 5]);
    expect([1, 5, 6].map((sid) => verifier.isVoter(sid))).toEqual([true, true, false]);
    expect([1, 5, 6].map((sid) => verifier.weight(sid))).toEqual([1, 1, 0]);
  });

  it('uses the active weight, and the next one for a new voter', () => {
    const weighted = new HierarchicalQuorum({
      voters: [3, 4],
      groups: new Map([[1, [3, 4]]]),
      weights: new Map([
        [3, 0],
        [4, 6],
      ]),
    });
    const both = new JointQuorum(new MajorityQuorum([1, 2, 3]), weighted);
    expect([1, 3, 4].map((sid) => both.weight(sid))).toEqual([1, 1, 6]);
  });

  it('may lack a majority if the active configuration may', () => {
    expect(new JointQuorum(new OracleQuorum(1, [1, 2]), new MajorityQuorum([1, 2, 3])).mayLackMajority).toBe(true);
    expect(verifier.mayLackMajority).toBe(false);
  });
});

describe('the verifier of a configuration', () => {
  const servers = ['1:participant', '2:participant', '3:participant', '4:observer']
    .map((server) => server.split(':'))
    .map(([sid, role]) => `server.${sid}=h${sid}:2888:3888:${role}`)
    .join('\n');

  it('is a majority of its participants', () => {
    const verifier = verifierOf(parseQuorumConfig(`${servers}\nversion=0`));
    expect(verifier.voters).toEqual([1, 2, 3]);
    expect(contains(verifier, [1, 2])).toBe(true);
    expect(contains(verifier, [1, 4])).toBe(false);
  });

  it('A56: uses its groups and weights if there are any', () => {
    const verifier = verifierOf(parseQuorumConfig(`${servers}\ngroup.1=1:2:3\nweight.1=5\nweight.3=0\nversion=0`));
    expect([1, 2, 3, 4].map((sid) => verifier.weight(sid))).toEqual([5, 1, 0, 0]);
    expect(contains(verifier, [1])).toBe(true);
    expect(contains(verifier, [2, 3])).toBe(false);
  });
});

it('any two quorums of one verifier have a voter in common', () => {
  const voters = [1, 2, 3, 4, 5, 6, 7];
  const groups = new Map([
    [1, [1, 2]],
    [2, [3, 4, 5]],
    [3, [6, 7]],
  ]);
  const some = fc.subarray(voters);
  const weights = fc.array(fc.nat(3), { minLength: 7, maxLength: 7 });
  let quorums = 0;
  fc.assert(
    fc.property(weights, some, some, (weight, a, b) => {
      const hierarchical = new HierarchicalQuorum({ voters, groups, weights: new Map(voters.map((sid, index) => [sid, weight[index]!])) });
      const majority = new MajorityQuorum(voters);
      for (const verifier of [majority, hierarchical, new JointQuorum(majority, hierarchical)]) {
        if (!contains(verifier, a) || !contains(verifier, b)) continue;
        quorums++;
        expect(a.some((sid) => b.includes(sid) && verifier.weight(sid) > 0)).toBe(true);
      }
    }),
    { numRuns: breadth(200, 2000), seed: 1 },
  );
  expect(quorums).toBeGreaterThan(breadth(10, 100));
});

it('the fingerprints of two verifiers differ if they may decide differently', () => {
  const oracle = new OracleQuorum(1, [1, 2]);
  const before = fingerprintOf(oracle);
  oracle.oracleAnswered(true);
  const said = fingerprintOf(oracle);
  oracle.setFollowers(new Set([2]));
  const groups = new Map([[1, [1, 2, 3]]]);
  const all = [
    before,
    said,
    fingerprintOf(oracle),
    fingerprintOf(new MajorityQuorum([1, 2])),
    fingerprintOf(new MajorityQuorum([1, 2, 3])),
    fingerprintOf(new HierarchicalQuorum({ voters: [1, 2, 3], groups })),
    fingerprintOf(new HierarchicalQuorum({ voters: [1, 2, 3], groups, weights: new Map([[2, 2]]) })),
    fingerprintOf(new JointQuorum(new MajorityQuorum([1, 2]), new MajorityQuorum([1, 2, 3]))),
  ];
  expect(new Set(all).size).toBe(all.length);
  expect(fingerprintOf(new MajorityQuorum([2, 1]))).toBe(fingerprintOf(new MajorityQuorum([1, 2])));
});
