/**
 * The quorums of the explorer's ensembles are written by hand here and compared with the verifiers
 * that servers use.
 */
import { expect, test } from 'vitest';
import { ensembleNames, isQuorum, smallEnsemble } from '../../src/explorer/small-ensemble.ts';

const parts = [[], [1], [2], [3], [1, 2], [1, 3], [2, 3], [1, 2, 3]];

test.each(ensembleNames)('the verifier and the list name the same quorums of the ensemble "%s"', (name) => {
  const ensemble = smallEnsemble(name, 3);
  const listed = parts.filter((sids) => isQuorum(ensemble, sids));
  expect(listed).toEqual(parts.filter((sids) => ensemble.verifier.containsQuorum(new Set(sids))));
  expect(listed.length).toBeGreaterThan(1);
});

test('an ensemble of one or two servers has only the quorum of all servers', () => {
  expect([[], [1], [2], [1, 2]].filter((sids) => isQuorum(smallEnsemble('equal', 2), sids))).toEqual([[1, 2]]);
  expect([[], [1]].filter((sids) => isQuorum(smallEnsemble('equal', 1), sids))).toEqual([[1]]);
});
