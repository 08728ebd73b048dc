/**
 * The events of an ensemble for an observer: elections, epochs, how learners are synchronised, and
 * changes of logs.
 */
import { CreateMode, openAcl } from '@tskeeper/protocol';
import { expect, it } from 'vitest';
import { silentObserver } from '../../src/index.ts';
import { EnsembleClient } from './ensemble-client.ts';
import { Ensemble } from './ensemble.ts';

it('an observer of events receives the election, the epoch, each durable txn, and the reason why a role ended', () => {
  const ensemble = new Ensemble(2, 3, 0, 0);
  const lines: string[] = [];
  for (const node of ensemble.nodes) {
    const note = (...words: readonly unknown[]) => void lines.push([node.sid, ...words].join(' '));
    node.observer = {
      ...silentObserver,
      elected: (leader) => note('elected', leader),
      epochStarted: (epoch, historyEnd) => note('epochStarted', epoch, historyEnd),
      roleChanged: (role) => note('roleChanged', role),
      roleEnded: (reason) => note('roleEnded', reason),
      txnDurable: (zxid) => note('logged', zxid.toString(16)),
      learnerSyncStarted: (by, from) => note('learnerSyncStarted', by, from),
    };
    node.start();
  }
  expect(ensemble.runUntil(() => ensemble.isWhole, 5000)).toBe(true);
  expect(lines.filter((line) => !line.includes('looking')).toSorted()).toEqual([
    '1 elected 3',
    '1 epochStarted 1 0',
    '1 roleChanged follower',
    '2 elected 3',
    '2 epochStarted 1 0',
    '2 roleChanged follower',
    '3 elected 3',
    '3 epochStarted 1 0',
    '3 learnerSyncStarted diff memory',
    '3 learnerSyncStarted diff memory',
    '3 roleChanged leader',
  ]);
  lines.length = 0;
  const client = new EnsembleClient().connect(ensemble.nodes[0]!, 2000);
  ensemble.runUntil(() => client.isAnswered, 5000);
  const asked = client.ask('create', { path: '/a', data: null, acl: openAcl, flags: CreateMode.persistent });
  ensemble.runUntil(() => asked.answer !== undefined, 5000);
  ensemble.run(50);
  expect(lines.toSorted()).toEqual([
    '1 logged 100000001',
    '1 logged 100000002',
    '2 logged 100000001',
    '2 logged 100000002',
    '3 logged 100000001',
    '3 logged 100000002',
  ]);
  lines.length = 0;
  ensemble.nodes[2]!.crash();
  ensemble.runUntil(() => ensemble.leader !== undefined, 5000);
  expect(lines).toContain('1 roleEnded leader disconnected');
});
