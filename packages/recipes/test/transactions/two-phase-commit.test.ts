import { type Client, op } from '@tskeeper/client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Site, TwoPhaseCommit, type TwoPhaseCommitOptions } from '../../src/index.ts';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
  await t.until(t.zk.create('/app'));
});

afterEach(async () => {
  await t.close();
});

const path = '/app/tx';

async function begin(sites: readonly string[], options: TwoPhaseCommitOptions = {}): Promise<TwoPhaseCommit> {
  const transaction = new TwoPhaseCommit(t.zk, path, options);
  await t.until(transaction.begin(sites, { data: 'move 5' }));
  return transaction;
}

function join(zk: Client, site: string, options: TwoPhaseCommitOptions = {}): Promise<Site> {
  return t.until(new TwoPhaseCommit(zk, path, options).join(site));
}

describe('B15: a transaction', () => {
  it('C1-32, C1-35: is begun in one txn, with its sites, whose values are undefined, and leaves nothing else of the coordinator', async () => {
    const { zk, lines } = await t.recorded();
    await t.until(new TwoPhaseCommit(zk, path).begin(['berlin', 'paris', 'rome'], { data: 'move 5' }));
    expect(lines).toEqual([
      'multi: create /app/tx persistent, create /app/tx/berlin persistent, create /app/tx/paris persistent, create /app/tx/rome persistent, ' +
        'create /app/tx/beginning ephemeral',
      'delete /app/tx/beginning',
    ]);
    expect((await t.childrenOf(path)).toSorted()).toEqual(['berlin', 'paris', 'rome']);
    expect((await t.until(t.zk.getData(`${path}/paris`))).data).toBe(null);
    expect(new TextDecoder().decode((await t.until(t.zk.getData(path))).data ?? undefined)).toBe('move 5');
    await t.until(zk.close());
    const sites = await Promise.all(['berlin', 'paris', 'rome'].map(async (name) => join(await t.client(), name)));
    expect(sites.map(({ data }) => new TextDecoder().decode(data ?? undefined))).toEqual(['move 5', 'move 5', 'move 5']);
    await t.until(Promise.all(sites.map((site) => site.vote('commit'))));
    expect(await t.until(Promise.all(sites.map((site) => site.outcome())))).toEqual(['commit', 'commit', 'commit']);
  });

  it('is read once more after a sync by a site whose server has not applied it yet', async () => {
    const { zk, lines } = await t.recorded();
    const joining = failureOf(new TwoPhaseCommit(zk, path).join('berlin'));
    await t.until(joining);
    expect(lines.slice(0, 5)).toEqual([
      'getData /app/tx',
      'getData /app/tx/berlin',
      'sync /app/tx',
      'getData /app/tx',
      'getData /app/tx/berlin',
    ]);
    expect(await joining).toMatchObject({ code: 'NoNode' });
  });

  it('C1-33: takes the steps of the page: each site reads every vote with a watch, and writes its own', async () => {
    await begin(['berlin', 'paris']);
    const berlin = await t.recorded();
    const paris = await t.recorded();
    const one = await join(berlin.zk, 'berlin');
    const two = await join(paris.zk, 'paris');
    await t.until(one.vote('commit'));
    await t.settle();
    await t.until(two.vote('commit'));
    expect(await t.until(Promise.all([one.outcome(), two.outcome()]))).toEqual(['commit', 'commit']);
    await t.until(one.acknowledge());
    await t.until(two.acknowledge());
    expect(berlin.lines).toEqual([
      'getData /app/tx',
      'getData /app/tx/berlin',
      'getChildren /app/tx',
      'getData /app/tx/berlin watch',
      'getData /app/tx/paris watch',
      'setData /app/tx/berlin',
      'getData /app/tx/berlin',
      'getData /app/tx/paris',
      'exists /app/tx/decision',
      'getChildren /app/tx/berlin',
      'multi: create /app/tx/decision persistent, delete /app/tx/berlin',
      'getChildren /app/tx',
    ]);
    expect(paris.lines.slice(-5)).toEqual([
      'exists /app/tx/decision',
      'getChildren /app/tx/paris',
      'multi: delete /app/tx/paris',
      'getChildren /app/tx',
      'multi: delete /app/tx/decision, delete /app/tx',
    ]);
    expect(await t.childrenOf('/app')).toEqual([]);
  });

  it('C1-34: is decided as soon as one site votes abort, and not before all have voted otherwise', async () => {
    const transaction = await begin(['berlin', 'paris', 'rome']);
    const berlin = await join(await t.client(), 'berlin');
    const paris = await join(await t.client(), 'paris');
    await t.until(berlin.vote('commit'));
    expect(await t.until(failureOf(berlin.outcome({ timeoutMs: 5000 })))).toMatchObject({
      code: 'TimedOut',
      message: 'timed out after 5000 ms waiting for the outcome of /app/tx',
    });
    const early = await join(t.zk, 'berlin');
    await early.close();
    expect(await t.until(failureOf(early.outcome()))).toMatchObject({ name: 'RecipeError', code: 'Closed' });
    await t.until(paris.vote('abort'));
    expect(await t.until(Promise.all([berlin.outcome(), paris.outcome(), transaction.outcome()]))).toEqual(['abort', 'abort', 'abort']);
    const rome = await join(await t.client(), 'rome');
    expect(await t.until(rome.outcome())).toBe('abort');
  });

  it('has one vote of each site, whatever the site votes later, and whichever other process has its name', async () => {
    const transaction = await begin(['berlin', 'paris']);
    const before = await join(await t.client(), 'berlin');
    const behind = await join(await t.client(), 'berlin');
    expect(await t.until(before.vote('commit'))).toBe('commit');
    expect(await t.until(before.vote('abort'))).toBe('commit');
    expect(await t.until(behind.vote('abort'))).toBe('commit');
    expect(await t.until((await join(t.zk, 'berlin')).vote('abort'))).toBe('commit');
    const paris = await join(t.zk, 'paris');
    expect(await t.until(transaction.abort())).toBe('abort');
    expect(await t.until(paris.vote('commit'))).toBe('abort');
  });

  it('can be voted on after another client has written wrong data', async () => {
    await begin(['berlin']);
    await t.until(t.zk.setData(`${path}/berlin`, 'yes'));
    const berlin = await join(await t.client(), 'berlin');
    await t.until(t.zk.setData(`${path}/berlin`, 'of course'));
    await t.settle();
    expect(await t.until(berlin.vote('commit'))).toBe('commit');
    expect(await t.until(berlin.outcome())).toBe('commit');
  });

  it('is aborted by any client that stops waiting, unless all have voted to commit', async () => {
    const transaction = await begin(['berlin', 'paris']);
    const berlin = await join(await t.client(), 'berlin');
    const paris = await join(await t.client(), 'paris');
    await t.until(berlin.vote('commit'));
    await t.until(paris.vote('commit'));
    expect(await t.until(transaction.abort())).toBe('commit');
    expect(await t.until(berlin.outcome())).toBe('commit');
    await t.until(berlin.acknowledge());
    expect(await t.until(transaction.abort())).toBe('commit');
  });

  it('exists until the last site has acknowledged it, and a late site finds the outcome', async () => {
    const transaction = await begin(['berlin', 'paris']);
    const berlin = await join(await t.client(), 'berlin');
    const paris = await join(await t.client(), 'paris');
    await t.until(Promise.all([berlin.vote('commit'), paris.vote('commit')]));
    await paris.close();
    await t.until(berlin.outcome());
    await t.until(berlin.acknowledge());
    await t.until(berlin.acknowledge());
    expect((await t.childrenOf(path)).toSorted()).toEqual(['decision', 'paris']);
    expect(await t.until(failureOf(new TwoPhaseCommit(t.zk, path).join('berlin')))).toMatchObject({
      code: 'NoNode',
      path: `${path}/berlin`,
    });
    expect(await t.until(transaction.outcome())).toBe('commit');
    const back = await join(await t.client(), 'paris');
    expect(await t.until(back.vote('abort'))).toBe('commit');
    expect(await t.until(back.outcome())).toBe('commit');
    await t.until(back.acknowledge());
    expect(await t.childrenOf('/app')).toEqual([]);
    for (const late of [() => transaction.join('paris'), () => transaction.outcome(), () => transaction.abort()])
      expect(await t.until(failureOf(late()))).toMatchObject({ code: 'NoNode' });
  });

  it('is deleted by the last site when that returns after it died after its acknowledgement', async () => {
    const transaction = await begin(['berlin']);
    await t.until(t.zk.multi([op.create(`${path}/decision`, 'abort'), op.delete(`${path}/berlin`)]));
    expect(await t.until(failureOf(transaction.join('berlin')))).toMatchObject({ code: 'NoNode' });
    expect(await t.childrenOf('/app')).toEqual([]);
  });

  it('exists until its initiator knows that it has begun, or until the session of its initiator ends', async () => {
    const coordinator = await t.client();
    await begin(['berlin']);
    await t.until(coordinator.create(`${path}/beginning`, null, { mode: 'ephemeral' }));
    const berlin = await join(t.zk, 'berlin');
    await t.until(berlin.vote('commit'));
    await t.until(berlin.outcome());
    const acknowledging = berlin.acknowledge();
    await t.pass(3000);
    expect(await t.childrenOf(path)).toEqual(['beginning', 'decision']);
    await t.until(coordinator.close());
    await t.until(acknowledging);
    expect(await t.childrenOf('/app')).toEqual([]);
  });

  it('rejects invalid sites, votes and options', async () => {
    const transaction = await begin(['berlin']);
    await expect(transaction.begin([])).rejects.toThrow('a transaction must have at least one site');
    await expect(transaction.begin(['a/b'])).rejects.toThrow('"a/b" is not a name of a site');
    await expect(transaction.join('decision')).rejects.toThrow('and not beginning, coordinator, decision');
    await expect(transaction.begin(['a', 'b', 'a'])).rejects.toThrow('the sites must have different names, got a, b, a');
    expect(await t.until(failureOf(transaction.begin(['paris'])))).toMatchObject({ code: 'NodeExists' });
    expect(() => new TwoPhaseCommit(t.zk, path, { watchedBy: 'nobody' as 'sites' })).toThrow('watchedBy must be "sites" or "coordinator"');
    const berlin = await join(t.zk, 'berlin');
    await expect(berlin.vote('yes' as 'commit')).rejects.toThrow('a vote must be "commit" or "abort", not "yes"');
    await expect(berlin.acknowledge()).rejects.toThrow('await outcome(), do what it says, and then acknowledge it');
    await t.until(t.zk.create('/app/empty'));
    expect(await t.until(failureOf(new TwoPhaseCommit(t.zk, '/app/empty').outcome()))).toMatchObject({ code: 'Lost' });
    await t.until(t.zk.create(`${path}/decision`, 'perhaps'));
    expect(await t.until(failureOf(transaction.outcome()))).toMatchObject({ code: 'Lost' });
  });

  it('leaves no watch behind when a wait is given up', async () => {
    const transaction = await begin(['berlin', 'paris']);
    const { zk, lines } = await t.recorded();
    const abort = new AbortController();
    const waiting = failureOf(new TwoPhaseCommit(zk, path, { watchedBy: 'coordinator' }).outcome({ signal: abort.signal }));
    const looking = failureOf(new TwoPhaseCommit(zk, path).outcome({ timeoutMs: 700 }));
    await t.pass(500);
    expect(await t.childrenOf(path)).toContain('coordinator');
    lines.length = 0;
    abort.abort(new Error('no longer wanted'));
    expect(await t.until(waiting)).toMatchObject({ message: 'no longer wanted' });
    expect(await t.until(looking)).toMatchObject({ code: 'TimedOut' });
    await t.settle();
    expect((await t.childrenOf(path)).toSorted()).toEqual(['berlin', 'paris']);
    expect(lines.toSorted()).toEqual([
      'delete /app/tx/coordinator',
      'exists /app/tx/coordinator',
      'removeWatches /app/tx/berlin',
      'removeWatches /app/tx/paris',
      'sync /',
    ]);
    expect(await t.until(transaction.abort())).toBe('abort');
  });
});

