/**
 * Numbers that all processes increment, a count and a text that all change, and numbers that are
 * handed out once: each change is unique.
 */
import type { Client } from '@tskeeper/client';
import {
  AtomicNumber,
  CachedAtomicNumber,
  Lock,
  type SessionSource,
  SharedCount,
  SharedValue,
  textCodec,
  textInteger,
} from '@tskeeper/recipes';
import type { SeededRandom } from '@tskeeper/runtime';
import type { Evidence, Family, FamilyRun } from '../family.ts';
import type { RecipeProcess } from '../recipe-process.ts';
import { type ValueChange, type ValueStep, ValueChecker } from '../value-checker.ts';
import { drawWaitOptions } from './work-under-hold.ts';
import { deleteAsOperator, childNames } from './family-helpers.ts';

export const values: Family = {
  description: 'processes change numbers and a text, all at once',
  marks: [
    'a counter was incremented',
    'a number was set',
    'a number was compared and set',
    'a number was another when it was compared',
    'a text was compared and set',
    'a text was another when it was compared',
    'a text was changed',
    'a count was changed',
    'an id was allocated',
    'an operator deleted a marker',
    'an operator broke the lock of a counter',
  ],
  drawRun: (random) => new ValueRun(random),
};

const folder = '/values';
const numberPath = `${folder}/number`;
const idsPath = `${folder}/ids`;
const countPath = `${folder}/count`;
const textPath = `${folder}/text`;

/**
 * Increments are lower than this, and set values are multiples of it, so a step tells which of the
 * two it was.
 */
const setStep = 1_000_000_000;

/** As one session of a process uses them. */
interface Values {
  readonly number: AtomicNumber<number>;
  readonly count: SharedCount;
  readonly text: SharedValue<string>;
}

class ValueRun implements FamilyRun {
  readonly processes: number;
  readonly pauseMsMax: number;
  readonly #rangeSize: number;
  readonly #checker = new ValueChecker();
  readonly #values = new WeakMap<SessionSource, Values>();
  readonly #ids = new WeakMap<Client, CachedAtomicNumber<number>>();
  #changes = 0;

  constructor(random: SeededRandom) {
    this.processes = 2 + random.below(4);
    this.pauseMsMax = 1 + random.below(200);
    this.#rangeSize = 1 + random.below(4);
  }

  async turn(process: RecipeProcess, zk: Client): Promise<boolean> {
    const own = this.#valuesOf(await process.source(zk));
    const acts: readonly Operation[] = [
      () => this.#add(process, own),
      () => this.#set(process, own),
      () => this.#compareAndSet(process, own),
      () => this.#takeId(process, zk),
      () => this.#changeCount(process, own),
      () => this.#changeText(process, own),
      () => this.#compareText(process, own),
    ];
    if (process.isHealed) for (const act of acts) await act();
    else await this.#some(process, acts);
    return true;
  }

