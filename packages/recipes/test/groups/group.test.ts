import { type Client, connect } from '@tskeeper/client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Group, type Membership, Sessions } from '../../src/index.ts';
import { expire, forgetful } from '../support/faults.ts';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

const path = '/workers';
const names = (members: Membership['members']): string => members.map(({ name }) => name).join(' ');

/** What an observer receives, and how its loop ends. */
function watched(group: Group): { readonly seen: string[]; readonly over: Promise<unknown> } {
  const seen: string[] = [];
  const over = (async () => {
    for await (const { members, isSynced } of group.observe()) seen.push(`${names(members)}${isSynced ? '' : ' ?'}`);
    return 'it was closed';
  })().catch((error: unknown) => error);
  return { seen, over };
}

describe('a group', () => {
  it('B2, C1-5: has its members as ephemeral children, with their data', async () => {
    const { zk, lines } = await t.recorded();
    await t.until(t.zk.create(path));
    const alice = await t.until(new Group(zk, path).join('alice', { data: 'port 1' }));
    await t.settle();
    expect(lines).toEqual(['create /workers/alice ephemeral', 'exists /workers/alice watch']);
    await t.until(new Group(t.zk, path).join('bob'));
    expect((await t.until(t.zk.exists(`${path}/alice`)))!.ephemeralOwner).toBe(zk.sessionId);
    const members = await t.until(new Group(t.zk, path).members());
    expect(members.map(({ name, data }) => [name, new TextDecoder().decode(data ?? undefined)])).toEqual([
      ['alice', 'port 1'],
      ['bob', ''],
    ]);
    await t.until(alice.close());
    expect(names(await t.until(new Group(zk, path).members()))).toBe('bob');
    expect(await t.until(new Group(zk, '/none').members())).toEqual([]);
  });

  it('C1-5: loses a crashed member when the ensemble expires its session, and notifies all observers', async () => {
    const { seen } = watched(new Group(t.zk, path));
    await t.settle();
    const doomed = await t.client({ sessionTimeoutMs: 4000 });
    await t.until(new Group(doomed, path).join('alice'));
    const bob = await t.until(new Group(await t.client(), path).join('bob'));
    await t.settle();
    expect(seen).toEqual(['', 'alice', 'alice bob']);
    const [cable] = [...t.world.wire.cnxns].filter(({ dialer }) => dialer.address === '10.1.0.2');
    t.world.wire.cut(cable!.dialer.address, cable!.listener.address);
    await t.pass(8000);
    expect(seen.slice(3)).toEqual(['bob']);
    await t.until(bob.setData('other'));
    await t.settle();
    expect(seen.slice(4)).toEqual(['bob']);
  });

  it('shows observers without a connection that their list may be out of date', async () => {
    const zk = await t.client();
    await t.until(new Group(t.zk, path).join('alice'));
    const { seen, over } = watched(new Group(zk, path));
    await t.settle();
    t.world.break();
    await t.pass(1000);
    expect(seen).toEqual(['alice', 'alice ?', 'alice']);
    await t.until(zk.close());
    expect(await t.until(over)).toBe('it was closed');
  });

  it('is observed, and joined, through one session after another', async () => {
    const sessions = await t.until(Sessions.start((signal) => connect('server:2181', t.world.options({ signal }))));
    const group = new Group(sessions, path);
    const { seen, over } = watched(group);
    await t.until(group.join('alice'));
    await expire(t, sessions.client);
    await t.pass(1000);
    expect(seen.at(-1)).toBe('alice');
    expect(names(await t.until(new Group(t.zk, path).members()))).toBe('alice');
    await t.until(new Group(t.zk, path).join('bob'));
    await t.settle();
    expect(seen.at(-1)).toBe('alice bob');
    await t.until(sessions.close());
    expect(await t.until(over)).toBe('it was closed');
    const lone = await t.client();
    const ended = watched(new Group(lone, path));
    await t.settle();
    await expire(t, lone);
    expect(await t.until(ended.over)).toMatchObject({ code: 'SessionExpired' });
  });

  it('is observed until the Sessions end, and throws the reason if that was an error', async () => {
    const sessions = await t.until(Sessions.start(() => connect('server:2181', t.world.options({ connectTimeoutMs: Infinity }))));
    const look = async () => {
      for await (const _membership of new Group(sessions, '/g').observe());
    };
    const looking = failureOf(look());
    await t.settle();
    await t.until(failureOf(sessions.client.addAuth('nonsense', 'x')));
    expect(await t.until(looking)).toMatchObject({ code: 'AuthFailed' });
  });

  it('C1-2: costs each member the same number of requests, however many members there are', async () => {
    const members: Client[] = [];
    for (let count = 0; count < 100; count++) members.push(count % 25 === 0 ? await t.client() : members.at(-1)!);
    await t.until(Promise.all(members.map((zk, index) => new Group(zk, path).join(`member ${index}`))));
    const { zk, lines } = await t.recorded();
    const { seen } = watched(new Group(zk, path));
    await t.pass(500);
    expect(seen).toHaveLength(1);
    lines.length = 0;
    const one = await t.until(new Group(zk, path).join('one more'));
    await t.settle();
    expect(lines).toEqual(['create /workers/one more ephemeral', 'getData /workers/one more', 'exists /workers/one more watch']);
    lines.length = 0;
    await t.until(one.close());
    await t.settle();
    expect(lines.filter((line) => !line.startsWith('removeWatches'))).toEqual(['exists /workers/one more', 'delete /workers/one more']);
    expect(seen).toHaveLength(3);
  });

  it("C1-5: uses kazoo's names with the naming of Party and ShallowParty", async () => {
    const party = new Group(t.zk, path, { naming: 'party' });
    await t.until(party.join('alice'));
    await t.until(party.join('alice'));
    await t.until(t.zk.create(`${path}/8d1b6d5d1c1f4e5a8a0f3d0f8a2a7c11__party__`, 'from kazoo', { mode: 'ephemeral' }));
    await t.until(t.zk.create(`${path}/something else`));
    expect(names(await t.until(party.members()))).toBe('alice alice from kazoo');
    const children = await t.childrenOf(path);
    expect(children.filter((name) => /^_c_[0-9a-f-]{36}-__party__$/.test(name))).toHaveLength(2);
    const shallow = new Group(t.zk, '/shallow', { naming: 'shallowParty' });
    const { seen } = watched(shallow);
    await t.until(shallow.join('host-7'));
    await t.until(t.zk.create('/shallow/8d1b6d5d1c1f4e5a8a0f3d0f8a2a7c11-from-kazoo', 'from-kazoo', { mode: 'ephemeral' }));
    await t.settle();
    expect(await t.childrenOf('/shallow')).toContainEqual(expect.stringMatching(/^[0-9a-f]{32}-host-7$/));
    expect(names(await t.until(shallow.members()))).toBe('from-kazoo host-7');
    expect(seen.at(-1)).toBe('from-kazoo host-7');
    await expect(party.join('bob', { data: 'x' })).rejects.toThrow('leave data out');
    await expect(party.join('')).rejects.toThrow(TypeError);
    expect(() => new Group(t.zk, path, { naming: 'other' as 'plain' })).toThrow(
      'naming must be one of plain, party, shallowParty, not other',
    );
  });

  it('C1-3: has a member once if the reply to its join was lost, and not at all if the join is given up', async () => {
    await t.until(t.zk.create(path));
    const { zk, lose } = await forgetful(t);
    lose('create2');
    await t.until(new Group(zk, path).join('alice'));
    expect(await t.childrenOf(path)).toEqual(['alice']);
    const late = failureOf(new Group(await t.client(), path).join('alice', { timeoutMs: 500 }));
    expect(await t.until(late)).toMatchObject({ name: 'RecipeError', code: 'TimedOut' });
    const owner = (await t.until(t.zk.exists(`${path}/alice`)))!.ephemeralOwner;
    expect(owner).toBe(zk.sessionId);
    const taker = await t.client();
    await t.until(new Group(taker, path).join('alice', { takeOver: true, data: 'again' }));
    expect((await t.until(t.zk.exists(`${path}/alice`)))!.ephemeralOwner).toBe(taker.sessionId);
  });
});
