import { connect } from '@tskeeper/client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Lock, Sessions } from '../src/index.ts';
import { Listeners } from '../src/listeners.ts';
import { expire } from './support/faults.ts';
import { RecipeWorld } from './support/recipe-world.ts';

describe('listeners', () => {
  it('receive all news in the order in which they happened, also when one of them causes the next', () => {
    const listeners = new Listeners<string>();
    const heard: string[] = [];
    listeners.add((news) => {
      if (news === 'suspended') listeners.notify('released');
    });
    listeners.add((news) => heard.push(news));
    listeners.notify('suspended');
    expect(heard).toEqual(['suspended', 'released']);
  });

  it('receive news from their registration on: not those that led to it, and none after their removal', () => {
    const listeners = new Listeners<number>();
    const heard: string[] = [];
    let times = 0;
    const again = (news: number) => {
      stop();
      heard.push(`again ${news}`);
      if (++times < 5) stop = listeners.add(again);
    };
    let stop = listeners.add(again);
    listeners.add(() => silence());
    const silence = listeners.add((news) => heard.push(`silent ${news}`));
    listeners.notify(1);
    listeners.notify(2);
    expect(heard).toEqual(['again 1', 'again 2']);
  });
});

describe('listeners of a recipe', () => {
  let t: RecipeWorld;

  beforeEach(async () => {
    t = await RecipeWorld.start();
  });

  afterEach(async () => {
    await t.close();
  });

  it('end with the state of a hold, though one of them releases it when it is suspended', async () => {
    const held = await t.until(new Lock(t.zk, '/lock').acquire());
    const heard: string[] = [];
    held.onStateChange((state) => {
      if (state === 'suspended') void held.release();
    });
    held.onStateChange((state) => heard.push(state));
    t.world.break();
    await t.world.untilSo(() => t.zk.state !== 'connected');
    await t.world.untilSo(() => t.zk.state === 'connected');
    expect([heard, held.state]).toEqual([['suspended', 'released'], 'released']);
  });

  it('receive each session once, though they are added while others receive it', async () => {
    const mine = await t.until(Sessions.start(() => connect('server:2181', t.world.options())));
    const begun: bigint[] = [];
    const first = mine.client;
    mine.onSession((zk) => {
      if (zk !== first && begun.length === 0) mine.onSession((each) => begun.push(each.sessionId));
    });
    await t.until(expire(t, first));
    await t.pass(1000);
    expect(begun).toEqual([mine.client.sessionId]);
    await t.until(mine.close());
  });
});
