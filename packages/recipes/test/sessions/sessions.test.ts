import { type Client, connect } from '@tskeeper/client';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Group, Lock, NodeCache, Sessions } from '../../src/index.ts';
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
  it('B23: open another client when the session of the last has expired, and call the listeners', async () => {
    const sessions = await t.until(Sessions.start(open));
    const seen: Client[] = [];
    const end = sessions.onSession((zk) => seen.push(zk));
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
    expect(opened[2]!.endReason).toBe('closed');
    expect(sessions.signal.reason).toMatchObject({ name: 'RecipeError', code: 'Closed' });
  });

  it('start with an array of servers, as a client does', async () => {
    const servers = ['nowhere:1', { host: 'server', port: 2181 }];
    const sessions = await t.until(Sessions.start(servers, t.world.options()));
    // They are those at the time of the call.
    servers.splice(0);
    await expire(t, sessions.client);
    await t.until(sessions.ready());
    expect(sessions.client.servers.toSorted()).toEqual(['nowhere:1', 'server:2181']);
    await t.until(sessions.close());
  });

  it('of a second copy of the package are accepted by recipes, and continue in the next session', async () => {
    vi.resetModules();
    const copy = await import('../../src/index.ts');
    expect(copy.Sessions).not.toBe(Sessions);
    const sessions = await t.until(copy.Sessions.start(open));
    const lock = new Lock(sessions, '/lock');
    const cache = new NodeCache(sessions, '/lock');
    await t.until(Promise.all([lock.run(() => undefined), cache.ready()]));
    const last = sessions.client;
    await expire(t, last);
    const held = await t.until(lock.acquire());
    expect(held.client).toBe(sessions.client);
    expect(held.client).not.toBe(last);
    const seen: unknown[] = [];
    const observing = (async () => {
      for await (const members of new Group(sessions, '/group').observe()) seen.push(members);
    })();
    await t.until(cache.ready());
    await t.until(sessions.close());
    await t.until(observing);
    expect(cache.isClosed).toBe(true);
    expect(await failureOf(lock.acquire())).toMatchObject({ name: 'RecipeError', code: 'Closed' });
  });

  it('end when the program closes their client, or no other can be opened', async () => {
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

  it('report a client once, also to a listener that is added during the report', async () => {
    const sessions = await t.until(Sessions.start(open));
    const seen: Client[] = [];
    let isFirst = true;
    sessions.onSession(() => {
      if (!isFirst) sessions.onSession((zk) => seen.push(zk));
      isFirst = false;
    });
    await expire(t, sessions.client);
    await t.world.untilSo(() => opened.length === 2);
    await t.settle();
    expect(seen).toEqual([opened[1]]);
    await t.until(sessions.close());
  });

  it('do not call removed listeners', async () => {
    const sessions = await t.until(Sessions.start(open));
    const group = new Group(sessions, '/g');
    const each = sessions.onSession.bind(sessions);
    let listening = 0;
    vi.spyOn(sessions, 'onSession').mockImplementation((begin) => {
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

  it('leave no client open when they are closed while the next one is being opened', async () => {
    const sessions = await t.until(Sessions.start(open));
    t.world.wire.name('server', []);
    const { address } = t.world;
    const { client } = sessions;
    t.world.wire.name('server', [address]);
    await expire(t, client);
    await t.until(sessions.close());
    await t.pass(1000);
    expect(opened.filter((zk) => zk.endReason === undefined)).toEqual([]);
  });
});

describe('Sessions.start', () => {
  it('B23: takes a connect string, whose connectTimeoutMs limits the first connection only', async () => {
    const options = t.world.options({ connectTimeoutMs: 5000 });
    const sessions = await t.until(Sessions.start('server:2181', options));
    const { client } = sessions;
    t.world.wire.name('server', []);
    t.world.break();
    const waiting = t.until(sessions.ready(), 120_000);
    await t.pass(30_000, 1000);
    t.world.wire.name('server', [t.world.address]);
    await waiting;
    await t.world.untilSo(() => sessions.client !== client);
    expect([client.endReason, sessions.client.state, (await t.until(sessions.ready())).sessionId]).toEqual([
      'expired',
      'connected',
      sessions.client.sessionId,
    ]);
    await t.until(sessions.close());
    expect(await failureOf(sessions.ready())).toMatchObject({ code: 'Closed' });
  });

  it('B23: returns Sessions whose ready waits for the next client until its timeout or an abort of its signal', async () => {
    let openNext!: () => void;
    const next = new Promise<void>((resolve) => (openNext = resolve));
    let isFirst = true;
    const sessions = await t.until(
      Sessions.start(async (signal) => {
        if (!isFirst) await next;
        isFirst = false;
        return await open(signal);
      }),
    );
    expect(await t.until(sessions.ready())).toBe(sessions.client);
    await expire(t, sessions.client);
    const waiting = sessions.ready();
    expect(await t.until(failureOf(sessions.ready({ timeoutMs: 100 })))).toMatchObject({ code: 'TimedOut' });
    expect(await t.until(failureOf(sessions.ready({ signal: AbortSignal.abort(new Error('enough')) })))).toMatchObject({
      message: 'enough',
    });
    openNext();
    expect(await t.until(waiting)).toBe(opened[1]);
    await t.until(sessions.close());
  });
});
