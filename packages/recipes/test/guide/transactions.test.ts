/** Tests what docs/guides/recipes/transactions.md says, in virtual time. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { TwoPhaseCommit, type Vote } from '../../src/index.ts';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';
import * as guide from './transactions.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

class Books implements guide.Books {
  readonly entries = new Map<string, string>();
  readonly #canPrepare: boolean;

  constructor(canPrepare = true) {
    this.#canPrepare = canPrepare;
  }

  async prepare(id: string, order: string): Promise<boolean> {
    this.entries.set(id, order);
    return this.#canPrepare;
  }

  async finish(id: string, outcome: Vote): Promise<void> {
    this.entries.set(id, outcome);
  }

  async unfinished(): Promise<readonly string[]> {
    return [...this.entries].filter(([, state]) => state !== 'commit' && state !== 'abort').map(([id]) => id);
  }
}

test('a transfer is applied by both sites or by neither', async () => {
  await t.until(guide.transfer(t.zk, '1', 'five from berlin to paris'));
  await t.until(guide.transfer(t.zk, '2', 'six from berlin to paris'));
  const [berlin, paris, poor] = [new Books(), new Books(), new Books(false)];
  const zk = await t.client();
  expect(await t.until(Promise.all([guide.takePart(t.zk, '1', 'berlin', berlin), guide.takePart(zk, '1', 'paris', paris)]))).toEqual([
    'commit',
    'commit',
  ]);
  expect(await t.until(Promise.all([guide.takePart(t.zk, '2', 'berlin', poor), guide.takePart(zk, '2', 'paris', paris)]))).toEqual([
    'abort',
    'abort',
  ]);
  expect([...paris.entries]).toEqual([
    ['1', 'commit'],
    ['2', 'abort'],
  ]);
  expect(await t.childrenOf('/transfers')).toEqual([]);
});

test('a site that crashes after its vote finishes when it is back, and one that crashes before it aborts', async () => {
  const books = new Books();
  await t.until(guide.transfer(t.zk, '1', 'five'));
  await t.until(guide.transfer(t.zk, '2', 'six'));
  const doomed = await t.client();
  const failing = failureOf(guide.takePart(doomed, '1', 'paris', books));
  const prepared = await t.until(new TwoPhaseCommit(doomed, '/transfers/2', { presence: true }).join('paris'));
  await books.prepare('2', 'six');
  await t.settle();
  await t.until(doomed.close());
  expect(await t.until(failing)).toMatchObject({ name: 'KeeperError' });
  await prepared.close();
  const berlin = new Books();
  expect(await t.until(guide.takePart(t.zk, '2', 'berlin', berlin))).toBe('abort');
  expect(await t.until(guide.takePart(t.zk, '1', 'berlin', berlin))).toBe('commit');
  await books.prepare('3', 'never begun');
  await t.until(guide.recover(await t.client(), 'paris', books));
  expect([...books.entries]).toEqual([
    ['1', 'commit'],
    ['2', 'abort'],
    ['3', 'abort'],
  ]);
});

test('the wait for a site that never joins ends at its time limit', async () => {
  await t.until(guide.transfer(t.zk, '1', 'five'));
  const taking = guide.takePart(t.zk, '1', 'berlin', new Books());
  expect(await t.until(guide.settle(await t.client(), '1', 5000))).toBe('abort');
  expect(await t.until(taking)).toBe('abort');
  expect(await t.until(guide.settle(t.zk, '1', 5000))).toBe('abort');
});

test('twelve sites get the same outcome', async () => {
  const names = Array.from({ length: 12 }, (_, at) => `site-${at}`);
  await t.until(new TwoPhaseCommit(t.zk, '/many').begin(names));
  const outcomes = await t.until(Promise.all(names.map((name) => guide.agree(t.zk, '/many', name, 'commit'))));
  expect(new Set(outcomes)).toEqual(new Set(['commit']));
});
