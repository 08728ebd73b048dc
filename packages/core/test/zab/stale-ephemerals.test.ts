/**
 * The end of a session is in the log like any txn, so a server that loses part of its log must undo
 * its effects on sessions and their ephemerals, in memory and on disk, and one that was away must
 * get them (ZOOKEEPER-5010, ZOOKEEPER-2845).
 */
import { CreateMode, ErrorCode, openAcl } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { EnsembleClient } from './ensemble-client.ts';
import { Ensemble, type Node } from './ensemble.ts';

const ephemeral = (path: string) => ({ path, data: null, acl: openAcl, flags: CreateMode.ephemeral });

function started(seed: number): Ensemble {
  const ensemble = new Ensemble(seed, 5, 0, 0);
  for (const node of ensemble.nodes) node.start();
  expect(ensemble.runUntil(() => ensemble.isWhole, 5000)).toBe(true);
  return ensemble;
}

function joined(ensemble: Ensemble, node: Node, client = new EnsembleClient()): EnsembleClient {
  client.connect(node, 20_000);
  expect(ensemble.runUntil(() => client.isAnswered, 5000)).toBe(true);
  return client;
}

const has = ({ peer }: Node, path: string) => peer!.replica.tree.find(path) !== 0;
const sessionsOf = ({ peer }: Node) => peer!.replica.sessions.count;

/** The same on every server, and no ephemeral without its session. */
function expectSame(ensemble: Ensemble): void {
  ensemble.run(200);
  ensemble.compare();
  const states = ensemble.nodes.map((node) => {
    const { replica } = node.peer!;
    const owners = [...replica.tree.owners()].map(([high, low]) => `${high}:${low} ${replica.ephemeralPaths(high, low).join()}`);
    return `${sessionsOf(node)} ${owners.toSorted().join(' ')}`;
  });
  expect(new Set(states).size).toBe(1);
}

/** Only the leader and one follower get the leader's proposals from here on. */
function alone(ensemble: Ensemble): { leader: Node; follower: Node; others: Node[] } {
  const leader = ensemble.leader!;
  const [follower, ...others] = ensemble.nodes.filter((node) => node !== leader);
  for (const one of [leader, follower!]) for (const other of others) ensemble.cut(one, other);
  return { leader, follower: follower!, others };
}

/**
 * Both return when the others have continued without them; if these have written nothing, their log
 * can be truncated to a part of theirs.
 */
function comeBack(ensemble: Ensemble, leader: Node, follower: Node, by: 'TRUNC' | 'SNAP'): void {
  for (const node of [leader, follower]) node.crash();
  expect(ensemble.runUntil(() => ensemble.leader !== undefined, 5000)).toBe(true);
  if (by === 'SNAP') joined(ensemble, ensemble.leader!);
  const before = [ensemble.truncations, ensemble.snapshots] as const;
  ensemble.healAll();
  for (const node of [leader, follower]) node.start();
  expect(ensemble.runUntil(() => ensemble.isWhole, 5000)).toBe(true);
  const counts = { TRUNC: ensemble.truncations - before[0], SNAP: ensemble.snapshots - before[1] };
  expect(counts[by]).toBeGreaterThan(0);
}

describe.each([1, 2, 3])('seed %i: a server', (seed) => {
  it.each(['TRUNC', 'SNAP'] as const)('that loses the end of a session by %s has the session and its ephemerals again', (by) => {
    const ensemble = started(seed);
    const client = joined(ensemble, ensemble.leader!);
    const created = client.ask('create', ephemeral('/e'));
    expect(ensemble.runUntil(() => created.answer !== undefined, 5000)).toBe(true);
    ensemble.run(50);
    const { leader, follower } = alone(ensemble);
    client.ask('closeSession', undefined);
    // On two disks of five, and applied by neither until it looks for another leader.
    ensemble.run(100);
    expect([leader, follower].every((node) => node.folder.durable === node.folder.log.length)).toBe(true);
    comeBack(ensemble, leader, follower, by);
    expect(ensemble.nodes.map((node) => has(node, '/e'))).toEqual([true, true, true, true, true]);
    expectSame(ensemble);
    // It is alive at whatever server its client connects to.
    joined(ensemble, follower, client);
    expect(client.timeoutMs).toBeGreaterThan(0);
  });

  it.each(['TRUNC', 'SNAP'] as const)('that loses a session by %s has neither the session nor its ephemerals any more', (by) => {
    const ensemble = started(seed);
    const client = joined(ensemble, ensemble.leader!);
    ensemble.run(50);
    const { leader, follower } = alone(ensemble);
    client.ask('create', ephemeral('/e'));
    ensemble.run(100);
    comeBack(ensemble, leader, follower, by);
    expect(ensemble.nodes.map((node) => has(node, '/e'))).toEqual([false, false, false, false, false]);
    expectSame(ensemble);
  });

  it('that was down when a session ended has nothing left of it, however it is synchronised', () => {
    const ensemble = started(seed);
    const client = joined(ensemble, ensemble.leader!);
    const created = client.ask('create', ephemeral('/e'));
    expect(ensemble.runUntil(() => created.answer !== undefined, 5000)).toBe(true);
    ensemble.run(50);
    const away = ensemble.nodes.find((node) => node !== ensemble.leader)!;
    expect(has(away, '/e')).toBe(true);
    away.crash();
    const closed = client.ask('closeSession', undefined);
    expect(ensemble.runUntil(() => closed.answer !== undefined, 5000)).toBe(true);
    expect(closed.answer!.err).toBe(ErrorCode.Ok);
    ensemble.leader!.crash();
    expect(ensemble.runUntil(() => ensemble.leader !== undefined, 5000)).toBe(true);
    for (const node of ensemble.nodes) if (node.isDown) node.start();
    expect(ensemble.runUntil(() => ensemble.isWhole, 5000)).toBe(true);
    expect(ensemble.nodes.map((node) => has(node, '/e'))).toEqual([false, false, false, false, false]);
    expectSame(ensemble);
  });
});