describe('a transaction whose votes the coordinator watches', () => {
  const options = { watchedBy: 'coordinator' } as const;

  it('C1-36: is decided by the coordinator, and each of the sites is notified by one event', async () => {
    const coordinator = await t.recorded();
    const berlin = await t.recorded();
    const transaction = new TwoPhaseCommit(coordinator.zk, path, options);
    await t.until(transaction.begin(['berlin', 'paris']));
    coordinator.lines.length = 0;
    const deciding = transaction.outcome();
    await t.settle();
    const one = await join(berlin.zk, 'berlin', options);
    const two = await join(await t.client(), 'paris', options);
    await t.until(two.vote('commit'));
    await t.until(one.vote('commit'));
    expect(await t.until(Promise.all([deciding, one.outcome(), two.outcome()]))).toEqual(['commit', 'commit', 'commit']);
    await t.settle();
    expect(coordinator.lines).toEqual([
      'exists /app/tx/decision watch',
      'create /app/tx/coordinator ephemeral',
      'getChildren /app/tx',
      // It has created itself what it waited for.
      'removeWatches /app/tx/decision',
      'getData /app/tx/berlin watch',
      'getData /app/tx/paris watch',
      'getData /app/tx/paris',
      'getData /app/tx/berlin',
      'multi: create /app/tx/decision persistent, delete /app/tx/coordinator',
    ]);
    expect(berlin.lines).toEqual([
      'getData /app/tx',
      'getData /app/tx/berlin',
      'exists /app/tx/decision watch',
      'create /app/tx/coordinator ephemeral',
      'exists /app/tx/coordinator watch',
      'setData /app/tx/berlin',
      'exists /app/tx/decision watch',
      'getData /app/tx/decision',
      'removeWatches /app/tx/decision',
    ]);
  });

  it('C1-36: needs a number of messages that is linear in the number of sites, or quadratic if each site watches the votes', async () => {
    const messages = async (watchedBy: 'sites' | 'coordinator', count: number): Promise<number> => {
      const names = Array.from({ length: count }, (_, at) => `site-${at}`);
      const name = `/app/${watchedBy}-${count}`;
      await t.until(new TwoPhaseCommit(t.zk, name, { watchedBy }).begin(names));
      const recorded: string[][] = [];
      const sites: Site[] = [];
      for (const each of names) {
        const { zk, lines } = await t.recorded();
        recorded.push(lines);
        sites.push(await t.until(new TwoPhaseCommit(zk, name, { watchedBy }).join(each)));
      }
      for (const site of sites) await t.until(site.vote('commit'));
      await t.until(Promise.all(sites.map((site) => site.outcome())));
      await t.until(Promise.all(sites.map((site) => site.acknowledge())));
      await t.settle();
      return recorded.flat().length;
    };
    for (const count of [4, 8, 16]) {
      expect(await messages('coordinator', count)).toBe(16 * count - 1);
      expect(await messages('sites', count)).toBe(2 * count ** 2 + 12 * count - 4);
    }
  });
});

