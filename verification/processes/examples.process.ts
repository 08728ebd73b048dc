/** The examples in their own processes, with this server and with Apache ZooKeeper. */
import { connect } from '@tskeeper/client';
import { SimpleBarrier } from '@tskeeper/recipes';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ensureForeignPrograms } from '../../scripts/foreign-programs.js';
import type { ServerKind, ServerProcess } from '@tskeeper/harness';
import { Program } from './program.ts';
import { inFolder, start } from './servers.ts';

/** The times of each step, in nanoseconds: `reached-3` -> [...]. */
function timesOf(programs: readonly Program[]): Map<string, bigint[]> {
  const times = new Map<string, bigint[]>();
  for (const line of programs.flatMap(({ lines }) => lines)) {
    const [, what, when] = line.split(' ');
    times.set(what!, [...(times.get(what!) ?? []), BigInt(when!)]);
  }
  return times;
}

const latest = (times: readonly bigint[]): bigint => times.reduce((a, b) => (a > b ? a : b));
const earliest = (times: readonly bigint[]): bigint => times.reduce((a, b) => (a < b ? a : b));

/**
 * The rounds in which a participant passed before all had arrived, or left before all had finished.
 */
function breaches(programs: readonly Program[], rounds: number): string[] {
  const times = timesOf(programs);
  const found: string[] = [];
  for (let round = 0; round < rounds; round++) {
    const [reached, entered, leaves, left] = ['reached', 'entered', 'leaves', 'left'].map((what) => times.get(`${what}-${round}`) ?? []);
    if ([reached, entered, leaves, left].some((list) => list!.length !== programs.length))
      found.push(`round ${round} was not finished by all`);
    else if (earliest(entered!) < latest(reached!)) found.push(`round ${round} was entered before all had reached it`);
    else if (earliest(left!) < latest(leaves!)) found.push(`round ${round} was left before all would leave`);
  }
  return found;
}

const java = (await ensureForeignPrograms(['zookeeper-3.9.5']))['zookeeper-3.9.5'];
const kinds: readonly ServerKind[] = java.installed ? ['ours', 'java-3.9.5'] : ['ours'];

