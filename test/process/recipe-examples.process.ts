/** The examples of recipes, as processes of their own of which one is killed: against this server, three of them, and Apache ZooKeeper. */
import { readFileSync } from 'node:fs';
import { type Client, connect } from '@tskeeper/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ensurePeers } from '../../scripts/peers.js';
import { ProcessEnsemble } from './ensembles.ts';
import { Program } from './program.ts';
import { inFolder, start } from './servers.ts';

const java = (await ensurePeers(['zookeeper-3.9.5']))['zookeeper-3.9.5'];
const kinds = ['ours', 'three of ours', ...(java.installed ? (['java-3.9.5'] as const) : [])] as const;

/** Connect string, and what ends the servers. */
async function serve(kind: (typeof kinds)[number], folder: string): Promise<{ hosts: string; end: () => Promise<unknown> }> {
  if (kind !== 'three of ours') {
    const server = await start(folder, kind, {}, { tickTime: 500 });
    return { hosts: server.connectString, end: () => server.stop() };
  }
  const ensemble = await ProcessEnsemble.start(folder, { voters: 3 });
  return { hosts: ensemble.connectString, end: () => ensemble[Symbol.asyncDispose]() };
}

interface Span {
  readonly who: string;
  readonly writes: boolean;
  readonly begin: bigint;
  readonly end: bigint;
}

/** `anna writes 17`, `anna ends 23` -> from 17 to 23. What has no end lasted until `killed`. */
function spansOf(programs: readonly Program[], killed: bigint): Span[] {
  return programs.flatMap(({ lines }) =>
    lines.flatMap((line, index) => {
      const [who, what, begin] = line.split(' ');
      if (what === 'ends') return [];
      const end = lines[index + 1]?.split(' ')[2];
      return [{ who: who!, writes: what === 'writes', begin: BigInt(begin!), end: end === undefined ? killed : BigInt(end) }];
    }),
  );
}

/** Those who were inside with one that writes. */
function breaches(spans: readonly Span[]): string[] {
  return spans
    .filter(({ writes }) => writes)
    .flatMap((writer) => spans.filter((other) => other !== writer && other.begin < writer.end && writer.begin < other.end))
    .map(({ who, begin }) => `${who} at ${begin}`);
}

/** Resolves when there is no such znode any more. */
async function gone(zk: Client, path: string): Promise<void> {
  for await (const event of zk.watch(path)) {
    if (event.type === 'NodeDeleted' || (await zk.exists(path)) === null) return;
  }
}

describe.each(kinds)('the examples of recipes against %s', (kind) => {
  let hosts: string;
  let zk: Client;
  let finish!: () => void;
  let served: Promise<void>;

  beforeAll(async () => {
    await new Promise<void>((started, failed) => {
      served = inFolder(async (folder) => {
        const ending = new Promise<void>((resolve) => (finish = resolve));
        const servers = await serve(kind, folder);
        hosts = servers.hosts;
        zk = await connect(hosts);
        started();
        await ending;
        await zk.close();
        await servers.end();
      });
      served.catch(failed);
    });
  });

  afterAll(async () => {
    finish();
    await served;
  });

  const run = (example: string, ...args: string[]): Program => new Program(example, [hosts, ...args]);
  const textAt = async (path: string): Promise<string> => new TextDecoder().decode((await zk.getData(path)).data ?? undefined);

  it('C1-1, C1-19, C1-21: a lock: no number is given twice, and the killed process loses its turn only', async () => {
    const programs = ['anna', 'bert', 'cleo'].map((name) => run('lock', '/lock', '/number', name, '20', '10'));
    const [victim, ...others] = programs;
    await victim!.line('anna', 4);
    victim!.kill('SIGKILL');
    for (const { code, err } of await Promise.all(others.map((each) => each.output()))) expect([code, err]).toEqual([0, '']);
    await victim!.ended;
    const numbers = programs.flatMap(({ lines }) => lines.map((line) => Number(line.split(' ')[1]))).toSorted((one, other) => one - other);
    expect(new Set(numbers).size).toBe(numbers.length);
    // The killed one may have written a number that it did not come to say.
    const last = Number(await textAt('/number'));
    expect(last - numbers.length).toBeLessThanOrEqual(1);
    expect(numbers.at(-1)).toBe(last);
    expect(await zk.getChildren('/lock')).toMatchObject({ children: [] });
  });

  it('C1-24, C1-25: a shared lock: who writes is alone, also when one that writes is killed', async () => {
    const readers = ['anna', 'bert', 'cleo'].map((name) => run('shared-lock', '/shared', 'read', name, '6', '50'));
    const writers = ['dora', 'emil'].map((name) => run('shared-lock', '/shared', 'write', name, '6', '50'));
    const victim = run('shared-lock', '/shared', 'write', 'finn', '1', '3600000');
    await victim.line('writes');
    const killed = process.hrtime.bigint();
    victim.kill('SIGKILL');
    const programs = [...readers, ...writers];
    expect(await Promise.all(programs.map(({ ended }) => ended))).toEqual(programs.map(() => 0));
    await victim.ended;
    const spans = spansOf([...programs, victim], killed);
    expect(spans.length).toBe(31);
    expect(breaches(spans)).toEqual([]);
    // Readers were together, or the lock would be none; and a breach is seen.
    const isReader = ({ writes }: Span) => !writes;
    expect(breaches(spans.map((span) => ({ ...span, writes: isReader(span) }))).length).toBeGreaterThan(0);
  });

  it('C1-38, C1-39: an election: the next one leads when the leader is killed, and when one resigns', async () => {
    const watcher = run('election', '/election');
    await watcher.line('leader: nobody');
    const anna = run('election', '/election', 'anna');
    await watcher.line('leader: anna');
    const others = ['bert', 'cleo'].map((name) => run('election', '/election', name));
    let seen = watcher.lines.length;
    anna.kill('SIGKILL');
    const second = (await watcher.line('leader: ', seen)).slice('leader: '.length);
    const leader = others[['bert', 'cleo'].indexOf(second)]!;
    await leader.line(`${second} leads`);
    seen = watcher.lines.length;
    leader.kill('SIGTERM');
    expect(await leader.ended).toBe(0);
    const third = second === 'bert' ? 'cleo' : 'bert';
    await watcher.line(`leader: ${third}`, seen);
    for (const each of [...others, watcher]) each.kill('SIGTERM');
    expect(await Promise.all([...others, watcher].map(({ ended }) => ended))).toEqual([0, 0, 0]);
  });

  it('B15, C1-34, C1-37: a two-phase commit: sites that are killed ahead of their votes, and behind them, do as the others', async () => {
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
      for (const id of ['17', '18', '19', '20']) await gone(zk, `/payments/${id}`);
      for (const each of [paris, oslo, ...back]) each.kill('SIGTERM');
      expect(await Promise.all([paris, oslo, ...back].map((each) => each.output()))).toMatchObject(
        Array.from({ length: 4 }, () => ({ code: 0, err: '' })),
      );
      const written = readFileSync(`${folder}/berlin`, 'utf8').trim().split('\n');
      expect(written.filter((line) => !line.startsWith('promised'))).toEqual([
        'commit 17 50',
        'abort 18 500',
        'abort 19 50',
        'commit 20 50',
      ]);
    });
  });
});
