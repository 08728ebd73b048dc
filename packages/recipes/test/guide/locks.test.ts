/** Tests what docs/guides/recipes/locks.md says, in virtual time. */
import { type Client, KeeperError } from '@tskeeper/client';
import { OpCode } from '@tskeeper/protocol';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Lock, PriorityLock, ReadWriteLock } from '../../src/index.ts';
import { fated } from '../support/fates.ts';
import { expire, forgetful } from '../support/faults.ts';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';
import { Program } from '../support/troubles.ts';
import * as guide from './locks.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

test('a counter that many processes increment loses no increment', async () => {
  await t.until(t.zk.create('/counter', '0'));
  const clients = await Promise.all([t.client(), t.client(), t.client()]);
  const counted = await t.until(Promise.all(clients.flatMap((zk) => [guide.countUp(zk), guide.countUp(zk)])));
  expect(counted.toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6]);
});

test('reports are written with a token, and not after the lock is lost', async () => {
  const written: string[] = [];
  const running = guide.writeReport(t.zk, async (report) => {
    written.push(report);
    const [holder] = await new Lock(t.zk, '/locks/report').contenders();
    await t.zk.delete(holder!.path);
  });
  await expect(t.until(running)).rejects.toMatchObject({ name: 'RecipeError', code: 'Lost' });
  expect(written).toEqual(['january']);
});

test('lines that belong together are adjacent, whichever process holds the lock', async () => {
  await t.until(t.zk.create('/log'));
  const other = await t.client();
  await t.until(Promise.all([guide.appendBoth(t.zk, 'a', 'b'), guide.append(other, 'c'), guide.appendBoth(other, 'd', 'e')]));
  const lines = (await t.childrenOf('/log')).toSorted();
  const texts = await t.until(Promise.all(lines.map(async (name) => (await t.zk.getData(`/log/${name}`)).data)));
  expect(texts.map((text) => new TextDecoder().decode(text ?? undefined)).join('')).toMatch(/^(?:ab|c|de){3}$/);
});

test('things are moved back and forth by two clients at once', async () => {
  await t.until(t.zk.create('/things/a', '', { parents: true }));
  const other = await t.client();
  await t.until(Promise.allSettled([guide.move(t.zk, 'a', 'b'), guide.move(other, 'b', 'a'), guide.move(t.zk, 'a', 'b')]));
  expect((await t.childrenOf('/things')).length).toBe(1);
});

test('work pauses while there is no connection', async () => {
  const held = await t.until(new Lock(await t.client(), '/locks/a').acquire());
  const steps: string[] = [];
  guide.pauses(
    held,
    () => steps.push('pause'),
    () => steps.push('go on'),
  );
  t.world.break();
  await t.pass(1000);
  expect(steps).toEqual(['pause', 'go on']);
});

test('a writer gets the lock from readers that consent, and from one that does not', async () => {
  const queries: number[] = [];
  const query = async () => {
    await new Promise<void>((resolve) => t.world.clock.after(700, resolve));
    queries.push(queries.length);
  };
  const reading = guide.readUntilAsked(await t.client(), query);
  const silent = await t.until(new ReadWriteLock(await t.client(), '/locks/index').readLock.acquire());
  await t.pass(2000);
  const rebuilding = guide.rebuild(t.zk, () => Promise.resolve());
  await t.until(reading);
  expect(silent.state).toBe('held');
  await t.until(rebuilding);
  expect(silent.state).toBe('lost');
  expect(queries.length).toBeGreaterThan(2);
});

test('urgent work gets the lock from less urgent work', async () => {
  const steps: string[] = [];
  const slow = guide.whenThereIsTime(await t.client(), async (asked) => {
    while (!asked.aborted) await new Promise<void>((resolve) => t.world.clock.after(100, resolve));
    const [holder] = await new PriorityLock(t.zk, '/locks/table').holders();
    steps.push(`asked, and holds by ${holder!.prefix}`);
  });
  await t.pass(1000);
  await t.until(guide.urgently(t.zk, () => Promise.resolve(void steps.push('urgent'))));
  await t.until(slow);
  expect(steps).toEqual(['asked, and holds by read-90-', 'urgent']);
});

