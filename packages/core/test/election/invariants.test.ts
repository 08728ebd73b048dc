/**
 * Many elections in small ensembles, each determined by its seed; small-ensemble.ts checks the
 * invariants. A failure names the seed, and `specOf(seed, kind)` reproduces the run.
 */
import { describe, expect, it } from 'vitest';
import { breadth } from '../../../../test/breadth.ts';
import type { Sid } from '@tskeeper/protocol';
import type { QuorumVerifier } from '../../src/quorum/quorum-verifier.ts';
import { type Broken, type EnsembleSpec, type ServerSpec, SmallEnsemble } from './small-ensemble.ts';

/**
 * `mixed`: some of the servers always wait in full, as Java servers do. `calm`: no faults, and all
 * start at once.
 */
type Kind = 'calm' | 'early' | 'mixed' | 'full';

function chance(seed: number): (limit: number) => number {
  let state = Math.imul(seed, 0x9e3779b1) | 0;
  return (limit) => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x6d2b79f5) | 0;
    return ((state ^ (state >>> 13)) >>> 0) % limit;
  };
}

function specOf(seed: number, kind: Kind, broken?: Broken): EnsembleSpec {
  const below = chance(seed);
  const voters = 1 + below(7);
  const observers = below(3) === 0 ? 1 + below(2) : 0;
  const weighted = voters >= 3 && below(3) === 0;
  const spread = kind === 'calm' ? 1 : [1, 50, 400][below(3)]!;
  const servers = Array.from({ length: voters + observers }, (_, index): ServerSpec => {
    const epoch = 1 + below(3);
    return {
      // Sids have gaps, and observers the highest, so that an observer would win if it counted.
      sid: 1 + index * 3,
      role: index < voters ? 'participant' : 'observer',
      epoch,
      zxid: epoch * 2 ** 32 + below(4),
      startMs: below(spread),
      earlySettling: kind === 'mixed' ? below(2) === 0 : kind !== 'full',
    };
  });
  const voterSids = servers.slice(0, voters).map(({ sid }) => sid);
  const groups = new Map<number, Sid[]>();
  const weights = new Map<Sid, number>();
  if (weighted) {
    const groupCount = 1 + below(3);
    for (const [index, sid] of voterSids.entries()) {
      const group = index % groupCount;
      groups.set(group, [...(groups.get(group) ?? []), sid]);
      // The first of each group has a weight, so that there are quorums.
      if (index >= groupCount && below(3) === 0) weights.set(sid, below(3));
    }
  }
  const rough = kind !== 'calm' && below(4) > 0;
  const minority = weighted ? 0 : Math.floor((voters - 1) / 2);
  return {
    seed,
    servers,
    ...(weighted ? { groups, weights } : {}),
    delayMaxMs: kind === 'calm' ? 20 : [2, 20, 90, 300][below(4)]!,
    faultsUntilMs: rough ? 200 + below(2500) : 0,
    faults: { crash: below(40), cut: below(40), close: below(50), leaderCrash: below(60) },
    downForEver: kind === 'calm' ? [] : voterSids.slice(0, below(minority + 1)),
    maxNotificationIntervalMs: below(3) === 0 ? 60_000 : 1000,
    ...(broken === undefined ? {} : { broken }),
  };
}

const blockSize = breadth(20, 500);

/** The first seed of each block, which is one test; in `npm test` there is one block. */
function blocks(count: number): number[] {
  return breadth(
    [0],
    Array.from({ length: count / blockSize }, (_, block) => block * blockSize),
  );
}

/** No faults unless a test adds some. */
const quiet = {
  delayMaxMs: 5,
  faultsUntilMs: 0,
  faults: { crash: 0, cut: 0, close: 0, leaderCrash: 0 },
  downForEver: [],
  maxNotificationIntervalMs: 60_000,
} as const;

/** By when all must have settled after the last fault: the longest silence, and a few elections. */
function boundMs(spec: EnsembleSpec): number {
  return spec.faultsUntilMs + Math.min(spec.maxNotificationIntervalMs, 2 * spec.faultsUntilMs) + 20_000;
}

/** Runs one ensemble and returns its violations. */
function play(spec: EnsembleSpec): SmallEnsemble {
  const ensemble = new SmallEnsemble(spec);
  ensemble.planFaults();
  ensemble.run(boundMs(spec));
  if (ensemble.violations.length === 0) ensemble.violations.push(...ensemble.unsettled());
  return ensemble;
}

function playAll(kind: Kind, from: number, count: number, broken?: Broken): { violations: string[]; leaders: number } {
  const outcome = { violations: [] as string[], leaders: 0 };
  for (let seed = from; seed < from + count; seed++) {
    const ensemble = play(specOf(seed, kind, broken));
    if (ensemble.violations.length > 0) outcome.violations.push(`${kind} ${seed}: ${ensemble.violations[0]}`);
    outcome.leaders += ensemble.tally.leaders;
  }
  return outcome;
}

