/** The examples of recipes while the leader of their ensemble is killed and restarted. */
import { connect } from '@tskeeper/client';
import { describe, expect, it, onTestFinished } from 'vitest';
import { namesBelow, textAt, timeout } from './example-servers.ts';
import { Program } from './program.ts';
import { inFolder, startEnsemble } from './servers.ts';
import { earliest, latest, timesOf } from './spans.ts';

type Run = (example: string, ...args: string[]) => Program;

/**
 * Some running programs. Each story has three parts: before the kill, while there is no leader, and
 * when all servers run again.
 */
abstract class Story {
  protected readonly run: Run;

  constructor(run: Run) {
    this.run = run;
  }

  /** Resolves when they are in the middle of their work. */
  abstract begin(): Promise<unknown>;
  /** Another process joins. */
  abstract join(): void;
  /** Resolves when everything is done. */
  abstract end(): Promise<unknown>;
}

class Locks extends Story {
  readonly #programs: Program[] = [];

  #count(name: string): Program {
    const program = this.run('lock', '/lock', '/number', name, '30', '40');
    this.#programs.push(program);
    return program;
  }

  begin(): Promise<unknown> {
    return Promise.all(['anna', 'bert', 'cleo'].map((name) => this.#count(name).line(name)));
  }

  join(): void {
    this.#count('dora');
  }

  /**
   * A process that was about to write when the leader was killed may not know the result, and ends
   * with a message.
   */
  async end(): Promise<{ numbers: number[]; unsure: number }> {
    const ends = await Promise.all(this.#programs.map((each) => each.output()));
    const unsure = ends.filter(({ code, err }) => code === 1 && err.includes('ConnectionLoss')).length;
    expect(ends.filter(({ code, err }) => code === 0 && err === '').length + unsure).toBe(4);
    const numbers = this.#programs.flatMap(({ lines }) => lines.map((line) => Number(line.split(' ')[1])));
    return { numbers: numbers.toSorted((one, other) => one - other), unsure };
  }
}

class Elections extends Story {
  #watcher!: Program;
  #leader!: Program;
  #next!: Program;

  async begin(): Promise<void> {
    this.#watcher = this.run('election', '/election');
    await this.#watcher.line('leader: none');
    this.#leader = this.run('election', '/election', 'anna');
    await this.#watcher.line('leader: anna');
  }

  join(): void {
    this.#next = this.run('election', '/election', 'bert');
  }

  async end(): Promise<void> {
    // It has led all the time: no other leader was printed.
    expect(new Set(this.#watcher.lines)).toEqual(new Set(['leader: none', 'leader: anna']));
    expect(this.#leader.lines).toEqual(['anna leads']);
    const seen = this.#watcher.lines.length;
    this.#leader.kill('SIGKILL');
    await this.#watcher.line('leader: bert', seen);
    const rest = [this.#watcher, this.#next];
    for (const each of rest) each.kill('SIGTERM');
    expect(await Promise.all(rest.map((each) => each.output()))).toMatchObject(rest.map(() => ({ code: 0, err: '' })));
  }
}

class Queues extends Story {
  readonly #workers: Program[] = [];
  readonly #producers: Program[] = [];

  async begin(): Promise<void> {
    this.#workers.push(...['anna', 'bert'].map((name) => this.run('queue', '/jobs', '/results', 'work', name, '40')));
    this.#producers.push(this.run('queue', '/jobs', '/results', 'put', 'paul', '60'));
    await Promise.all(this.#workers.map((each) => each.line('has done')));
  }

  join(): void {
    this.#producers.push(this.run('queue', '/jobs', '/results', 'put', 'pia', '20'));
    this.#workers.push(this.run('queue', '/jobs', '/results', 'work', 'cleo', '40'));
  }

  async end(): Promise<string[]> {
    for (const each of this.#producers) expect(await each.output()).toMatchObject({ code: 0, err: '' });
    const items = [
      ...Array.from({ length: 60 }, (_, number) => `paul-${number}`),
      ...Array.from({ length: 20 }, (_, number) => `pia-${number}`),
    ];
    for (const item of items) await Promise.race(this.#workers.map((each) => each.line(`has done ${item}`)));
    for (const each of this.#workers) await each.line('is at work');
    for (const each of this.#workers) each.kill('SIGTERM');
    for (const each of this.#workers) expect(await each.output()).toMatchObject({ code: 0, err: '' });
    return items;
  }
}

class DoubleBarriers extends Story {
  readonly #programs: Program[] = [];

  #enter(name: string): Program {
    const program = this.run('double-barrier', '/double', '3', name, '5', '50');
    this.#programs.push(program);
    return program;
  }

  begin(): Promise<unknown> {
    return Promise.all(['anna', 'bert'].map((name) => this.#enter(name).line('reached-0')));
  }

  join(): void {
    this.#enter('cleo');
  }

  async end(): Promise<void> {
    const programs = this.#programs;
    expect(await Promise.all(programs.map((each) => each.output()))).toMatchObject(programs.map(() => ({ code: 0, err: '' })));
    for (let round = 0; round < 5; round++) {
      expect(latest(timesOf(programs, `reached-${round}`))).toBeLessThan(earliest(timesOf(programs, `entered-${round}`)));
      expect(latest(timesOf(programs, `leaves-${round}`))).toBeLessThan(earliest(timesOf(programs, `left-${round}`)));
    }
  }
}

describe('the examples of recipes', { timeout }, () => {
  it('C1-1: continue when the leader of the ensemble is killed in the middle, and restarts', async () => {
    await inFolder(async (folder) => {
      await using ensemble = await startEnsemble(folder, { voters: 3 });
      await using zk = await connect(ensemble.connectString);
      const programs: Program[] = [];
      onTestFinished(() => {
        for (const each of programs) each.kill('SIGKILL');
      });
      const run: Run = (example, ...args) => {
        const program = new Program(example, [ensemble.connectString, ...args]);
        programs.push(program);
        return program;
      };
      const [locks, elections, queues, barriers] = [new Locks(run), new Elections(run), new Queues(run), new DoubleBarriers(run)];
      const stories = [locks, elections, queues, barriers];
      // The first has two steps, and the others have an end.
      await elections.begin();
      await Promise.all([locks, queues, barriers].map((each) => each.begin()));
      const leader = (await ensemble.leader()).sid;
      await ensemble.kill(leader);
      for (const each of stories) each.join();
      await ensemble.leader();
      await ensemble.start([leader]);
      const [{ numbers, unsure }, , items] = await Promise.all([locks.end(), elections.end(), queues.end(), barriers.end()]);

      expect(new Set(numbers).size).toBe(numbers.length);
      const unsaid = Number(await textAt(zk, '/number')) - numbers.length;
      expect(unsaid).toBeGreaterThanOrEqual(0);
      expect(unsaid).toBeLessThanOrEqual(unsure);
      expect(await namesBelow(zk, '/results')).toEqual(items.toSorted());
      expect(await namesBelow(zk, '/jobs')).toEqual([]);
    });
  });
});
