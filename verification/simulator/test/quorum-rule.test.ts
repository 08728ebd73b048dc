import { verifierOf } from '@tskeeper/core/internal';
import type { QuorumConfig, Sid } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { type EnsembleServer, isQuorum, withoutFavourite } from '../src/record/quorum-rule.ts';

function ensembleOf(
  sids: readonly Sid[],
  groups: ReadonlyMap<number, readonly Sid[]> = new Map(),
  weights: ReadonlyMap<Sid, number> = new Map(),
  mayGoAlone?: Sid,
): Map<string, EnsembleServer> {
  return new Map(
    sids.map((sid) => {
      const group = [...groups].find(([, members]) => members.includes(sid))?.[0];
      return [`server-${sid}`, { sid, isVoter: true, group, weight: weights.get(sid), mayGoAlone: sid === mayGoAlone }];
    }),
  );
}

function configOf(sids: readonly Sid[], groups: ReadonlyMap<number, readonly Sid[]>, weights: ReadonlyMap<Sid, number>): QuorumConfig {
  const servers = new Map(sids.map((sid) => [sid, { sid, addresses: [], role: 'participant' as const }]));
  return { version: 0, servers, groups, weights };
}

const configs: readonly [string, readonly Sid[], ReadonlyMap<number, readonly Sid[]>, ReadonlyMap<Sid, number>][] = [
  ['three voters', [1, 2, 3], new Map(), new Map()],
  ['four voters', [1, 2, 3, 4], new Map(), new Map()],
  [
    'one group with a server of weight 0',
    [1, 2, 3],
    new Map([[1, [1, 2, 3]]]),
    new Map([
      [1, 1],
      [2, 3],
      [3, 0],
    ]),
  ],
  [
    'three groups, one with weight 0',
    [1, 2, 3, 4, 5],
    new Map([
      [1, [1, 4]],
      [2, [2, 5]],
      [3, [3]],
    ]),
    new Map([
      [1, 2],
      [2, 1],
      [3, 0],
      [4, 1],
      [5, 1],
    ]),
  ],
];

describe('the quorum rule of the checkers', () => {
  it.each(configs)('agrees with the quorum rule of the servers: %s', (_name, sids, groups, weights) => {
    const verifier = verifierOf(configOf(sids, groups, weights));
    const ensemble = ensembleOf(sids, groups, weights);
    for (let mask = 0; mask < 2 ** sids.length; mask++) {
      const present = new Set(sids.filter((_, at) => (mask & (1 << at)) !== 0));
      expect([
        mask,
        isQuorum(
          ensemble,
          Array.from(present, (sid) => `server-${sid}`),
        ),
      ]).toEqual([mask, verifier.containsQuorum(present)]);
    }
  });

  it('accepts the server that the oracle favours alone only where it is one of two voters', () => {
    const three = ensembleOf([1, 2, 3], new Map(), new Map(), 2);
    expect([isQuorum(three, ['server-2']), isQuorum(three, ['server-2', 'server-3'])]).toEqual([false, true]);
    const outside = new Map(
      Array.from(three, ([name, server]): [string, EnsembleServer] => [name, { ...server, isVoter: server.sid !== 2 }]),
    );
    expect([isQuorum(outside, ['server-2', 'server-3']), isQuorum(outside, ['server-1', 'server-3'])]).toEqual([false, true]);
    const alone = ensembleOf([1, 2], new Map(), new Map(), 2);
    expect(isQuorum(withoutFavourite(alone), ['server-2'])).toBe(false);
  });

  it('accepts the server that the oracle favours alone, and never the other one alone', () => {
    const ensemble = ensembleOf([1, 2], new Map(), new Map(), 2);
    expect([['server-2'], ['server-1'], ['server-1', 'server-2'], []].map((names) => isQuorum(ensemble, names))).toEqual([
      true,
      false,
      true,
      false,
    ]);
  });
});