test('the holder of a lock can be listed', async () => {
  await t.until(new Lock(t.zk, '/locks/a', { data: 'one' }).acquire());
  void new Lock(t.zk, '/locks/a', { data: 'two' }).acquire().catch(() => undefined);
  await t.settle();
  expect(await t.until(guide.shows(t.zk, '/locks/a'))).toEqual(['one', 'two']);
});

test('counting, writing and moving continue after a cut, and in the next session', async () => {
  await t.until(Promise.all([t.zk.create('/counter', '0'), t.zk.create('/log'), t.zk.create('/things/a', '', { parents: true })]));
  const { sessions, ...program } = await Program.start(t).then((each) => ({
    sessions: each.sessions,
    cut: () => each.cut(),
    expire: () => each.expire(),
  }));
  const inTheWay = await t.client({ sessionTimeoutMs: 60_000 });
  for (const trouble of [program.cut, program.expire]) {
    const held = await t.until(
      Promise.all(['counter', 'log', 'a', 'report'].map((name) => new Lock(inTheWay, `/locks/${name}`).acquire())),
    );
    const reports: bigint[] = [];
    const all = [
      guide.countUp(sessions),
      guide.appendBoth(sessions, 'a', 'b'),
      guide.move(sessions, 'a', 'b').then(() => guide.move(sessions, 'b', 'a')),
      guide.writeReport(sessions, (_report, token) => Promise.resolve(void reports.push(token))),
    ];
    await t.settle();
    await trouble();
    await t.until(Promise.all(held.map((each) => each.release())));
    await t.until(Promise.all(all));
    expect(reports).toHaveLength(2);
  }
  expect(new TextDecoder().decode((await t.until(t.zk.getData('/counter'))).data ?? undefined)).toBe('2');
  expect(await t.childrenOf('/log')).toHaveLength(4);
  expect(await t.childrenOf('/things')).toEqual(['a']);
  await t.until(sessions.close());
});

test('the index is rebuilt, and the table is worked on, in the next session', async () => {
  const program = await Program.start(t);
  const reader = await t.client({ sessionTimeoutMs: 60_000 });
  const reading = await t.until(new ReadWriteLock(reader, '/locks/index').readLock.acquire());
  const steps: string[] = [];
  const working = guide.whenThereIsTime(reader, async (asked) => {
    while (!asked.aborted) await new Promise<void>((resolve) => t.world.clock.after(100, resolve));
  });
  await t.pass(500);
  const both = [
    guide.rebuild(program.sessions, () => Promise.resolve(void steps.push('rebuilt'))),
    guide.urgently(program.sessions, () => Promise.resolve(void steps.push('urgent'))),
  ];
  await program.expire();
  await t.until(Promise.all([...both, working]));
  expect(steps.sort()).toEqual(['rebuilt', 'urgent']);
  expect(reading.state).toBe('lost');
  await t.until(program.sessions.close());
});

// --- Failures while the lock is held

const textAt = async (path: string): Promise<string> => new TextDecoder().decode((await t.until(t.zk.getData(path))).data ?? undefined);

/** A client whose first request of this kind is delayed until its session has expired. */
async function expiring(sent: keyof typeof OpCode) {
  let goOn: (() => void) | undefined;
  const ahead = () => new Promise<void>((resolve) => (goOn = resolve));
  const zk = await fated(t, ({ opCode }) => (opCode === OpCode[sent] && goOn === undefined ? { ahead } : undefined));
  const untilExpired = async () => {
    await t.world.untilSo(() => goOn !== undefined);
    await expire(t, zk);
  };
  return { zk, untilExpired, goOn: () => goOn!() };
}

/** Programs that write through the hold, and how often each write was applied. */
const writing: readonly {
  readonly name: string;
  readonly run: (zk: Client) => Promise<unknown>;
  readonly times: () => Promise<number>;
}[] = [
  { name: 'countUp', run: (zk) => guide.countUp(zk), times: async () => Number(await textAt('/counter')) },
  { name: 'append', run: (zk) => guide.append(zk, 'a'), times: async () => (await t.childrenOf('/log')).length },
  { name: 'move', run: (zk) => guide.move(zk, 'a', 'b'), times: async () => Number((await t.childrenOf('/things')).includes('b')) },
];