describe('a transaction whose sites can be seen to fail', () => {
  const options = { presence: true } as const;

  it('C1-37: has an ephemeral znode of each site, whose existence is read with a watch', async () => {
    await begin(['berlin', 'paris'], options);
    const { zk, lines } = await t.recorded();
    const berlin = await join(zk, 'berlin', options);
    await t.settle();
    expect(lines).toEqual([
      'getData /app/tx',
      'getData /app/tx/berlin',
      'exists /app/tx/berlin/present',
      'multi: create /app/tx/berlin/present ephemeral',
      'getChildren /app/tx',
      'getData /app/tx/berlin watch',
      'getData /app/tx/paris watch',
      'getChildren /app/tx/berlin watch',
      'getChildren /app/tx/paris watch',
    ]);
    await t.until(berlin.vote('commit'));
    const paris = await join(await t.client(), 'paris', options);
    await t.until(paris.vote('commit'));
    expect(await t.until(Promise.all([berlin.outcome(), paris.outcome()]))).toEqual(['commit', 'commit']);
    await t.until(Promise.all([berlin.acknowledge(), paris.acknowledge()]));
    expect(await t.childrenOf('/app')).toEqual([]);
  });

  it.each(['sites', 'coordinator'] as const)('C1-37: aborts when a site is killed before its vote, if %s watch', async (watchedBy) => {
    const both = { watchedBy, presence: true };
    await begin(['berlin', 'paris', 'rome'], both);
    const berlin = await join(await t.client(), 'berlin', both);
    const doomed = await t.client({ sessionTimeoutMs: 4000 });
    const { address } = t.world;
    await join(doomed, 'paris', both);
    const rome = await join(await t.client(), 'rome', both);
    await t.until(berlin.vote('commit'));
    await t.until(rome.vote('commit'));
    // A site that has not joined yet is waited for, and does not abort the transaction.
    await t.pass(10_000);
    expect(await t.until(failureOf(berlin.outcome({ timeoutMs: 100 })))).toMatchObject({ code: 'TimedOut' });
    t.world.wire.cut(`10.1.0.${t.world.clients - 1}`, address);
    await t.pass(8000);
    expect(await t.until(Promise.all([berlin.outcome({ timeoutMs: 1 }), rome.outcome({ timeoutMs: 1 })]))).toEqual(['abort', 'abort']);
    const back = await join(t.zk, 'paris', both);
    expect(await t.until(back.vote('commit'))).toBe('abort');
    t.world.wire.heal(`10.1.0.${t.world.clients - 1}`, address);
    await t.pass(2000);
  });

  it('C1-37: keeps the vote of a site that is killed after it, and the site finds the outcome when it is back', async () => {
    const transaction = await begin(['berlin', 'paris'], options);
    const doomed = await t.client();
    const first = await join(doomed, 'paris', options);
    await t.until(first.vote('commit'));
    t.killed(doomed);
    // Its session has ended, and its ephemerals are gone.
    await t.pass(2 * doomed.sessionTimeoutMs, 1000);
    const session = { id: doomed.sessionId, password: doomed.sessionPassword };
    expect(await t.until(failureOf(t.client({ session })))).toMatchObject({ code: 'SessionExpired' });
    const berlin = await join(await t.client(), 'berlin', options);
    await t.pass(2000);
    await t.until(berlin.vote('commit'));
    expect(await t.until(berlin.outcome())).toBe('commit');
    const back = await join(await t.client(), 'paris', options);
    expect(await t.until(back.outcome())).toBe('commit');
    expect(await t.until(transaction.outcome())).toBe('commit');
  });

  it('recognises a site that returns, though its earlier session lives on for a while', async () => {
    const transaction = await begin(['berlin', 'paris'], options);
    const berlin = await join(await t.client(), 'berlin', options);
    const past = await t.client();
    await join(past, 'paris', options);
    const paris = await join(await t.client(), 'paris', options);
    await t.until(past.close());
    await t.settle();
    expect(await t.until(failureOf(berlin.outcome({ timeoutMs: 2000 })))).toMatchObject({ code: 'TimedOut' });
    await t.until(Promise.all([paris.vote('commit'), berlin.vote('commit')]));
    expect(await t.until(transaction.outcome())).toBe('commit');
  });

  it('aborts when a site is closed before its vote', async () => {
    await begin(['berlin', 'paris'], options);
    const berlin = await join(await t.client(), 'berlin', options);
    const paris = await join(await t.client(), 'paris', options);
    await t.until(paris.close());
    await t.until(paris.close());
    expect(await t.until(berlin.outcome())).toBe('abort');
  });
});

