/** A share of the connections is closed: which ones, how fast, and not before their last replies. */
import { openAcl } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { breadth } from '../../../../test/breadth.ts';
import { EnsembleClient } from '../zab/ensemble-client.ts';
import { Ensemble, type Node } from '../zab/ensemble.ts';

function serving(seed: number, clients: number): { ensemble: Ensemble; node: Node; all: EnsembleClient[] } {
  const ensemble = new Ensemble(seed, 3, 0, 0);
  ensemble.throttle = { skipAcl: true };
  for (const node of ensemble.nodes) node.start();
  expect(ensemble.runUntil(() => ensemble.isWhole, 5000)).toBe(true);
  const node = ensemble.nodes.find((each) => each !== ensemble.leader)!;
  const all = Array.from({ length: clients }, () => new EnsembleClient().connect(node, 20_000));
  expect(ensemble.runUntil(() => all.every(({ isAnswered }) => isAnswered), 5000)).toBe(true);
  return { ensemble, node, all };
}

function shed(node: Node, share: number): number {
  let count = -1;
  node.turn((peer) => {
    count = peer.server!.shedConnections(share, node.now);
  });
  return count;
}

const closed = (all: readonly EnsembleClient[]) => all.filter(({ isClosed }) => isClosed).length;

describe('D16: shedding connections', () => {
  it.each([0, 0.25, 1])('closes exactly the share %d, a few at a time', (share) => {
    const { ensemble, node, all } = serving(41, breadth(40, 100));
    const count = Math.round(share * all.length);
    expect(shed(node, share)).toBe(count);
    const beganMs = ensemble.nowMs;
    if (count > 0) {
      expect(ensemble.runUntil(() => closed(all) > 0, 100, 1)).toBe(true);
      expect(closed(all)).toBeLessThanOrEqual(10);
    }
    expect(ensemble.runUntil(() => closed(all) === count, 5000, 5)).toBe(true);
    expect(ensemble.nowMs - beganMs).toBeGreaterThanOrEqual((count / 10 - 1) * 20);
    ensemble.run(500);
    expect(closed(all)).toBe(count);
    // The sessions live on.
    expect([...node.peer!.inspect.sessions()].length).toBe(all.length);
  });

  it('chooses at random, so that each connection has the same chance', () => {
    const { ensemble, node, all } = serving(42, 20);
    expect(shed(node, 0.5)).toBe(10);
    expect(ensemble.runUntil(() => closed(all) === 10, 2000)).toBe(true);
    const pattern = all.map(({ isClosed }) => (isClosed ? 'x' : '.')).join('');
    expect(pattern).not.toMatch(/^x{10}|x{10}$/);
  });

  it('sends the replies that a client waits for before it closes the connection', () => {
    const { ensemble, node, all } = serving(43, 5);
    const asked = all.map((client, at) => client.ask('create', { path: `/c${at}`, data: null, acl: openAcl, flags: 0 }));
    ensemble.run(1);
    expect(shed(node, 1)).toBe(5);
    expect(ensemble.runUntil(() => closed(all) === 5, 3000)).toBe(true);
    expect(asked.map(({ answer }) => answer?.err)).toEqual([0, 0, 0, 0, 0]);
  });

  it.each([44, 45, 46, 47])('spares the connection of the operator who asks for it, which gets the number (seed %i)', (seed) => {
    const { ensemble, all } = serving(seed, 6);
    const [admin] = all;
    const asked = admin!.ask('shedConnections', { perMille: 1000 });
    expect(ensemble.runUntil(() => closed(all) === 5, 3000)).toBe(true);
    ensemble.run(300);
    expect([asked.answer?.body, admin!.isClosed]).toEqual([{ count: 5 }, false]);
  });
});
