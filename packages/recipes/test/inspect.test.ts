/**
 * What console.log shows of recipes with a state: the state, a path and a session, never a password
 * or data.
 */
import { inspect } from 'node:util';
import { formatSessionId } from '@tskeeper/client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  ChildrenCache,
  DoubleBarrier,
  Election,
  Lease,
  Lock,
  NodeCache,
  Queue,
  Semaphore,
  ServiceDiscovery,
  Sessions,
  TreeCache,
} from '../src/index.ts';
import { expire } from './support/faults.ts';
import { RecipeWorld } from './support/recipe-world.ts';

let t: RecipeWorld;
let sessionId: string;

beforeEach(async () => {
  t = await RecipeWorld.start();
  sessionId = formatSessionId(t.zk.sessionId);
});

afterEach(async () => {
  await t.close();
});

/** In one line. */
function shownOf(object: object): string {
  const shown = inspect(object, { breakLength: Infinity });
  expect(shown).not.toContain(inspect(t.zk.sessionPassword).slice(13, 30));
  expect(shown).not.toContain(Buffer.from(t.zk.sessionPassword).toString('hex'));
  expect(shown).not.toContain('secret');
  return shown;
}

describe('console.log', () => {
  it('shows a hold by its state, path and session', async () => {
    const held = await t.until(new Lock(t.zk, '/lock', { data: 'secret' }).acquire());
    const form = (state: string) =>
      `Hold { state: '${state}', path: '${held.path}', fencingToken: ${held.fencingToken}n, sessionId: '${sessionId}' }`;
    expect(shownOf(held)).toBe(form('held'));
    await t.until(held.release());
    expect(shownOf(held)).toBe(form('released'));
  });

  it('shows several holds by their common state, and each by its path', async () => {
    const together = await t.until(new Semaphore(t.zk, '/semaphore', { size: 2 }).acquireMany(2));
    const paths = together.holds.map(({ path }) => `'${path}'`).join(', ');
    expect(shownOf(together)).toBe(`HoldSet { state: 'held', paths: [ ${paths} ], sessionId: '${sessionId}' }`);
  });

  it('shows a lease by its state, path and remaining time', async () => {
    const lease = await t.until(new Lease(t.zk, '/lease', { durationMs: 1000, holder: 'a' }).acquire());
    expect(shownOf(lease)).toMatch(/^HeldLease \{ state: 'held', path: '\/lease\/[^']+', fencingToken: \d+n, leftMs: \d+/);
    expect(shownOf(lease)).toContain(`sessionId: '${sessionId}' }`);
    await t.until(lease.release());
    expect(shownOf(lease)).toContain(`state: 'released'`);
  });

  it('shows a leadership, a participation and a claim as holds', async () => {
    const queue = new Queue(t.zk, '/queue');
    await t.until(queue.put('secret'));
    const leadership = await t.until(new Election(t.zk, '/election', { data: 'secret' }).lead());
    const participation = await t.until(new DoubleBarrier(t.zk, '/barrier', 1).enter());
    const item = await t.until(queue.claim());
    for (const [name, each] of Object.entries({ Leadership: leadership, Participation: participation, ClaimedItem: item })) {
      const { path, fencingToken } = each;
      const claim = each === item ? ` claimPath: '${item.claimPath}',` : '';
      expect(shownOf(each)).toBe(
        `${name} { state: 'held', path: '${path}',${claim} fencingToken: ${fencingToken}n, sessionId: '${sessionId}' }`,
      );
    }
    await t.until(leadership.resign());
    expect(shownOf(leadership)).toContain(`state: 'released'`);
  });

  it('shows a cache by its state, path and size', async () => {
    await t.until(t.zk.create('/kept/below', 'secret', { parents: true }));
    const caches = {
      NodeCache: () => new NodeCache(t.zk, '/kept/below'),
      ChildrenCache: () => new ChildrenCache(t.zk, '/kept'),
      TreeCache: () => new TreeCache(t.zk, '/kept'),
      ServiceCache: () => new ServiceDiscovery(t.zk, '/services').cache('mail'),
    };
    for (const [name, make] of Object.entries(caches)) {
      const cache = make();
      expect(shownOf(cache)).toContain(`${name} { state: 'outOfStep', path: '${cache.path}'`);
      await t.until(cache.ready());
      const znodes = { NodeCache: 1, ChildrenCache: 2, TreeCache: 2, ServiceCache: 0 }[name];
      expect(shownOf(cache)).toBe(`${name} { state: 'inStep', path: '${cache.path}', znodes: ${znodes}, sessionId: '${sessionId}' }`);
      await t.until(cache.close());
      expect(shownOf(cache)).toContain(`state: 'closed'`);
    }
  });

  it('shows Sessions by the state and the session of the current client', async () => {
    const sessions = await t.until(Sessions.start(() => t.client()));
    const form = (state: string) =>
      `Sessions { state: '${state}', sessionId: '${formatSessionId(sessions.client.sessionId)}', server: ${inspect(sessions.client.connectedServer)} }`;
    expect(shownOf(sessions)).toBe(form('connected'));
    await expire(t, sessions.client);
    await t.until(sessions.ready());
    expect(shownOf(sessions)).toBe(form('connected'));
    await t.until(sessions.close());
    expect(shownOf(sessions)).toBe(form('closed'));
  });
});
