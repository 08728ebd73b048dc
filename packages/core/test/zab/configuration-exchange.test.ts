/**
 * How servers exchange their configuration, and what clients read of it.
 */
import { makeZxid, type Zxid } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { Ensemble, type Node } from './ensemble.ts';

const servers = [1, 2, 3].map((sid) => `server.${sid}=h${sid}:2888:3888:participant`).join('\n');

/** The content of /zookeeper/config, and its mzxid. */
function configOf({ peer }: Node): [text: string, mzxid: Zxid] {
  const { tree } = peer!.replica;
  const node = tree.find('/zookeeper/config');
  return [tree.dataOf(node)!.toString(), tree.mzxidOf(node)];
}

function started(reconfigEnabled: boolean): Ensemble {
  const ensemble = new Ensemble(7, 3);
  ensemble.configText = `${servers}\nversion=0`;
  ensemble.reconfigEnabled = reconfigEnabled;
  for (const node of ensemble.nodes) node.start();
  expect(ensemble.runUntil(() => ensemble.isWhole, 3000)).toBe(true);
  return ensemble;
}

function newLeader(ensemble: Ensemble): void {
  const old = ensemble.leader!;
  old.crash();
  expect(ensemble.runUntil(() => ensemble.leader !== undefined, 3000)).toBe(true);
  old.start();
  expect(ensemble.runUntil(() => ensemble.isWhole, 3000)).toBe(true);
}

describe('/zookeeper/config', () => {
  it('contains what the operator has written, on every server and under every leader', () => {
    const ensemble = started(false);
    const expected = [ensemble.configText, 0];
    expect(ensemble.nodes.map(configOf)).toEqual([expected, expected, expected]);
    newLeader(ensemble);
    expect(ensemble.nodes.map(configOf)).toEqual([expected, expected, expected]);
  });

  it("is each server's own if reconfiguration is disabled, whatever a snapshot of the leader contains (ZOOKEEPER-2819)", () => {
    const ensemble = started(false);
    const behind = ensemble.nodes.find((node) => node !== ensemble.leader)!;
    behind.crash();
    behind.folder.log.length = behind.folder.durable = 0;
    behind.folder.snapshot = undefined;
    ensemble.run(2000);
    ensemble.configText = `${servers}\nserver.4=h4:2888:3888:observer\nversion=0`;
    const snapshots = ensemble.snapshots;
    behind.start();
    expect(ensemble.runUntil(() => ensemble.isWhole, 3000)).toBe(true);
    expect(ensemble.snapshots).toBe(snapshots + 1);
    // The txns after the snapshot have been applied, so digests are compared again.
    expect(behind.peer!.replica.isExact).toBe(true);
    expect(configOf(behind)[0]).toBe(ensemble.configText);
    expect(configOf(ensemble.leader!)[0]).not.toBe(ensemble.configText);
  });

  it('has the version of the first epoch if reconfiguration is enabled, and keeps it under later leaders and over restarts', () => {
    const ensemble = started(true);
    const version = makeZxid(Math.max(...ensemble.leaders.keys()), 0);
    const expected = [`${servers}\nversion=${version.toString(16)}`, version];
    expect(ensemble.nodes.map(configOf)).toEqual([expected, expected, expected]);
    newLeader(ensemble);
    // A server that restarts with only the file gets it from the others, so that it is accepted and
    // may lead.
    expect(ensemble.nodes.map(configOf)).toEqual([expected, expected, expected]);
    newLeader(ensemble);
    expect(ensemble.nodes.map(configOf)).toEqual([expected, expected, expected]);
  });
});

describe('a configuration with voters at other addresses', () => {
  const later = `${servers.replace('h3', 'h9')}\nversion=900000000`;

  it('keeps a server outside that does not follow configurations, and its log says why', () => {
    const ensemble = started(false);
    const [last, ...others] = ensemble.nodes as [Node, ...Node[]];
    for (const node of ensemble.nodes) node.crash();
    ensemble.configText = later;
    for (const node of others) node.start();
    expect(ensemble.runUntil(() => ensemble.leader !== undefined, 3000)).toBe(true);
    ensemble.configText = `${servers}\nversion=0`;
    last.start();
    ensemble.run(3000);
    expect(last.peer!.server).toBeUndefined();
    expect(ensemble.notes).toContainEqual(
      expect.stringMatching(/ 1 closes .*the ensemble uses configuration 900000000 .*Set reconfigEnabled=true/),
    );
    // It has acknowledged nothing by the wrong count.
    expect(last.folder.currentEpoch).toBeLessThan(ensemble.leader!.folder.currentEpoch);
  });
});