describe('elections in small ensembles', () => {
  it.each(blocks(4000))(
    `C4-7, C4-10: of servers that start together without faults, the best one leads and all others follow (${blockSize} seeds from %i)`,
    (from) => {
      for (let seed = from; seed < from + blockSize; seed++) {
        const spec = specOf(seed, 'calm');
        const ensemble = play(spec);
        expect(ensemble.violations, `seed ${seed}`).toEqual([]);
        const [best] = spec.servers
          .filter(({ sid, role }) => role === 'participant' && (spec.weights?.get(sid) ?? 1) > 0)
          .sort((a, b) => b.epoch - a.epoch || b.zxid - a.zxid || b.sid - a.sid);
        expect(ensemble.leader(), `seed ${seed}`).toBe(best!.sid);
      }
    },
  );

  describe.each(['early', 'mixed', 'full'] as const)('with faults, settling: %s', (kind) => {
    it.each(blocks(2000))(
      `C4-7, C4-11: no server leads without a quorum or with less than its voters have, and finally one leads and all others follow (${blockSize} seeds from %i)`,
      (from) => {
        const { violations, leaders } = playAll(kind, from, blockSize);
        expect(violations).toEqual([]);
        // Many of them lost a leader during the run.
        expect(leaders).toBeGreaterThan(blockSize * 1.2);
      },
    );
  });

  it.each(blocks(1000))(`settle safely if servers wrongly believe all others unreachable (${blockSize} seeds from %i)`, (from) => {
    for (let seed = from; seed < from + blockSize; seed++) {
      expect(play({ ...specOf(seed, 'early'), falseAlarms: true }).violations, `seed ${seed}`).toEqual([]);
    }
  });

  it('C4-6: a late voter finds the leader, and no other server enters an election because of it', () => {
    let joined = 0;
    for (let seed = 0; seed < breadth(20, 300); seed++) {
      const spec = specOf(seed, 'calm');
      const voters = spec.servers.filter(({ role }) => role === 'participant');
      if (voters.length < 3 || spec.weights !== undefined) continue;
      const { sid } = voters[seed % voters.length]!;
      const servers = spec.servers.map((server) => (server.sid === sid ? { ...server, startMs: 50_000 } : server));
      const ensemble = new SmallEnsemble({ ...spec, servers });
      ensemble.run(49_000);
      expect(ensemble.unsettled(), `seed ${seed}`).toEqual([]);
      const [leader, before] = [ensemble.leader(), ensemble.elections()];
      ensemble.run(120_000);
      expect(ensemble.unsettled(), `seed ${seed}`).toEqual([]);
      expect(ensemble.violations, `seed ${seed}`).toEqual([]);
      expect(ensemble.leader(), `seed ${seed}`).toBe(leader);
      expect(ensemble.elections(), `seed ${seed}`).toEqual(before.set(sid, 1));
      joined++;
    }
    expect(joined).toBeGreaterThan(breadth(3, 100));
  });

  it.each([
    // Followers notice within 30 ms, and a message takes 5 ms at most.
    [true, 1, 60],
    [false, 200, 260],
  ])(
    "C4-11: after the leader's process is killed, the next one is elected without delay (finalizing early: %s, %i to %i ms)",
    (early, least, most) => {
      for (let seed = 0; seed < breadth(9, 200); seed++) {
        const servers = Array.from({ length: 3 + 2 * (seed % 3) }, (_, index): ServerSpec => {
          return { sid: index + 1, role: 'participant', epoch: 1, zxid: 2 ** 32, startMs: 0, earlySettling: early };
        });
        const ensemble = new SmallEnsemble({ ...quiet, seed, servers });
        ensemble.run(10_000);
        expect(ensemble.unsettled(), `seed ${seed}`).toEqual([]);
        const [killedAt, killed] = [ensemble.nowMs, ensemble.crashLeader()];
        expect(killed, `seed ${seed}`).toBe(servers.length);
        ensemble.run(20_000);
        expect([...ensemble.unsettled(), ...ensemble.violations], `seed ${seed}`).toEqual([]);
        expect(ensemble.leader(), `seed ${seed}`).toBe(servers.length - 1);
        expect(ensemble.tally.electedAtMs - killedAt, `seed ${seed}`).toBeGreaterThanOrEqual(least);
        expect(ensemble.tally.electedAtMs - killedAt, `seed ${seed}`).toBeLessThanOrEqual(most);
      }
    },
  );
});

describe('the checks of small ensembles', () => {
  const half = (sound: QuorumVerifier): QuorumVerifier => {
    return tampered(sound, (sids) => sound.voters.filter((sid) => sids.has(sid)).length * 2 >= sound.voters.length);
  };
  const anyone = (sound: QuorumVerifier): QuorumVerifier => tampered(sound, (sids) => sound.voters.some((sid) => sids.has(sid)));
  const noWeights = (sound: QuorumVerifier): QuorumVerifier => ({
    ...tampered(sound, (sids) => sound.containsQuorum(sids)),
    weight: () => 1,
  });

  it.each<[string, Broken, RegExp]>([
    ['the lower zxid wins', { mirror: 'zxid' }, /its history is not the best/],
    ['the lower epoch wins', { mirror: 'epoch' }, /its history is not the best/],
    ['half of the voters are a quorum', { verifier: half }, /without the votes of a quorum|began an epoch without a quorum/],
    ['one voter is a quorum', { verifier: anyone }, /without the votes of a quorum|lead at the same time/],
    ['a server of weight 0 may win', { verifier: noWeights }, /has no voice/],
  ])('fail if %s', (_, broken, complaint) => {
    const { violations } = playAll('early', 0, breadth(60, 200), broken);
    expect(violations.filter((violation) => complaint.test(violation)).length).toBeGreaterThan(0);
  });
});

function tampered(sound: QuorumVerifier, containsQuorum: QuorumVerifier['containsQuorum']): QuorumVerifier {
  return {
    voters: sound.voters,
    isVoter: (sid) => sound.isVoter(sid),
    active: sound,
    weight: (sid) => sound.weight(sid),
    containsQuorum,
    mayLackMajority: false,
    fingerprint: (to) => sound.fingerprint(to),
  };
}
