/**
 * The examples of recipes with which processes share data, one of which is killed: with this
 * server, with three of them, and with Apache ZooKeeper.
 */
import { describe, expect, it } from 'vitest';
import { ExampleServers, kinds, textAt, timeout } from './example-servers.ts';
import { breaches, spansOf } from './spans.ts';

describe.each(kinds)('the examples of recipes that share, with %s', { timeout }, (kind) => {
  const servers = new ExampleServers(kind);
  const run = servers.run.bind(servers);

  it.concurrent('B19: a counter: no number is assigned twice, also when a process is killed', async () => {
    const programs = ['anna', 'bert', 'cleo'].map((name) => run('counter', '/orders', name, '40'));
    const [victim, ...others] = programs;
    await victim!.line('anna', 5);
    victim!.kill('SIGKILL');
    for (const { code, err } of await Promise.all(others.map((each) => each.output()))) expect([code, err]).toEqual([0, '']);
    await victim!.ended;
    const numbers = programs.flatMap(({ lines }) => lines.map((line) => Number(line.split(' ')[1])));
    expect(new Set(numbers).size).toBe(numbers.length);
    // The killed process may have written a number without printing it.
    expect(Number(await textAt(servers.zk, '/orders')) - numbers.length).toBeLessThanOrEqual(1);
  });

  it.concurrent('B26: service discovery: an instance is removed after it is killed, and after it ends cleanly', async () => {
    const watcher = run('discovery', '/services', 'watch', 'api');
    const [one, two] = [
      run('discovery', '/services', 'register', 'api', 'one', '8080'),
      run('discovery', '/services', 'register', 'api', 'two', '8081'),
    ];
    await watcher.line('one joined: port 8080');
    await watcher.line('two joined: port 8081');
    one.kill('SIGKILL');
    await watcher.line('one left');
    two.kill('SIGTERM');
    await watcher.line('two left');
    expect(await two.ended).toBe(0);
    watcher.kill('SIGTERM');
    expect(await watcher.ended).toBe(0);
  });

  it.concurrent('B20, B23: a cache shows the kept znodes: created again after a delete, and by another process after its owner is killed', async () => {
    const watcher = run('cache', '/machines');
    await watcher.line('in sync: ');
    const anna = run('persistent-node', '/machines/m7', 'anna');
    await watcher.line('/machines/m7 is "anna"');
    let seen = watcher.lines.length;
    await servers.zk.delete('/machines/m7');
    await watcher.line('/machines/m7 is gone', seen);
    await watcher.line('/machines/m7 is "anna"', seen);

    const bert = run('persistent-node', '/machines/m7', 'bert');
    await bert.line('bert is absent');
    seen = watcher.lines.length;
    anna.kill('SIGKILL');
    await watcher.line('/machines/m7 is gone', seen);
    await watcher.line('/machines/m7 is "bert"', seen);

    watcher.kill('SIGKILL');
    const next = run('cache', '/machines');
    await next.line('/machines/m7 is "bert"');
    bert.kill('SIGTERM');
    await next.line('/machines/m7 is gone');
    next.kill('SIGTERM');
    expect(await Promise.all([bert, next].map((each) => each.output()))).toMatchObject([bert, next].map(() => ({ code: 0, err: '' })));
  });

  it.concurrent('B25: a partitioner: one process at a time has each item, and another process gets the items of a killed one', async () => {
    const items = ['mail', 'pictures', 'reports', 'videos'];
    const [anna, bert] = [run('partitioner', '/queues', 'anna', ...items), run('partitioner', '/queues', 'bert', ...items)];
    for (const item of ['mail', 'reports']) await anna.line(`${item} anna`);
    for (const item of ['pictures', 'videos']) await bert.line(`${item} bert`);
    const killed = process.hrtime.bigint();
    const seen = bert.lines.length;
    anna.kill('SIGKILL');
    for (const item of ['mail', 'reports']) await bert.line(`${item} bert`, seen);
    bert.kill('SIGTERM');
    expect(await bert.output()).toMatchObject({ code: 0, err: '' });
    for (const item of items) {
      const ofItem = [anna, bert].map(({ lines }) => ({ lines: lines.filter((line) => line.startsWith(`${item} `)) }));
      expect(breaches(spansOf(ofItem, killed), () => true)).toEqual([]);
    }
  });

  it.concurrent('B27: a model: no addition to a value is lost, also when a process is killed', async () => {
    const add = () => run('model', 'add', 'anna', 'apples', '1', '20');
    const [victim, ...others] = [add(), add(), add()];
    await victim.line('apples', 3);
    victim.kill('SIGKILL');
    for (const each of others) expect(await each.output()).toMatchObject({ code: 0, err: '' });
    await victim.ended;
    const counts = [victim, ...others].flatMap(({ lines }) => lines.map((line) => Number(line.split(' ')[1])));
    expect(new Set(counts).size).toBe(counts.length);
    const { out } = await run('model', 'list', 'anna').output();
    // The killed process may have written a value without printing it.
    expect([`apples ${counts.length}`, `apples ${counts.length + 1}`]).toContain(out);
  });
});
