/** Runs the recipes of README.md at the root in virtual time, with cut connections and expired sessions. */
import { Sessions } from '@tskeeper/recipes';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { expire } from '../support/faults.ts';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';
import * as readme from './readme.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

const textAt = async (path: string): Promise<string> => new TextDecoder().decode((await t.until(t.zk.getData(path))).data ?? undefined);

/** A promise that the test resolves. */
function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

describe('the lock of the README', () => {
  beforeEach(async () => {
    await t.until(t.zk.create('/report', 'none'));
  });

  test('is held by one process at a time', async () => {
    const steps: string[] = [];
    const make = (name: string) => async () => {
      steps.push(`${name} begins`);
      await new Promise<void>((resolve) => t.world.clock.after(1000, resolve));
      steps.push(`${name} ends`);
      return `by ${name}`;
    };
    const writing = ['anna', 'bert'].map(async (name) => readme.writeReport(await t.client(), make(name)));
    await t.until(Promise.all(writing));
    expect([steps[0]!.split(' ')[0], steps[2]!.split(' ')[0]]).toEqual([steps[1]!.split(' ')[0], steps[3]!.split(' ')[0]]);
    expect(await textAt('/report')).toBe(`by ${steps[3]!.split(' ')[0]}`);
  });

  test('is kept through a cut connection, and the report is written', async () => {
    const anna = await t.client();
    const { opened, open } = gate();
    let lost = false;
    const writing = readme.writeReport(anna, async (signal) => {
      signal.addEventListener('abort', () => {
        lost = true;
      });
      await opened;
      return 'by anna';
    });
    await t.settle();
    t.world.break();
    await t.world.untilSo(() => anna.state !== 'connected');
    await t.world.untilSo(() => anna.state === 'connected');
    open();
    await t.until(writing);
    expect(await textAt('/report')).toBe('by anna');
    expect(lost).toBe(false);
  });

  test('is lost with its session: the signal is aborted, the write fails, and the next holder is not overwritten', async () => {
    const anna = await t.client();
    let aborted = false;
    const { opened, open } = gate();
    const failure = failureOf(
      readme.writeReport(anna, async (signal) => {
        signal.addEventListener('abort', () => {
          aborted = true;
        });
        await opened;
        return 'too late';
      }),
    );
    await t.settle();
    await expire(t, anna);
    expect(aborted).toBe(true);
    await t.until(readme.writeReport(t.zk, () => Promise.resolve('by bert')));
    open();
    expect(await t.until(failure)).toMatchObject({ code: 'Lost' });
    expect(await textAt('/report')).toBe('by bert');
  });
});

describe('the election of the README', () => {
  const untilAborted = (signal: AbortSignal) => new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
  let leading: string[];
  let anna: Sessions;
  let bert: Sessions;
  let ends: Promise<unknown>[];

  const sessions = (): Promise<Sessions> => t.until(Sessions.start(() => t.client()));
  const takePart = (source: Sessions, name: string): Promise<unknown> =>
    failureOf(
      readme.takePart(source, name, async (signal) => {
        leading.push(name);
        await untilAborted(signal);
        leading.push(`no longer ${name}`);
      }),
    );

  beforeEach(async () => {
    leading = [];
    anna = await sessions();
    ends = [takePart(anna, 'anna')];
    await t.world.untilSo(() => leading.length === 1);
    bert = await sessions();
    ends.push(takePart(bert, 'bert'));
    await t.settle();
    expect(leading).toEqual(['anna']);
  });

  afterEach(async () => {
    await t.until(Promise.all([anna.close(), bert.close()]));
    await t.until(Promise.all(ends));
  });

  test('has the next candidate as its leader when the leader has ended', async () => {
    await t.until(anna.close());
    await t.world.untilSo(() => leading.includes('bert'));
    expect(leading).toEqual(['anna', 'no longer anna', 'bert']);
  });

  test('has the same leader after a cut connection of each process', async () => {
    for (const { forward } of t.world.wire.cnxns) if (!forward.from.isClosed) t.world.break();
    await t.world.untilSo(() => [anna, bert].every(({ client }) => client.state !== 'connected'));
    await t.world.untilSo(() => [anna, bert].every(({ client }) => client.state === 'connected'));
    await t.pass(20_000);
    expect(leading).toEqual(['anna']);
  });

  test('has the next leader when the session of the leader has expired, and the first queues again in a new session', async () => {
    // A process learns that its session has expired only after it reconnects, so the next leader may start before that.
    await expire(t, anna.client);
    await t.world.untilSo(() => leading.length === 3);
    expect(leading.toSorted()).toEqual(['anna', 'bert', 'no longer anna']);
    await expire(t, bert.client);
    await t.world.untilSo(() => leading.length === 5);
    expect(leading.toSorted()).toEqual(['anna', 'anna', 'bert', 'no longer anna', 'no longer bert']);
  });
});
