/** Tests what docs/guides/recipes/groups.md says, in virtual time. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Group } from '../../src/index.ts';
import { forgetful } from '../support/faults.ts';
import { RecipeWorld } from '../support/recipe-world.ts';
import { Program } from '../support/troubles.ts';
import * as guide from './groups.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  vi.restoreAllMocks();
  await t.close();
});

test('a member is listed, seen and looked up, and leaves', async () => {
  const lines: string[] = [];
  vi.spyOn(console, 'log').mockImplementation((line: string) => void lines.push(line));
  const received: string[] = [];
  const zk = await t.client();
  const looking = guide.look(zk, (line) => received.push(line));
  const stop = new AbortController();
  const serving = guide.serve('server:2181', '10.0.0.7:80', stop.signal, t.world.options());
  await t.settle();
  const members = await t.until(new Group(zk, '/workers').members());
  expect(guide.addressOf({ members, isSynced: true }, 'alice')).toBe('10.0.0.7:80');
  expect(guide.addressOf({ members, isSynced: true }, 'bob')).toBe(undefined);
  t.world.break();
  await t.pass(1000);
  stop.abort();
  await t.until(serving);
  await t.settle();
  expect(received).toEqual(['no members', 'alice', 'no members']);
  expect(lines).toEqual(['/workers/alice is suspended', '/workers/alice is present', '/workers/alice is closed']);
  await t.until(zk.close());
  await t.until(looking);
});

test('a machine announces itself', async () => {
  const node = await t.until(guide.sign(await t.client()));
  expect(new TextDecoder().decode((await t.until(t.zk.getData('/machines/m7'))).data ?? undefined)).toBe('up, and warm');
  await t.until(node.close());
});

test('queues are shared among members', async () => {
  const done = new Map<string, string[]>();
  const start = async (name: string) => {
    const own: string[] = [];
    done.set(name, own);
    return guide.share(await t.client(), name, async (queue, held) => {
      if (held.state === 'held' && own.at(-1) !== queue) own.push(queue);
      await new Promise<void>((resolve) => t.world.clock.after(1000, resolve));
    });
  };
  const one = await start('one');
  const two = await start('two');
  await t.until(Promise.all([one.ready(), two.ready()]));
  await t.pass(3000);
  expect([...new Set(done.get('one'))].toSorted()).toEqual(['mail', 'reports']);
  expect(done.get('two')).toEqual(['pictures']);
  await t.until(Promise.all([one.close(), two.close()]));
});

// --- Failures while a member is listed, announces itself, or works on its share

const textAt = async (path: string): Promise<string> => new TextDecoder().decode((await t.until(t.zk.getData(path))).data ?? undefined);
const idOf = async (path: string) => (await t.until(t.zk.exists(path)))?.ephemeralOwner;

test('a member is listed after a cut, and again in the next session', async () => {
  vi.spyOn(console, 'log').mockImplementation(() => undefined);
  const stop = new AbortController();
  const serving = guide.serve('server:2181', '10.0.0.7:80', stop.signal, t.world.options());
  await t.settle();
  const first = await idOf('/workers/alice');
  t.world.break();
  await t.pass(1000);
  expect(await idOf('/workers/alice')).toBe(first);
  // It reaches no server for longer than its session lasts.
  t.world.wire.name('server', []);
  t.world.break(t.world.cnxn);
  await t.pass(15_000, 1000);
  expect(await idOf('/workers/alice')).toBe(undefined);
  t.world.wire.name('server', [t.world.address]);
  await t.pass(5000);
  const next = await idOf('/workers/alice');
  expect(next === undefined || next === first).toBe(false);
  stop.abort();
  await t.until(serving);
  expect(await idOf('/workers/alice')).toBe(undefined);
});

test('a member that is stopped before it has a session ends without joining', async () => {
  vi.spyOn(console, 'log').mockImplementation(() => undefined);
  t.world.wire.name('server', []);
  const stop = new AbortController();
  const serving = guide.serve('server:2181', '10.0.0.7:80', stop.signal, t.world.options());
  await t.pass(1000);
  stop.abort();
  t.world.wire.name('server', [t.world.address]);
  await t.until(serving);
  expect(await idOf('/workers/alice')).toBe(undefined);
});

test('an observer continues after a cut, and in the next session', async () => {
  const program = await Program.start(t);
  const received: string[] = [];
  const looking = guide.look(program.sessions, (line) => received.push(line));
  const group = new Group(t.zk, '/workers');
  const alice = await t.until(group.join('alice'));
  await t.settle();
  await program.cut();
  const bob = await t.until(group.join('bob'));
  await t.settle();
  expect(received.at(-1)).toBe('alice, bob');
  await program.expire(() => t.until(alice.close()));
  await t.settle();
  expect(received.at(-1)).toBe('bob');
  expect(received).toContain('alice, bob, possibly out of date');
  await t.until(bob.close());
  await t.settle();
  expect(received.at(-1)).toBe('no members');
  await t.until(program.sessions.close());
  await t.until(looking);
});

test('the znode of a machine exists after a cut, in the next session, and after it is deleted', async () => {
  const program = await Program.start(t);
  const node = await t.until(guide.sign(program.sessions));
  for (const trouble of ['cut', 'expire'] as const) {
    await program[trouble]();
    await t.until(t.zk.deleteRecursive('/machines/m7'));
    await t.settle();
    await t.until(node.ready());
    expect([node.state, await textAt('/machines/m7')], trouble).toEqual(['present', 'up, and warm']);
  }
  await t.until(node.close());
  expect(await t.until(t.zk.exists('/machines/m7'))).toBe(null);
  await t.until(program.sessions.close());
});

test('a machine announces itself when the connection is cut at any moment', async () => {
  for (let at = 0, isHit = true; isHit; at++) {
    const forgets = await forgetful(t);
    forgets.loseAt(at);
    const node = await t.until(guide.sign(forgets.zk));
    expect(await textAt('/machines/m7'), `request ${at}`).toBe('up, and warm');
    isHit = forgets.lost === 1;
    await t.until(node.close());
    await t.until(forgets.zk.close());
  }
});

test('a share is kept through a cut, lost with its session, and acquired again in the next', async () => {
  const program = await Program.start(t);
  const log: string[] = [];
  const working = new Map<string, number>();
  const sharing = (source: Parameters<typeof guide.share>[0], name: string) =>
    guide.share(source, name, async (queue, held) => {
      working.set(queue, (working.get(queue) ?? 0) + 1);
      if (held.state === 'held') log.push(`${name} ${queue} ${held.fencingToken}`);
      await new Promise<void>((resolve) => t.world.clock.after(1000, resolve));
      working.set(queue, working.get(queue)! - 1);
    });
  const own = () => new Set(log.splice(0));
  const one = sharing(program.sessions, 'one');
  await t.until(one.ready());
  await t.pass(3000);
  const before = own();
  expect(before.size).toBe(3);
  await program.cut();
  await t.pass(3000);
  expect(own()).toEqual(before);
  const two = sharing(await t.client(), 'two');
  // While it is disconnected another member gets its queues, and releases them when it returns.
  await program.expire(() => t.pass(5000));
  await t.until(Promise.all([one.ready(), two.ready()]));
  log.length = 0;
  await t.pass(3000);
  const after = [...own()];
  expect(after.map((line) => line.split(' ').slice(0, 2).join(' ')).toSorted()).toEqual(['one mail', 'one reports', 'two pictures']);
  for (const line of after) expect(before, line).not.toContain(line);
  await t.until(Promise.all([one.close(), two.close()]));
  expect([...working.values()]).toEqual([0, 0, 0]);
  await t.until(program.sessions.close());
});
