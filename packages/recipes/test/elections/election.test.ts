import { OpCode } from '@tskeeper/protocol';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Election, type Leader, type Leadership } from '../../src/index.ts';
import { fated } from '../support/fates.ts';
import { RecipeWorld } from '../support/recipe-world.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

const path = '/election';
const nameOf = (leader: Leader | undefined) => (leader === undefined ? 'none' : new TextDecoder().decode(leader.data ?? undefined));

describe('an election', () => {
  it('C1-38, C1-39: makes each candidate watch the one before it, so that only the end of the leader makes another one lead', async () => {
    const clients = await Promise.all([t.recorded(), t.recorded(), t.recorded(), t.recorded()]);
    const leaders: number[] = [];
    for (const [index, { zk }] of clients.entries()) {
      void new Election(zk, path).lead().then(
        () => leaders.push(index),
        () => undefined,
      );
      await t.settle();
    }
    expect(leaders).toEqual([0]);
    const [first, second, , fourth] = clients;
    expect(fourth.lines).toEqual([
      'create /election/guid-n_ ephemeral sequential',
      'exists /election/guid-n_0000000003 watch',
      'getChildren /election',
      'exists /election/guid-n_0000000002 watch',
    ]);
    for (const { lines } of clients) lines.length = 0;
    await t.until(second.zk.close());
    await t.settle();
    expect(leaders).toEqual([0]);
    expect(clients.map(({ lines }) => lines.filter((line) => line.startsWith('getChildren')).length)).toEqual([0, 0, 1, 0]);
    await t.until(first.zk.close());
    await t.settle();
    expect(leaders).toEqual([0, 2]);
  });

  it('C1-40: shows the leader, and whether it has acknowledged', async () => {
    const seen: string[] = [];
    const watching = (async () => {
      for await (const leader of new Election(t.zk, path).observe())
        seen.push(`${nameOf(leader)}${leader?.acknowledged === true ? ' knows' : ''}`);
    })();
    await t.settle();
    const one = new Election(await t.client(), path, { data: 'one' });
    const two = new Election(await t.client(), path, { data: 'two' });
    const first = await t.until(one.lead());
    const next = two.lead();
    await t.settle();
    await t.until(first.acknowledge());
    await t.settle();
    expect(nameOf(await t.until(two.leader()))).toBe('one');
    await t.until(first.resign());
    const second = await t.until(next);
    await t.settle();
    await t.until(second.acknowledge());
    await t.settle();
    await t.until(second.resign());
    await t.settle();
    expect(seen).toEqual(['none', 'one', 'one knows', 'two', 'two knows', 'none']);
    expect(await t.childrenOf(path)).toEqual([]);
    await t.until(t.zk.close());
    await watching;
  });

  it('C1-40: replaces the acknowledgement of an earlier leader whose session lives on', async () => {
    const client = await t.client();
    const election = new Election(client, path, { data: 'one' });
    const first = await t.until(election.lead());
    await t.until(first.acknowledge());
    await t.until(t.zk.delete(first.path));
    await t.settle();
    expect(first.state).toBe('lost');
    await t.until(first.resign());
    const second = await t.until(new Election(t.zk, path, { data: 'two' }).lead());
    expect(await t.until(election.leader())).toMatchObject({ path: second.path, acknowledged: false });
    await t.until(second.acknowledge());
    expect(await t.until(election.leader())).toMatchObject({ path: second.path, acknowledged: true });
    await expect(t.until(first.acknowledge())).rejects.toMatchObject({ name: 'RecipeError', code: 'Lost' });
  });

  it.each([1, 2])('shows a consistent leader, also when the leader changes before read %i of the query', async (at) => {
    const one = await t.client();
    let left = Infinity;
    const zk = await fated(t, ({ opCode }) => {
      if (opCode !== OpCode.getData || --left > 0) return undefined;
      left = Infinity;
      return { ahead: () => one.close() };
    });
    const leadership = await t.until(new Election(one, path, { data: 'one' }).lead());
    await t.until(leadership.acknowledge());
    const seen: string[] = [];
    const watching = (async () => {
      for await (const leader of new Election(zk, path).observe())
        seen.push(`${nameOf(leader)}${leader?.acknowledged === true ? ' knows' : ''}`);
    })();
    await t.settle();
    left = at;
    void new Election(t.zk, path, { data: 'two' }).lead();
    await t.settle();
    expect(left).toBe(Infinity);
    expect(seen).toEqual(['one knows', 'two']);
    await t.until(zk.close());
    await watching;
  });

  it('makes the candidate lead while its work runs, and resign after it', async () => {
    const election = new Election(t.zk, path);
    const leaderships: Leadership[] = [];
    const result = await t.until(
      election.run(async (leadership) => {
        leaderships.push(leadership);
        expect((await election.contenders()).length).toBe(1);
        return 'done';
      }),
    );
    expect(result).toBe('done');
    expect(leaderships[0]!.state).toBe('released');
    expect(await t.until(election.leader())).toBe(undefined);
  });
});
