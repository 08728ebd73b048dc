import { describe, expect, it } from 'vitest';
import { breadth, sample } from '../../../../test/breadth.ts';
import { silentObserver } from '../../src/index.ts';
import { Ensemble, type Node } from './ensemble.ts';

describe('an ensemble', () => {
  it('elects a leader, and every server serves', () => {
    const ensemble = new Ensemble(1, 3);
    for (const node of ensemble.nodes) node.start();
    expect(ensemble.runUntil(() => ensemble.isWhole, 3000)).toBe(true);
    ensemble.run(1000);
    ensemble.isQuiet = true;
    ensemble.run(100);
    expect(ensemble.acknowledged.size).toBeGreaterThan(10);
    ensemble.compare();
  });
});

describe('a server whose votes are the best but which no learner can reach', () => {
  it.each(sample([3, 5], 1))('gives up, and another one of %i becomes and stays the leader', (voters) => {
    const ensemble = new Ensemble(2, voters);
    const best = ensemble.nodes.at(-1)!;
    const reasons: string[] = [];
    best.observer = { ...silentObserver, roleEnded: (reason) => void reasons.push(reason) };
    ensemble.closedPorts.add(best.sid);
    for (const node of ensemble.nodes) node.start();
    expect(ensemble.runUntil(() => ensemble.isWhole, 5000)).toBe(true);
    expect(ensemble.leader).not.toBe(best);
    // It has not waited for the end of initLimit.
    expect(reasons.length).toBeGreaterThan(0);
    expect(new Set(reasons)).toEqual(new Set(['voters elsewhere']));
    expect(ensemble.nodes.filter((node) => node.peer!.role === 'learning')).toContain(best);
    const epochs = ensemble.leaders.size;
    ensemble.run(10_000);
    expect(ensemble.leaders.size).toBe(epochs);
  });
});

/** When a leader has just begun, most is promised and least is on disk. */
function crashAtTheStart(ensemble: Ensemble, victim: Node): void {
  const { nodes, leaders, dice } = ensemble;
  ensemble.healAll();
  for (const node of nodes) if (node.isDown) node.start();
  (ensemble.leader ?? victim).crash();
  victim.crash();
  const epochs = leaders.size;
  ensemble.runUntil(() => leaders.size > epochs, 2000, 0.2);
  ensemble.run(dice.below(40) / 10);
  for (const node of nodes) {
    if (!node.isDown) node.crash();
    // A quorum is enough to continue, and it need not be the same one.
    if (dice.below(4) > 0) node.start();
  }
}

/**
 * Faults at random moments, then none: all servers serve again, with one history that contains
 * everything acknowledged.
 */
function storm(seed: number): Ensemble {
  const voters = [3, 3, 3, 5][seed % 4]!;
  const observers = [1, 0, 2][seed % 3]!;
  const ensemble = new Ensemble(seed, voters, observers);
  ensemble.observerMasterEnabled = observers > 1 || seed % 2 === 1;
  // Epochs that are soon exhausted.
  if (seed % 4 === 1) ensemble.counterMax = 40 + (seed % 7) * 20;
  const { dice, nodes } = ensemble;
  const anyNode = () => nodes[dice.below(nodes.length)]!;
  for (const node of nodes) node.start();
  for (let round = 0; round < 25; round++) {
    ensemble.run(20 + dice.below(200));
    const node = anyNode();
    switch (dice.below(10)) {
      case 0:
      case 1:
        if (!node.isDown) node.crash();
        break;
      case 2:
      case 3:
        if (node.isDown) node.start();
        break;
      case 4:
        ensemble.leader?.crash();
        break;
      case 5:
        for (const each of nodes) if (!each.isDown) each.crash();
        break;
      case 6:
        ensemble.cut(node, anyNode());
        break;
      case 7:
        crashAtTheStart(ensemble, anyNode());
        break;
      default:
        ensemble.healAll();
        for (const each of nodes) if (each.isDown) each.start();
    }
  }
  ensemble.healAll();
  for (const node of nodes) if (node.isDown) node.start();
  if (!ensemble.runUntil(() => ensemble.isWhole, 20_000))
    throw new Error(`no whole ensemble 20 s after the last fault: ${ensemble.describe()}`);
  ensemble.run(500);
  ensemble.isQuiet = true;
  // Until the sessions of silent clients have expired, and nothing is left to be written.
  ensemble.run(4000);
  if (!ensemble.runUntil(() => ensemble.isWhole, 20_000)) throw new Error('it fell apart in peace');
  ensemble.run(200);
  ensemble.compare();
  return ensemble;
}

describe('an ensemble with random faults', () => {
  const seeds = Number(process.env['TSKEEPER_STORMS'] ?? breadth(4, 60));
  const from = Number(process.env['TSKEEPER_STORMS_FROM'] ?? 1);

  it(`survives ${seeds} runs with one history that contains all acknowledged txns`, () => {
    let acknowledged = 0;
    let epochs = 0;
    for (let seed = from; seed < from + seeds; seed++) {
      try {
        const ensemble = storm(seed);
        acknowledged += ensemble.acknowledged.size;
        epochs += ensemble.leaders.size;
      } catch (error) {
        throw new Error(`seed ${seed}: ${(error as Error).message}`, { cause: error });
      }
    }
    expect(acknowledged).toBeGreaterThan(seeds * 10);
    expect(epochs).toBeGreaterThan(seeds * 3);
  });
});
