import { type Client, connect } from '@tskeeper/client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Sessions } from '../../src/index.ts';
import { expire } from '../support/faults.ts';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';

let t: RecipeWorld;
let opened: Client[];

beforeEach(async () => {
  t = await RecipeWorld.start();
  opened = [];
});

afterEach(async () => {
  await t.close();
});

const open = async (signal: AbortSignal): Promise<Client> => {
  const zk = await connect('server:2181', t.world.options({ signal }));
  opened.push(zk);
  return zk;
};

describe('sessions', () => {
  it('B23: open another client when the session of the last has expired, and tell who asked', async () => {
    const sessions = await t.until(Sessions.start(open));
    const seen: Client[] = [];
    const end = sessions.each((zk) => seen.push(zk));
    expect(seen).toEqual([sessions.client]);
    await expire(t, sessions.client);
    await t.world.untilSo(() => seen.length === 2);
    expect(sessions.client).toBe(opened[1]);
    end();
    await expire(t, sessions.client);
    await t.world.untilSo(() => opened.length === 3);
    await t.settle();
    expect(seen).toEqual(opened.slice(0, 2));
    await t.until(sessions.close());
    expect(opened[2]!.closedBecause).toBe('closed');
    expect(sessions.signal.reason).toMatchObject({ name: 'RecipeError', code: 'Closed' });
  });

  it('are over when their client is closed by the program, or no other can be opened', async () => {
    const closed = await t.until(Sessions.start(open));
    await t.until(closed.client.close());
    expect(closed.signal.reason).toMatchObject({ code: 'Closed', message: 'the client is closed' });
    let first = true;
    const failing = await t.until(
      Sessions.start((signal) => {
        if (!first) throw new Error('no more');
        first = false;
        return open(signal);
      }),
    );
    await expire(t, failing.client);
    await t.settle();
    expect(failing.signal.reason).toMatchObject({ message: 'no more' });
    await t.until(failing.close());
    expect(await failureOf(Sessions.start(() => Promise.reject(new Error('not even one'))))).toMatchObject({ message: 'not even one' });
  });

  it('that are closed while the next client is being opened open none', async () => {
    const sessions = await t.until(Sessions.start(open));
    t.world.wire.name('server', []);
    const { address } = t.world;
    const { client } = sessions;
    t.world.wire.name('server', [address]);
    await expire(t, client);
    await t.until(sessions.close());
    await t.pass(1000);
    expect(opened.filter((zk) => zk.closedBecause === undefined)).toEqual([]);
  });
});