describe('the coordinator', () => {
  const options = { watchedBy: 'coordinator' } as const;

  it('is replaced, when its session has ended, by another one that finds the same', async () => {
    const coordinator = await t.client();
    await t.until(new TwoPhaseCommit(coordinator, path, options).begin(['berlin', 'paris']));
    const deciding = failureOf(new TwoPhaseCommit(coordinator, path, options).outcome());
    await t.settle();
    const berlin = await join(await t.client(), 'berlin', options);
    const paris = await join(await t.client(), 'paris', options);
    await t.until(berlin.vote('commit'));
    await t.until(coordinator.close());
    expect(await t.until(deciding)).toMatchObject({ name: 'KeeperError' });
    await t.until(paris.vote('commit'));
    expect(await t.until(Promise.all([berlin.outcome(), paris.outcome()]))).toEqual(['commit', 'commit']);
    expect((await t.childrenOf(path)).toSorted()).toEqual(['berlin', 'decision', 'paris']);
  });

  it('decides once when two clients coordinate at the same time', async () => {
    const transaction = await begin(['berlin', 'paris'], options);
    const one = new TwoPhaseCommit(await t.client(), path, options).outcome();
    await t.settle();
    await t.until(t.zk.delete(`${path}/coordinator`));
    const other = transaction.outcome();
    await t.settle();
    const berlin = await join(await t.client(), 'berlin', options);
    await t.until(berlin.vote('abort'));
    expect(await t.until(Promise.all([one, other, berlin.outcome()]))).toEqual(['abort', 'abort', 'abort']);
    await t.settle();
    expect((await t.childrenOf(path)).toSorted()).toEqual(['berlin', 'decision', 'paris']);
  });

  it('writes its decision though its ephemeral was deleted', async () => {
    const transaction = await begin(['berlin'], options);
    const deciding = transaction.outcome();
    await t.settle();
    await t.until(t.zk.delete(`${path}/coordinator`));
    await t.until((await join(await t.client(), 'berlin')).vote('commit'));
    expect(await t.until(deciding)).toBe('commit');
    expect((await t.childrenOf(path)).toSorted()).toEqual(['berlin', 'decision']);
  });
});
