import { describe, expect, test } from 'vitest';
import { StateGraph } from '../../src/explorer/state-graph.ts';

describe('the nearest state from which a search may continue', () => {
  test('is reached by the fewest known choices', () => {
    const graph = new StateGraph((state) => state === 3 || state === 4);
    for (const [from, choice, target] of [
      [0, 10, 1],
      [0, 11, 2],
      [1, 12, 5],
      [5, 13, 3],
      [2, 14, 4],
    ] as const)
      graph.add(from, choice, target);
    expect(graph.nearest(0)).toEqual({ state: 4, choices: [11, 14] });
    expect(graph.nearest(1)).toEqual({ state: 3, choices: [12, 13] });
  });

  test('does not exist where every state that follows is finished, also in a circle', () => {
    const open = new Set([3]);
    const graph = new StateGraph((state) => open.has(state));
    graph.add(0, 10, 1);
    graph.add(1, 11, 2);
    graph.add(2, 12, 0);
    expect(graph.nearest(0)).toBeUndefined();
    expect(graph.nearest(2)).toBeUndefined();
    // A state that leads to one that was finished, and to one that was not.
    graph.add(4, 13, 1);
    graph.add(4, 14, 3);
    expect(graph.nearest(4)).toEqual({ state: 3, choices: [14] });
    open.clear();
    expect(graph.nearest(4)).toBeUndefined();
  });

  test('is found among many states, and given up when it is far', () => {
    const last = 100_000;
    const graph = new StateGraph((state) => state === last);
    for (let state = 0; state < last; state++) graph.add(state, 1, state + 1);
    expect(graph.nearest(0)).toBeUndefined();
    expect(graph.nearest(last - 3)).toEqual({ state: last, choices: [1, 1, 1] });
  });
});
