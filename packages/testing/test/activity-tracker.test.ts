/** Work in progress, and waiting for it. */
import { readFile } from 'node:fs/promises';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { ActivityTracker } from '../src/activity-tracker.ts';

it('settle resolves after every callback and promise in a chain, however long, has run', async () => {
  const activity = new ActivityTracker();
  const done: string[] = [];
  activity.nextTurn(() => {
    done.push('one');
    activity.nextTurn(() => {
      void Promise.resolve()
        .then(() => Promise.resolve())
        .then(() => activity.nextTurn(() => done.push('three')));
      done.push('two');
    });
  });
  await activity.settle(true);
  expect(done).toEqual(['one', 'two', 'three']);
});

it('settle resolves only after pending operations have ended, such as a call to a disk', async () => {
  const activity = new ActivityTracker();
  const begun = activity.begin();
  let isDone = false;
  const reading = (async () => {
    await readFile(import.meta.filename);
    isDone = true;
    activity.end(begun);
  })();
  await activity.settle(false);
  expect(isDone).toBe(true);
  await reading;
});

it('settle awaits an operation that takes many turns of the event loop, such as a sync of a busy disk', async () => {
  const activity = new ActivityTracker();
  const begun = activity.begin();
  let isDone = false;
  const busyMs = 300;
  setTimeout(() => {
    isDone = true;
    activity.end(begun);
  }, busyMs);
  await activity.settle(false);
  expect(isDone).toBe(true);
});

it('settle resolves even if new operations begin all the time', async () => {
  const activity = new ActivityTracker();
  let isOver = false;
  let count = 0;
  const again = (): void => {
    count++;
    if (!isOver) activity.nextTurn(again);
  };
  again();
  await activity.settle(true);
  isOver = true;
  expect(count).toBeLessThan(100);
});

it('nextTurn runs the reactions of settled promises before the next callback, as between two turns', async () => {
  const activity = new ActivityTracker();
  const order: string[] = [];
  const begun = activity.begin();
  activity.nextTurn(() => {
    activity.nextTurn(() => order.push('callback'));
    void (async () => {
      for (let step = 0; step < 20; step++) await Promise.resolve();
      order.push('promises');
      activity.end(begun);
    })();
  });
  await activity.settle(false);
  expect(order).toEqual(['promises', 'callback']);
});

it('until checks its condition once at first and once after each notified change', async () => {
  const activity = new ActivityTracker();
  let looks = 0;
  let isSo = false;
  const waiting = activity.until(() => {
    looks++;
    return isSo;
  }, 10_000);
  for (let turns = 0; turns < 5; turns++) await turn();
  expect(looks).toBe(1);
  isSo = true;
  for (let turns = 0; turns < 5; turns++) await turn();
  expect(looks).toBe(1);
  activity.notifyChange();
  expect(await waiting).toBe(true);
  expect(looks).toBe(2);
});

it('until resolves with false after its timeout', async () => {
  expect(await new ActivityTracker().until(() => false, 1)).toBe(false);
});

it('nextTurn calls the remaining callbacks after one that throws', async () => {
  const activity = new ActivityTracker();
  const called: string[] = [];
  activity.nextTurn(() => {
    throw new Error('thrown');
  });
  activity.nextTurn(() => called.push('behind'));
  await expect(activity.settle(false)).rejects.toThrow('thrown');
  await activity.settle(true);
  expect(called).toEqual(['behind']);
});
