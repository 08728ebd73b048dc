import { ManualClock } from '@tskeeper/runtime';
import { expect, it } from 'vitest';
import { Waiters } from '../../src/waiting/promises.ts';
import { leftOf } from '../support/garbage.ts';
import { failureOf } from '../support/recipe-world.ts';

it('a waiting room keeps nothing of callers that have given up, however long others wait', async () => {
  const room = new Waiters({ clock: new ManualClock(0) }, 'the leadership of /a');
  const waiting = room.wait({});
  const left = await leftOf(100, async () => {
    const abort = new AbortController();
    const reason = { why: 'no longer wanted' };
    const given = failureOf(room.wait({ signal: abort.signal }));
    abort.abort(reason);
    expect(await given).toBe(reason);
    return reason;
  });
  expect(left).toBeLessThan(3);
  room.resolveAll();
  await waiting;
});

it('a waiting room admits or rejects each waiter once', async () => {
  const room = new Waiters({ clock: new ManualClock(0) }, 'the leadership of /a');
  const first = [room.wait({}), room.wait({})];
  room.resolveAll();
  await Promise.all(first);
  const second = [failureOf(room.wait({})), failureOf(room.wait({}))];
  room.rejectAll('over');
  expect(await Promise.all(second)).toEqual(['over', 'over']);
  room.rejectAll('over');
  const third = room.wait({});
  room.resolveAll();
  await third;
});
