import { expect, it } from 'vitest';
import type { Logger, MemoryUse } from '../src/index.ts';
import { MemoryGuard } from '../src/internal.ts';

const mebibyte = 1024 * 1024;

/** A guard over a heap of 100 MiB and a process of 1000, and their current use, in MiB. */
class Rig {
  heap = 10;
  process = 100;
  idleTree = 0;
  returnedTree = 0;
  slack = 0;
  reserve = 0;
  watches = 0;
  readonly lines: string[] = [];
  readonly guard: MemoryGuard;

  constructor() {
    const use = (what: string, used: number, limit: number, holdsTree: boolean): MemoryUse => {
      return {
        what,
        usedBytes: used * mebibyte,
        limitBytes: limit * mebibyte,
        remedy: `Get ${what} more.`,
        holdsTree,
        slackBytes: holdsTree ? this.slack * mebibyte : 0,
        reserveBytes: holdsTree ? this.reserve * mebibyte : 0,
      };
    };
    const note = (level: string) => (line: string) => void this.lines.push(`${level} ${line}`);
    const logger: Logger = { debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error') };
    const own = (): number => this.idleTree * mebibyte;
    const returned = (): number => this.returnedTree * mebibyte;
    const watches = (): number => this.watches * mebibyte;
    this.guard = new MemoryGuard(
      () => [use('the JavaScript heap', this.heap, 100, false), use('this process', this.process, 1000, true)],
      {
        get idleTreeBytes() {
          return own();
        },
        get returnedTreeBytes() {
          return returned();
        },
        get watchBytes() {
          return watches();
        },
      },
      logger,
    );
  }

  #nowMs = 0;

  /** The state after a measurement, a second after the previous one. */
  look(
    changed: Partial<Pick<Rig, 'heap' | 'process' | 'idleTree' | 'returnedTree' | 'slack' | 'reserve' | 'watches'>>,
    afterMs = 1000,
  ): string {
    Object.assign(this, changed);
    this.#nowMs += afterMs;
    this.guard.check(this.#nowMs);
    return this.guard.state;
  }
}

it('F34: memory is tight from 85 % of the closer limit, and full from 90 %', () => {
  const rig = new Rig();
  expect([84, 85, 89, 90, 100].map((heap) => rig.look({ heap }))).toEqual(['ample', 'tight', 'tight', 'full', 'full']);
  expect([840, 850, 900].map((process) => new Rig().look({ process }))).toEqual(['ample', 'tight', 'full']);
});

it('F34: a stage of the memory guard ends only well below the usage at which it began', () => {
  const rig = new Rig();
  expect([90, 86, 85, 84, 81, 80, 79].map((heap) => rig.look({ heap }))).toEqual([
    'full', 'full', 'full', 'tight', 'tight', 'tight', 'ample',
  ]); // prettier-ignore
});

it('F34: a stage of the memory guard begins at once and lasts at least a second', () => {
  const rig = new Rig();
  const states = [rig.look({ heap: 95 }, 10), rig.look({ heap: 10 }, 999), rig.look({ heap: 10 }, 1), rig.look({ heap: 86 }, 1)];
  expect(states).toEqual(['full', 'full', 'ample', 'tight']);
  expect([rig.look({ heap: 95 }, 1), rig.look({ heap: 10 }, 999)]).toEqual(['full', 'full']);
});

it('F34: each change of stage of the memory guard is logged once, with figures and the remedy', () => {
  const rig = new Rig();
  for (const heap of [50, 86, 87, 91, 95, 83, 50, 51]) rig.look({ heap });
  expect(rig.lines).toEqual([
    'warn memory is getting tight: the JavaScript heap uses 86.0 MiB of its limit of 100.0 MiB. New sessions and long multis are refused. Get the JavaScript heap more.',
    'warn memory is full: the JavaScript heap uses 91.0 MiB of its limit of 100.0 MiB. Creates, larger data and further watches are refused (ThrottledOp); reads, deletes and sessions continue. Get the JavaScript heap more.',
    'warn memory is getting tight: the JavaScript heap uses 83.0 MiB of its limit of 100.0 MiB. New sessions and long multis are refused. Get the JavaScript heap more.',
    'info memory pressure is over: the JavaScript heap uses 50.0 MiB of its limit of 100.0 MiB; accepting all requests',
  ]);
});

it('F34: free space within the pages of the tree counts as free, although the process keeps it', () => {
  const rig = new Rig();
  expect(rig.look({ process: 950 })).toBe('full');
  expect(rig.look({ idleTree: 300 })).toBe('ample');
  // The heap does not contain the znodes.
  expect(rig.look({ heap: 95 })).toBe('full');
});

it('F34: memory that the tree has released counts as free as far as the process may still hold it, unless the process is over its limit', () => {
  expect(new Rig().look({ process: 950, returnedTree: 300, slack: 0 })).toBe('full');
  expect(new Rig().look({ process: 950, returnedTree: 300, slack: 30 })).toBe('full');
  expect(new Rig().look({ process: 950, returnedTree: 30, slack: 300 })).toBe('full');
  expect(new Rig().look({ process: 950, returnedTree: 300, slack: 300 })).toBe('ample');
  expect(new Rig().look({ process: 1000, returnedTree: 300, slack: 300 })).toBe('full');
});

it('F34: further watches are refused while watches take more than a quarter of the memory limit of the process', () => {
  const rig = new Rig();
  const mayGrow = (watches: number): boolean => {
    rig.look({ watches });
    return rig.guard.watchesMayGrow;
  };
  expect([250, 251, 220, 199].map(mayGrow)).toEqual([true, false, false, true]);
  expect(rig.lines).toEqual([
    'warn watches take 251.0 MiB and may take a quarter of the limit of this process (1000.0 MiB): requests that set more watches are answered with ThrottledOp. Get this process more.',
    'info watches take 199.0 MiB: more may be set again',
  ]);
});

it('the stages of the memory guard are shares of the limit minus the momentary reserve', () => {
  expect(new Rig().look({ process: 840, reserve: 0 })).toBe('ample');
  expect(new Rig().look({ process: 840, reserve: 50 })).toBe('tight');
  expect(new Rig().look({ process: 840, reserve: 100 })).toBe('full');
});