describe.each(kinds)('the examples with %s', (kind) => {
  let server: ServerProcess;
  let finish!: () => void;
  let served: Promise<void>;

  beforeAll(async () => {
    await new Promise<void>((started, failed) => {
      served = inFolder(async (folder) => {
        server = await start(folder, kind);
        const ending = new Promise<void>((resolve) => (finish = resolve));
        started();
        await ending;
        await server.stop();
      });
      served.catch(failed);
    });
  });

  afterAll(async () => {
    finish();
    await served;
  });

  const participants = (root: string, names: readonly string[], rounds: number, ms: number, size = names.length): Program[] =>
    names.map((name) => new Program('barrier', [server.connectString, root, String(size), name, String(rounds), String(ms)]));

  it('C0-1: a client that requests 3000 ms with a tick of 2000 ms gets 4000', async () => {
    const [one] = participants('/c0-1', ['anna'], 1, 0);
    await one!.line('session-timeout-4000');
    expect(await one!.ended).toBe(0);
  });

  it('C0-2, C0-3, C0-4, C0-5, C0-7: over 50 random rounds of five processes none passes a barrier early, and all pass', async () => {
    const programs = participants('/rounds', ['anna', 'bert', 'cleo', 'dora', 'emil'], 50, 20);
    expect(await Promise.all(programs.map(({ ended }) => ended))).toEqual(programs.map(() => 0));
    expect(breaches(programs, 50)).toEqual([]);
    // The same check on a history with an early participant must fail.
    const early = programs[0]!.lines.findIndex((line) => line.includes('entered-7'));
    programs[0]!.lines[early] = 'anna entered-7 1';
    expect(breaches(programs, 50)).toEqual(['round 7 was entered before all had reached it']);
  });

  it('C0-2: the barrier is a persistent znode without data until it is full, open to all', async () => {
    const alone = new Program('barrier', [server.connectString, '/kind', '2', 'anna', '1', '0']);
    await alone.line('reached-0');
    await using zk = await connect(server.connectString);
    const { data, stat } = await zk.getData('/kind-0');
    expect([data?.length ?? 0, stat.ephemeralOwner]).toEqual([0, 0n]);
    expect((await zk.getACL('/kind-0')).acl).toEqual([{ perms: 31, id: { scheme: 'world', id: 'anyone' } }]);
    alone.kill('SIGKILL');
    await alone.ended;
  });

  it('C0-6: a participant killed inside the barrier does not keep the others from leaving', async () => {
    const programs = participants('/killed', ['anna', 'bert', 'cleo'], 1, 200, 4);
    const victim = programs[2]!;
    // As long as one stays, none leaves.
    await using zk = await connect(server.connectString);
    const inside = await (await SimpleBarrier.create(zk, '/killed-0', 4, { name: 'dora' })).enter();
    await victim.line('entered-0');
    victim.kill('SIGKILL');
    expect(await victim.ended).toBeNull();
    await inside.leave();
    expect(await Promise.all(programs.slice(0, 2).map(({ ended }) => ended))).toEqual([0, 0]);
    for (const program of programs.slice(0, 2)) await program.line('left-0');
  });

  it('C1-4: a name is bound once, found by all clients, and free after it is unbound', async () => {
    const names = (...args: string[]) => new Program('name-service', [server.connectString, ...args]).output();
    const wanted = await Promise.all(['one', 'two'].map((address) => names('bind', 'printer', address)));
    expect(new Set(wanted.map(({ code }) => code))).toEqual(new Set([0, 1]));
    const winner = wanted[0]!.code === 0 ? 'one' : 'two';
    expect((await names('lookup', 'printer')).out).toBe(winner);
    expect((await names('list')).out).toBe('printer');
    await names('unbind', 'printer');
    expect(await names('lookup', 'printer')).toEqual({ code: 1, out: '', err: 'no entry with the name printer' });
  });

  it('C1-4: each follower of a configuration sees it now and after each change', async () => {
    const set = (value: string) => new Program('configuration', [server.connectString, '/config', 'set', value]).ended;
    await set('blue');
    const follower = new Program('configuration', [server.connectString, '/config', 'follow']);
    await follower.line('version 0: blue');
    await set('green');
    await follower.line('version 1: green');
    await using zk = await connect(server.connectString);
    await zk.delete('/config');
    expect(await follower.ended).toBe(0);
  });

  it('C1-5: a member that ends cleanly is removed at once, a killed one when its session ends', async () => {
    const watcher = new Program('group-membership', [server.connectString, '/group', 'watch']);
    await watcher.line('members: none');
    const members = ['anna', 'bert'].map((name) => new Program('group-membership', [server.connectString, '/group', 'join', name]));
    await watcher.line('members: anna bert');
    const [anna, bert] = members;
    const seen = watcher.lines.length;
    anna!.kill('SIGKILL');
    await watcher.line('members: bert', seen);
    bert!.kill('SIGTERM');
    expect(await bert!.ended).toBe(0);
    await watcher.line('members: none', seen);
    watcher.kill('SIGTERM');
    await watcher.ended;
  });
});

describe('the example that starts its own ensemble', () => {
  it('C0-16: continues to count while leaders are killed and cut off, and ends by itself', async () => {
    expect(await new Program('failover', []).output()).toEqual({
      code: 0,
      err: '',
      out: [
        'counted to 10',
        'counted to 20',
        'the leader was killed, and another leads',
        'the leader was cut off, and another leads',
        'counted to 30',
        'all servers are in step: 2 follow',
        'a minute has passed, and the worker is gone',
      ].join('\n'),
    });
  });
});
