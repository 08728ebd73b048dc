import { type Client, connect } from '@tskeeper/client';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Group, Sessions } from '../../src/index.ts';
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

  it('tell of a client once, also who begins to listen while it is told of', async () => {
    const sessions = await t.until(Sessions.start(open));
    const seen: Client[] = [];
    let isFirst = true;
    sessions.each(() => {
      if (!isFirst) sessions.each((zk) => seen.push(zk));
      isFirst = false;
    });
    await expire(t, sessions.client);
    await t.world.untilSo(() => opened.length === 2);
    await t.settle();
    expect(seen).toEqual([opened[1]]);
    await t.until(sessions.close());
  });

  it('are listened to by nobody who has left', async () => {
    const sessions = await t.until(Sessions.start(open));
    const group = new Group(sessions, '/g');
    const each = sessions.each.bind(sessions);
    let listening = 0;
    vi.spyOn(sessions, 'each').mockImplementation((begin) => {
      const end = each(begin);
      listening++;
      return () => {
        listening--;
        end();
      };
    });
    const look = async () => {
      for await (const { members } of group.observe()) return members;
      return undefined;
    };
    for (let times = 0; times < 5; times++) expect(await t.until(look())).toEqual([]);
    expect(listening).toBe(0);
    await t.until(sessions.close());
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
