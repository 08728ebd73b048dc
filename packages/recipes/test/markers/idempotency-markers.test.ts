import { op } from '@tskeeper/client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Queue } from '../../src/index.ts';
import { IdempotencyMarkers } from '../../src/markers/idempotency-markers.ts';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

const readCreateAndDelete = 1 + 4 + 8;

describe('a mark', () => {
  it('remains the only one when it may not be written to, and each write fails with NoAuth', async () => {
    const acl = [{ perms: readCreateAndDelete, id: { scheme: 'world', id: 'anyone' } }];
    const queue = new Queue(t.zk, '/jobs', { acl });
    for (let round = 0; round < 3; round++)
      expect(await t.until(failureOf(queue.put('a')))).toMatchObject({ code: 'NoAuth', failedIndex: 1 });
    expect(await t.childrenOf('/jobs-aside/marks')).toHaveLength(1);
    expect(await t.childrenOf('/jobs')).toEqual([]);
  });

  it('is used again after an invalid request, and deleted when it is closed', async () => {
    const marks = new IdempotencyMarkers(t.zk, '/marks', undefined);
    for (let round = 0; round < 3; round++)
      expect(await t.until(failureOf(marks.write([{ op: 'create', path: '/something', data: 5 as never }])))).toBeInstanceOf(TypeError);
    expect(await t.childrenOf('/marks')).toHaveLength(1);
    await t.until(marks.close());
    expect(await t.childrenOf('/marks')).toEqual([]);
  });

  it('is used again after a rejection by the server', async () => {
    const marks = new IdempotencyMarkers(t.zk, '/marks', undefined);
    for (let round = 0; round < 3; round++)
      expect(await t.until(failureOf(marks.write([op.delete('/nothing')])))).toMatchObject({ code: 'NoNode', failedIndex: 0 });
    await t.until(marks.write([op.create('/something')]));
    expect(await t.childrenOf('/marks')).toHaveLength(1);
    await t.until(marks.close());
    expect(await t.childrenOf('/marks')).toEqual([]);
  });
});
