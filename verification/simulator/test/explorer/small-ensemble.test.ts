/**
 * The quorums of the explorer's ensembles are written by hand here and compared with the verifiers
 * that servers use.
 */
import { verifierOf } from '@tskeeper/core/internal';
import { describe, expect, test } from 'vitest';
import { ensembleNames, ensembleOf, initialFile, isQuorum, smallEnsemble } from '../../src/explorer/small-ensemble.ts';
import { membersText } from '../../src/explorer/txn-names.ts';

function subsets(sids: readonly number[]): number[][] {
  return sids.reduce<number[][]>((all, sid) => [...all, ...all.map((part) => [...part, sid])], [[]]);
}

describe.each(ensembleNames)('the ensemble "%s"', (name) => {
  const ensemble = ensembleOf(name);
  const configs = ensemble.configs.length === 0 ? [ensemble.members] : ensemble.configs;

  test.each(configs.map((config) => ({ config, members: membersText(config) })))(
    'has the quorums of the members $members in the list that the verifier names',
    ({ config, members }) => {
      const parts = subsets([1, 2, 3, 4]);
      const listed = parts.filter((sids) => isQuorum(ensemble, sids, members));
      expect(listed).toEqual(parts.filter((sids) => verifierOf(config).containsQuorum(new Set(sids))));
      expect(listed.length).toBeGreaterThan(1);
    },
  );
});

test('an ensemble of one or two servers has only the quorum of all servers', () => {
  expect(subsets([1, 2]).filter((sids) => isQuorum(smallEnsemble('equal', 2), sids))).toEqual([[1, 2]]);
  expect(subsets([1]).filter((sids) => isQuorum(smallEnsemble('equal', 1), sids))).toEqual([[1]]);
});

test('the first files of a server that is to join name it', () => {
  const ensemble = ensembleOf('growing');
  expect(membersText(initialFile(ensemble, 4))).toBe('1 2 3 4');
  expect(initialFile(ensemble, 3)).toBe(ensemble.members);
});
