import { type ClientView, op } from '@tskeeper/client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { jsonCodec, Lock, Model, RecipeError, SchemaSet, textCodec } from '../../src/index.ts';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

const number = (data: Uint8Array | null) => {
  if (!/^\d+$/.test(new TextDecoder().decode(data ?? undefined))) throw new Error('expected digits');
};

const schemas = new SchemaSet(
  [
    { path: '/counts/{count}', ephemeral: 'cannot', sequential: 'cannot', check: number, canBeDeleted: false },
    { path: '/counts/any', canBeDeleted: true },
    { path: '/locks/{lock}/{place}', ephemeral: 'must', sequential: 'must' },
    new Model('/jobs/{job}', { codec: jsonCodec<number>(), mode: 'persistentSequential' }).schema,
  ],
  { unmatched: 'refused' },
);

/** The message, if the schema rejects the call and no request was sent. */
async function refusal(lines: string[], attempt: () => Promise<unknown>): Promise<string> {
  lines.length = 0;
  const error = await t.until(failureOf(attempt()));
  expect(error).toMatchObject({ name: 'RecipeError', code: 'Refused' });
  expect(lines).toEqual([]);
  return (error as RecipeError).message;
}

describe('a schema set', () => {
  it('B28: lets a view do what its schemas allow, and rejects the rest without a request', async () => {
    const { zk, lines } = await t.recorded();
    const view = schemas.view(zk);
    await t.until(view.create('/counts/a', '7', { parents: true }));
    await t.until(view.setData('/counts/a', new TextEncoder().encode('8')));
    await t.until(view.update('/counts/a', () => '9'));
    await t.until(view.update('/counts/b', () => '1', { create: true }));
    await t.until(view.create('/counts/any', 'x', { mode: 'ephemeral' }));
    await t.until(view.delete('/counts/any'));
    await t.until(view.multi([op.setData('/counts/a', '1'), op.check('/counts')]));
    expect((await t.until(view.getData('/counts/a'))).stat.version).toBe(3);
    const by = 'by the schema of /counts/{count}, ';
    const refused: [() => Promise<unknown>, string][] = [
      [() => view.create('/counts/c', 'x'), `${by}/counts/c cannot have these data: expected digits`],
      [() => view.create('/counts/c', '1', { mode: 'ephemeral' }), `${by}/counts/c cannot be ephemeral`],
      [() => view.create('/counts/c', '1', { mode: 'persistentSequential' }), `${by}/counts/c cannot be sequential`],
      [() => view.create('/counts/c'), `${by}/counts/c cannot have these data: expected digits`],
      [() => view.setData('/counts/a', null), `${by}/counts/a cannot have these data: expected digits`],
      [() => view.delete('/counts/a'), `${by}/counts/a must not be deleted`],
      [() => view.deleteRecursive('/counts/a'), `${by}/counts/a must not be deleted`],
      [() => view.create('/other', '1'), 'no schema matches /other, so nothing may be written to it; add a schema, or allow others'],
      [() => view.ensurePath('/other'), 'no schema matches /other, so nothing may be written to it; add a schema, or allow others'],
      [() => view.ensurePath('/locks/a/b'), 'by the schema of /locks/{lock}/{place}, /locks/a/b must be ephemeral'],
      [
        () => view.multi([op.setData('/counts/a', '1'), op.setData('/counts/a', 'x')]),
        `ops[1], setData /counts/a: ${by}/counts/a cannot have these data: expected digits`,
      ],
      [() => view.multi([op.create('/counts/c', 'x')]), `ops[0], create /counts/c: ${by}/counts/c cannot have these data: expected digits`],
      [() => view.multi([op.delete('/counts/a')]), `ops[0], delete /counts/a: ${by}/counts/a must not be deleted`],
      [() => view.create('/jobs/j-', '1'), 'by the schema of /jobs/{job}, /jobs/j- must be sequential'],
    ];
    for (const [attempt, sentence] of refused) expect(await refusal(lines, attempt)).toBe(sentence);
    expect(await t.until(failureOf(view.update('/counts/a', () => 'x')))).toMatchObject({ code: 'Refused' });
    expect(await t.until(failureOf(view.deleteRecursive('/counts')))).toMatchObject({
      message: 'by the schema of /counts/{count}, /counts must not be deleted with everything below it',
    });
    expect((await t.until(t.zk.getData('/counts/a'))).data).toEqual(new TextEncoder().encode('1'));
  });

  it('B28: applies below a chroot of the view, for models and for recipes', async () => {
    const view = schemas.view(t.zk);
    const locks = view.chroot('/locks');
    await t.until(locks.ensurePath('/'));
    const held = await t.until(new Lock(locks, '/a').acquire());
    await t.until(held.multi([op.create('/a/x-', null, { mode: 'ephemeralSequential' })]));
    await t.until(held.release());
    expect(await t.until(failureOf(locks.create('/a/b')))).toMatchObject({
      message: 'by the schema of /locks/{lock}/{place}, /locks/a/b must be ephemeral',
    });
    const jobs = new Model('/jobs/{job}', { codec: textCodec, mode: 'persistentSequential' });
    expect(await t.until(failureOf(jobs.at(view, { job: 'j-' }).create('{')))).toMatchObject({ code: 'Refused' });
    await t.until(jobs.at(view.chroot('/'), { job: 'j-' }).create('{}'));
    expect((await t.until(view.getChildren('/jobs'))).children).toEqual(['j-0000000000']);
  });

  it('B28: shares the session, its state and its events with the client', async () => {
    const zk = await t.client();
    const view: ClientView = schemas.view(zk);
    const states: string[] = [];
    const off = view.on('state', ({ state }) => states.push(state));
    expect([view.sessionId, view.state, view.clock]).toEqual([zk.sessionId, 'connected', zk.clock]);
    t.world.break();
    await t.pass(1000);
    off();
    expect(states).toEqual(['Disconnected', 'SyncConnected']);
  });

  it('B28: allows other paths by default, and rejects invalid templates', async () => {
    const view = new SchemaSet([{ path: '/a', canBeDeleted: false }]).view(t.zk);
    await t.until(view.create('/b', 'x'));
    await t.until(view.ensurePath('/c/d'));
    await t.until(view.deleteRecursive('/c'));
    expect(() => new SchemaSet([{ path: 'a' }])).toThrow(TypeError);
  });
});