const prepare = () =>
  t.until(Promise.all([t.zk.create('/counter', '0'), t.zk.create('/log'), t.zk.create('/things/a', '', { parents: true })]));

test('a write through a hold is applied once when its reply is lost, its result is reported, and the lock is released', async () => {
  await prepare();
  for (const { name, run, times } of writing) {
    const forgets = await forgetful(t);
    forgets.lose('multi');
    const failure = await t.until(failureOf(run(forgets.zk)));
    expect([forgets.lost, KeeperError.is(failure, 'ConnectionLoss') && failure.outcome], name).toEqual([1, 'unknown']);
    expect(await times(), name).toBe(1);
    // The lock is free: the next one gets it while the session of the first is still alive.
    await t.until(Promise.allSettled([run(t.zk)]));
    expect(await times(), name).toBe(name === 'move' ? 1 : 2);
    expect(forgets.zk.state, name).toBe('connected');
  }
});

test('a counter is incremented when the connection is cut during the read or the release', async () => {
  await prepare();
  for (const [at, sent] of (['getData', 'delete'] as const).entries()) {
    const forgets = await forgetful(t);
    forgets.lose(sent);
    expect([await t.until(guide.countUp(forgets.zk)), forgets.lost], sent).toEqual([at + 1, 1]);
  }
  expect(await t.until(guide.countUp(t.zk))).toBe(3);
});

test('a holder whose session has expired writes nothing, and the next holder continues', async () => {
  await prepare();
  for (const { name, run, times } of writing) {
    const { zk, untilExpired, goOn } = await expiring('multi');
    const running = failureOf(run(zk));
    await untilExpired();
    await t.until(run(t.zk));
    goOn();
    expect(await t.until(running), name).toMatchObject({ code: expect.stringMatching(/^(?:Lost|SessionExpired|ConnectionLoss)$/) });
    expect(await times(), name).toBe(1);
  }
});

test('reports continue after a cut with the same token, and end when the session expires', async () => {
  const program = await Program.start(t);
  for (const trouble of ['cut', 'expire'] as const) {
    const written: string[] = [];
    const tokens = new Set<bigint>();
    let held = 0;
    let goOn = (): void => {};
    const store = (report: string, token: bigint) => {
      written.push(report);
      tokens.add(token);
      held++;
      return new Promise<void>((resolve) => (goOn = resolve));
    };
    const running = failureOf(guide.writeReport(program.sessions, store).then(() => 'done'));
    await t.world.untilSo(() => held === 1);
    await program[trouble]();
    goOn();
    if (trouble === 'cut') {
      await t.world.untilSo(() => held === 2);
      goOn();
      expect(await t.until(running)).toMatchObject({ message: expect.stringContaining('done') });
      expect([written, tokens.size]).toEqual([['january', 'february'], 1]);
    } else {
      expect(await t.until(running)).toMatchObject({ name: 'RecipeError', code: 'Lost' });
      expect(written).toEqual(['january']);
    }
  }
  // The lock is free, in the current session.
  const held = await t.until(new Lock(t.zk, '/locks/report').acquire());
  await t.until(held.release());
  await t.until(program.sessions.close());
});

test('paused work does not continue when the session has expired', async () => {
  const program = await Program.start(t);
  const held = await t.until(new Lock(program.sessions, '/locks/a').acquire());
  const steps: string[] = [];
  const end = guide.pauses(
    held,
    () => steps.push('pause'),
    () => steps.push('go on'),
  );
  await program.expire();
  expect([steps, held.state]).toEqual([['pause'], 'lost']);
  end();
  await t.until(program.sessions.close());
});

/** Something that takes 700 ms each time, until it is no longer called. */
function slowQueries() {
  const counted = { begun: 0, query: () => Promise.resolve() };
  counted.query = () => {
    counted.begun++;
    return new Promise<void>((resolve) => t.world.clock.after(700, resolve));
  };
  return counted;
}