  /** One after the other, or all at once. */
  async #some(process: RecipeProcess, acts: readonly Operation[]): Promise<void> {
    const drawn = Array.from({ length: 1 + process.below(3) }, () => acts[process.below(acts.length)]!);
    const calls = drawn.map((act) => act().catch((error) => process.handleError(error)));
    await Promise.all(calls);
  }

  /** Kept as long as the session, or with Sessions as long as the process, as a program would. */
  #valuesOf(source: SessionSource): Values {
    let own = this.#values.get(source);
    if (own === undefined) {
      const options = { format: textInteger };
      own = {
        number: new AtomicNumber(source, numberPath, options),
        count: new SharedCount(source, countPath, options),
        text: new SharedValue(source, textPath, textCodec),
      };
      this.#values.set(source, own);
    }
    return own;
  }

  /** Kept as long as the session: numbers must be from a range that this session has taken. */
  #idsOf(zk: Client): CachedAtomicNumber<number> {
    let ids = this.#ids.get(zk);
    if (ids === undefined) {
      ids = new CachedAtomicNumber(new AtomicNumber(zk, idsPath, { format: textInteger }), this.#rangeSize);
      this.#ids.set(zk, ids);
    }
    return ids;
  }

  async #add(process: RecipeProcess, { number }: Values): Promise<void> {
    const delta = ++this.#changes * (process.below(3) === 0 ? -1 : 1);
    const change = this.#change(process, numberPath, `add ${delta}`, isAdded(delta));
    await this.#checker.recordChange(change, number.add(delta, drawWaitOptions(process)), shown);
    process.hitMark('a counter was incremented');
  }

  async #set(process: RecipeProcess, { number }: Values): Promise<void> {
    if (process.below(3) > 0) return;
    const value = ++this.#changes * setStep;
    const change = this.#change(process, numberPath, `set ${value}`, isSetTo(value));
    await this.#checker.recordChange(change, number.set(value, drawWaitOptions(process)), shown);
    process.hitMark('a number was set');
  }

  async #compareAndSet(process: RecipeProcess, { number }: Values): Promise<void> {
    const expected = await number.get(drawWaitOptions(process));
    if (process.below(2) === 0) await process.sleep(process.below(50));
    const value = ++this.#changes * setStep;
    const change: ValueChange = {
      ...this.#change(process, numberPath, `compare ${expected} and set ${value}`, isSetTo(value)),
      fits: ({ before }) => before === String(expected),
    };
    const isSet = await this.#checker.recordChange(change, number.compareAndSet(expected, value, drawWaitOptions(process)), (is) => is);
    process.hitMark(isSet ? 'a number was compared and set' : 'a number was another when it was compared');
  }

  async #takeId(process: RecipeProcess, zk: Client): Promise<void> {
    const ids = this.#idsOf(zk);
    const give = async () => {
      this.#checker.recordIssued(process.name, zk.sessionId, idsPath, await ids.next(drawWaitOptions(process)));
      process.hitMark('an id was allocated');
    };
    await Promise.all(Array.from({ length: 1 + process.below(4) }, give));
  }

  async #changeCount(process: RecipeProcess, { count }: Values): Promise<void> {
    const delta = ++this.#changes;
    const change = this.#change(process, countPath, `count ${delta} more`, isAdded(delta));
    await this.#checker.recordChange(
      change,
      count.update((now = 0) => now + delta, drawWaitOptions(process)),
    );
    process.hitMark('a count was changed');
  }

  /** An update from the current text, which the new one names; or a set regardless of it. */
  async #changeText(process: RecipeProcess, { text: value }: Values): Promise<void> {
    const name = `text-${++this.#changes}`;
    if (process.below(3) === 0) {
      const change = { ...this.#change(process, textPath, `set ${name}`, ({ after }) => after === name), mayRepeat: true };
      await this.#checker.recordChange(change, value.set(name, drawWaitOptions(process)));
      return;
    }
    const change: ValueChange = {
      ...this.#change(process, textPath, `update to ${name}`, ({ after }) => nameOf(after) === name),
      fits: ({ before, after }) => after === `${name} behind ${nameOf(before)}`,
    };
    const call = value.update(async (now) => {
      if (process.below(4) === 0) await process.sleep(process.below(40));
      return `${name} behind ${nameOf(now)}`;
    }, drawWaitOptions(process));
    await this.#checker.recordChange(change, call);
    process.hitMark('a text was changed');
  }

  async #compareText(process: RecipeProcess, { text: value }: Values): Promise<void> {
    await value.ready(drawWaitOptions(process));
    const { current } = value;
    if (current !== undefined) this.#checker.recordShown(process.name, textPath, current.value, current.stat.mzxid);
    if (process.below(2) === 0) await process.sleep(process.below(50));
    const name = `text-${++this.#changes}`;
    const change: ValueChange = {
      ...this.#change(process, textPath, `compare and set ${name}`, ({ after }) => after === name),
      fits: ({ before }) => before === current?.value,
    };
    const had = await this.#checker.recordChange(
      change,
      value.compareAndSet(current, name, drawWaitOptions(process)),
      (is) => is !== undefined,
    );
    process.hitMark(had === undefined ? 'a text was another when it was compared' : 'a text was compared and set');
  }

  #change({ name: process }: RecipeProcess, path: string, what: string, isOwn: ValueChange['isOwn']): ValueChange {
    return { process, path, what, isOwn, state: 'open' };
  }

  /** Deletes what the changes rely on: marks, and places in the wait queue of the lock. */
  async operatorAction(operator: RecipeProcess, zk: Client): Promise<void> {
    const path = operator.below(3) === 0 ? idsPath : numberPath;
    const lock = new Lock(zk, `${path}/lock`);
    let [first] = await lock.contenders();
    // The lock is held seldom and briefly.
    for (let looks = operator.below(80); looks > 0 && first === undefined; looks--) {
      await operator.sleep(5);
      [first] = await lock.contenders();
    }
    if (first !== undefined) {
      operator.hitMark('an operator broke the lock of a counter');
      await deleteAsOperator(zk, first.path);
      return;
    }
    const marks = (await childNames(zk, path)).filter((name) => name !== 'lock').toSorted();
    const mark = marks[operator.below(4)];
    if (mark === undefined) return;
    operator.hitMark('an operator deleted a marker');
    await deleteAsOperator(zk, `${path}/${mark}`);
  }

  async leftovers(zk: Client): Promise<readonly string[]> {
    const lines = await Promise.all([numberPath, idsPath].map((path) => new Lock(zk, `${path}/lock`).contenders()));
    return lines.flat().map(({ path }) => path);
  }

  check({ history }: Evidence): readonly string[] {
    return this.#checker.check(history);
  }
}

type Operation = () => Promise<void>;

function isAdded(delta: number): ValueChange['isOwn'] {
  return ({ before, after }) => Number(after) - Number(before ?? 0) === delta;
}

/** Many increments may add up to the same value by chance. */
function isSetTo(value: number): ValueChange['isOwn'] {
  return ({ before, after }) => after === String(value) && Math.abs(value - Number(before ?? 0)) > setStep / 2;
}

function shown({ before, after }: { readonly before: number; readonly after: number }): ValueStep {
  return { before: String(before), after: String(after) };
}

function nameOf(value: string | undefined): string {
  return value === undefined ? 'none' : value.split(' ')[0]!;
}
