/**
 * The examples of recipes with which processes wait for each other, one of which is killed: with
 * this server, with three of them, and with Apache ZooKeeper.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { emptied, ExampleServers, filled, forEver, gone, kinds, namesBelow, textAt, timeout } from './example-servers.ts';
import { inFolder } from './servers.ts';
import { breaches, earliest, latest, mostTogether, spansOf, timesOf } from './spans.ts';

describe.each(kinds)('the examples of recipes that wait, with %s', { timeout }, (kind) => {
  const servers = new ExampleServers(kind);
  const run = servers.run.bind(servers);

  it.concurrent('C1-1, C1-19, C1-21: a lock: no number is assigned twice, and a killed process loses only its turn', async () => {
    const programs = ['anna', 'bert', 'cleo'].map((name) => run('lock', '/lock', '/number', name, '20', '10'));
    const [victim, ...others] = programs;
    await victim!.line('anna', 4);
    victim!.kill('SIGKILL');
    for (const { code, err } of await Promise.all(others.map((each) => each.output()))) expect([code, err]).toEqual([0, '']);
    await victim!.ended;
    const numbers = programs.flatMap(({ lines }) => lines.map((line) => Number(line.split(' ')[1]))).toSorted((one, other) => one - other);
    expect(new Set(numbers).size).toBe(numbers.length);
    // The killed process may have written a number without printing it.
    const last = Number(await textAt(servers.zk, '/number'));
    expect(last - numbers.length).toBeLessThanOrEqual(1);
    expect(numbers.at(-1)).toBeLessThanOrEqual(last);
    await emptied(servers.zk, '/lock');
  });

  it.concurrent('C1-24, C1-25: a shared lock: a writer is alone, also after a writer is killed', async () => {
    const readers = ['anna', 'bert', 'cleo'].map((name) => run('shared-lock', '/shared', 'read', name, '6', '50'));
    const writers = ['dora', 'emil'].map((name) => run('shared-lock', '/shared', 'write', name, '6', '50'));
    const victim = run('shared-lock', '/shared', 'write', 'finn', '1', forEver);
    await victim.line('writes');
    const killed = process.hrtime.bigint();
    victim.kill('SIGKILL');
    const programs = [...readers, ...writers];
    expect(await Promise.all(programs.map(({ ended }) => ended))).toEqual(programs.map(() => 0));
    await victim.ended;
    const spans = spansOf([...programs, victim], killed);
    expect(spans.length).toBe(31);
    expect(breaches(spans, ({ what }) => what === 'writes')).toEqual([]);
    // Readers must overlap, or the lock would be exclusive; and a breach must be detected.
    const stays = run('shared-lock', '/read', 'read', 'gina', '1', forEver);
    await stays.line('reads');
    const comes = run('shared-lock', '/read', 'read', 'hugo', '1', '0');
    expect(await comes.ended).toBe(0);
    expect(breaches(spansOf([stays, comes], process.hrtime.bigint()), ({ who }) => who === 'hugo').length).toBe(1);
    stays.kill('SIGKILL');
  });

  it.concurrent('C1-38, C1-39: an election: the next candidate leads when the leader is killed, and when it resigns', async () => {
    const watcher = run('election', '/election');
    await watcher.line('leader: none');
    const anna = run('election', '/election', 'anna');
    await watcher.line('leader: anna');
    const others = ['bert', 'cleo'].map((name) => run('election', '/election', name));
    let seen = watcher.lines.length;
    anna.kill('SIGKILL');
    const leads = async (name: string, at: number) => {
      await others[at]!.line(`${name} leads`);
      return name;
    };
    const second = await Promise.race(['bert', 'cleo'].map(leads));
    const leader = others[['bert', 'cleo'].indexOf(second)]!;
    // There may be no leader in between.
    await watcher.line(`leader: ${second}`, seen);
    seen = watcher.lines.length;
    leader.kill('SIGTERM');
    expect(await leader.ended).toBe(0);
    const third = second === 'bert' ? 'cleo' : 'bert';
    await watcher.line(`leader: ${third}`, seen);
    for (const each of [...others, watcher]) each.kill('SIGTERM');
    expect(await Promise.all([...others, watcher].map(({ ended }) => ended))).toEqual([0, 0, 0]);
  });

  it.concurrent('C1-15, C1-16, B6: a queue: each item has one result, and another worker processes the item of a killed one', async () => {
    const victim = run('queue', '/jobs', '/results', 'work', 'anna', forEver);
    const producer = run('queue', '/jobs', '/results', 'put', 'paul', '12');
    await victim.line('works on paul-0');
    victim.kill('SIGKILL');
    const workers = ['bert', 'cleo'].map((name) => run('queue', '/jobs', '/results', 'work', name, '10'));
    expect(await producer.ended).toBe(0);
    const items = Array.from({ length: 12 }, (_, number) => `paul-${number}`);
    for (const item of items) await Promise.race(workers.map((each) => each.line(`has done ${item}`)));
    // Otherwise the other worker could finish everything before this one handles signals.
    for (const each of workers) await each.line('is at work');
    for (const each of workers) each.kill('SIGTERM');
    expect((await Promise.all(workers.map((each) => each.output()))).map(({ code, err }) => [code, err])).toEqual([
      [0, ''],
      [0, ''],
    ]);
    expect(await namesBelow(servers.zk, '/results')).toEqual(items.toSorted());
    expect(['bert', 'cleo']).toContain(await textAt(servers.zk, '/results/paul-0'));
    expect(await namesBelow(servers.zk, '/jobs')).toEqual([]);
  });

  it.concurrent('B14: a semaphore: never more leases than its size, and other processes get those of killed ones', async () => {
    const victims = ['anna', 'emil'].map((name) => run('semaphore', '/crawlers', '2', name, '1', forEver));
    await Promise.all(victims.map((each) => each.line('begins')));
    const killed = process.hrtime.bigint();
    for (const victim of victims) victim.kill('SIGKILL');
    const programs = ['bert', 'cleo', 'dora'].map((name) => run('semaphore', '/crawlers', '2', name, '8', '60'));
    expect(await Promise.all(programs.map(({ ended }) => ended))).toEqual([0, 0, 0]);
    const spans = spansOf([...victims, ...programs], killed);
    expect(spans.length).toBe(26);
    expect(mostTogether(spans)).toBe(2);
  });

  it.concurrent('C1-7, C1-12, C1-13: a double barrier: rounds begin together, and a process killed inside does not block the others', async () => {
    const staying = ['anna', 'bert'].map((name) => run('double-barrier', '/double', '3', name, '2', '200'));
    const victim = run('double-barrier', '/double', '3', 'cleo', '1', '400');
    await Promise.all([...staying, victim].map((each) => each.line('entered-0')));
    victim.kill('SIGKILL');
    // A process that joins during a round takes part in it, so start the next one after it.
    await Promise.all(staying.map((each) => each.line('left-0')));
    const next = run('double-barrier', '/double', '3', 'dora', '1', '0');
    expect(await Promise.all([...staying, next].map(({ ended }) => ended))).toEqual([0, 0, 0]);
    expect(latest(timesOf([...staying, victim], 'reached-0'))).toBeLessThan(earliest(timesOf([...staying, victim], 'entered-0')));
    expect(latest(timesOf(staying, 'leaves-0'))).toBeLessThan(earliest(timesOf(staying, 'left-0')));
    const began = [...timesOf(staying, 'entered-1'), ...timesOf([next], 'entered-0')];
    expect(latest([...timesOf(staying, 'reached-1'), ...timesOf([next], 'reached-0')])).toBeLessThan(earliest(began));
  });

  it.concurrent('B15, C1-34, C1-37: a two-phase commit: sites that are killed before or after their votes reach the same outcome as the others', async () => {
    await inFolder(async (folder) => {
      const site = (name: string, ms = 0) => run('two-phase-commit', '/payments', 'site', name, `${folder}/${name}`, '100', String(ms));
      const begin = async (...args: string[]) =>
        expect(await run('two-phase-commit', '/payments', 'begin', ...args).output()).toMatchObject({ code: 0, err: '' });
      const [berlin, paris, rome] = [site('berlin'), site('paris'), site('rome', 3_600_000)];
      await begin('17', '50', 'berlin', 'paris');
      await begin('18', '500', 'berlin', 'paris');
      for (const [who, name] of [
        [berlin, 'berlin'],
        [paris, 'paris'],
      ] as const) {
        await who.line(`${name} commit 17`);
        await who.line(`${name} abort 18`);
      }
      await begin('19', '50', 'berlin', 'rome');
      await rome.line('rome is asked for 50 by 19');
      await berlin.line('berlin has voted commit on 19');
      rome.kill('SIGKILL');
      await berlin.line('berlin abort 19');
      await begin('20', '50', 'berlin', 'oslo');
      await berlin.line('berlin has voted commit on 20');
      berlin.kill('SIGKILL');
      const oslo = site('oslo');
      await oslo.line('oslo commit 20');
      const back = [site('berlin'), site('rome')] as const;
      await back[0].line('berlin commit 20');
      await back[1].line('rome abort 19');
      for (const id of ['17', '18', '19', '20']) await gone(servers.zk, `/payments/${id}`);
      for (const each of [paris, oslo, ...back]) each.kill('SIGTERM');
      expect(await Promise.all([paris, oslo, ...back].map((each) => each.output()))).toMatchObject(
        Array.from({ length: 4 }, () => ({ code: 0, err: '' })),
      );
      const written = readFileSync(`${folder}/berlin`, 'utf8').trim().split('\n');
      // Of two concurrent transactions, either may finish first.
      expect(written.filter((line) => !line.startsWith('promised')).toSorted()).toEqual([
        'abort 18 500',
        'abort 19 50',
        'commit 17 50',
        'commit 20 50',
      ]);
    });
  });

  it.concurrent('C1-41: an event: each set releases one waiter, also waiters after a killed one in the queue', async () => {
    const victim = run('event', '/bell', 'wait', 'anna');
    await filled(servers.zk, '/bell');
    victim.kill('SIGKILL');
    const others = ['bert', 'cleo'].map((name) => run('event', '/bell', 'wait', name));
    const through = () => others.flatMap(({ lines }) => lines.filter((line) => line.includes('is through'))).length;
    expect(await run('event', '/bell', 'set').ended).toBe(0);
    await Promise.race(others.map((each) => each.line('is through')));
    expect(await servers.zk.exists('/bell/set', { linearizable: true })).toBeNull();
    expect(through()).toBe(1);
    expect(await run('event', '/bell', 'set').ended).toBe(0);
    expect(await Promise.all(others.map(({ ended }) => ended))).toEqual([0, 0]);
  });

  it.concurrent('B24: a lease: no other process has it before it expires, although its holder was killed and the session has ended', async () => {
    const asked = process.hrtime.bigint();
    const victim = run('lease', '/import', 'anna', '5000', '3600000');
    await victim.line('anna begins');
    victim.kill('SIGKILL');
    const others = ['bert', 'cleo'].map((name) => run('lease', '/import', name, '5000', '100'));
    expect(await Promise.all(others.map(({ ended }) => ended))).toEqual([0, 0]);
    expect(earliest(timesOf(others, 'begins')) - asked).toBeGreaterThanOrEqual(5_000_000_000n);
    expect(breaches(spansOf(others, 0n), () => true)).toEqual([]);
  });
});