test('a reader continues after a cut, and releases the lock when it is revoked', async () => {
  const program = await Program.start(t);
  const counted = slowQueries();
  const reading = guide.readUntilAsked(program.sessions, counted.query);
  await t.world.untilSo(() => counted.begun === 1);
  await program.cut();
  await t.world.untilSo(() => counted.begun >= 4);
  let isRebuilt = false;
  await t.until(Promise.all([guide.rebuild(t.zk, () => Promise.resolve(void (isRebuilt = true))), reading]));
  expect(isRebuilt).toBe(true);
  await t.until(program.sessions.close());
});

test('a reader that has lost the lock with its session begins no further query, and rejects', async () => {
  const program = await Program.start(t);
  const counted = slowQueries();
  const reading = failureOf(guide.readUntilAsked(program.sessions, counted.query));
  await t.world.untilSo(() => counted.begun === 1);
  await program.expire();
  expect(await t.until(reading)).toMatchObject({ name: 'RecipeError', code: 'Lost' });
  const { begun } = counted;
  await t.pass(5000);
  expect(counted.begun).toBe(begun);
  await t.until(program.sessions.close());
});

test('a slow reader whose znode is deleted begins no further query', async () => {
  const reader = await t.client();
  let begun = 0;
  const query = () => {
    begun++;
    return new Promise<void>((resolve) => t.world.clock.after(begun === 1 ? 15_000 : 700, resolve));
  };
  const reading = guide.readUntilAsked(reader, query);
  await t.world.untilSo(() => begun === 1);
  await t.until(guide.rebuild(t.zk, () => Promise.resolve()));
  await t.until(Promise.allSettled([reading]));
  expect(begun).toBe(1);
});

test('less urgent work continues after a cut until it is revoked, and is stopped when the lock is lost', async () => {
  const program = await Program.start(t);
  for (const trouble of ['cut', 'expire'] as const) {
    let state: 'not begun' | 'works' | 'stopped' = 'not begun';
    const working = guide.whenThereIsTime(program.sessions, async (stop) => {
      state = 'works';
      await new Promise<void>((resolve) => stop.addEventListener('abort', () => resolve()));
      state = 'stopped';
    });
    await t.world.untilSo(() => state === 'works');
    await program[trouble]();
    expect(state, trouble).toBe(trouble === 'cut' ? 'works' : 'stopped');
    if (trouble === 'cut') await t.until(guide.urgently(t.zk, () => Promise.resolve()));
    await t.until(working);
    expect(state, trouble).toBe('stopped');
  }
  await t.until(program.sessions.close());
});

test('the index is rebuilt through a cut, and the signal of its work is aborted when the lock is lost', async () => {
  const program = await Program.start(t);
  for (const trouble of ['cut', 'expire'] as const) {
    let signal: AbortSignal | undefined;
    let goOn = (): void => {};
    const rebuilding = guide.rebuild(program.sessions, (held) => {
      signal = held.signal;
      return new Promise<void>((resolve) => (goOn = resolve));
    });
    await t.world.untilSo(() => signal !== undefined);
    await program[trouble]();
    expect(signal!.aborted, trouble).toBe(trouble === 'expire');
    goOn();
    await t.until(rebuilding);
  }
  await t.until(program.sessions.close());
});

test('a rebuild whose session expires rejects once, without unhandled rejections', async () => {
  const { zk, untilExpired, goOn } = await expiring('getChildren2');
  const reading = await t.until(new ReadWriteLock(t.zk, '/locks/index').readLock.acquire());
  const rebuilding = failureOf(guide.rebuild(zk, () => Promise.resolve()));
  await untilExpired();
  goOn();
  expect(await t.until(rebuilding)).toMatchObject({ code: expect.stringMatching(/^(?:Lost|SessionExpired)$/) });
  await t.until(reading.release());
});

test('urgent work continues after a cut, and its signal is aborted when the lock is lost', async () => {
  const program = await Program.start(t);
  for (const trouble of ['cut', 'expire'] as const) {
    let isLost: boolean | undefined;
    let goOn = (): void => {};
    const working = guide.urgently(program.sessions, async (held) => {
      isLost = false;
      await new Promise<void>((resolve) => (goOn = resolve));
      isLost = held.signal.aborted;
    });
    await t.world.untilSo(() => isLost === false);
    await program[trouble]();
    goOn();
    await t.until(working);
    expect(isLost, trouble).toBe(trouble === 'expire');
  }
  await t.until(program.sessions.close());
});
