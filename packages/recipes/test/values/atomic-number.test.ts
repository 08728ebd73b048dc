import { type Client, KeeperError } from '@tskeeper/client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AtomicNumber, bigint64, CachedAtomicNumber, int32, type NumberFormat, textFloat, textInteger } from '../../src/index.ts';
import { forgetful } from '../support/faults.ts';
import { failureOf, RecipeWorld } from '../support/recipe-world.ts';

let t: RecipeWorld;

beforeEach(async () => {
  t = await RecipeWorld.start();
});

afterEach(async () => {
  await t.close();
});

const path = '/n';
const number = (zk: Client = t.zk) => new AtomicNumber(zk, path, { format: textInteger });

describe('an atomic number', () => {
  it('B19: is read, and written with the version that was read, together with a mark of its own, which it deletes in the end', async () => {
    const { zk, lines } = await t.recorded();
    const own = number(zk);
    expect(await t.until(own.increment())).toEqual({ before: 0, after: 1 });
    lines.length = 0;
    expect(await t.until(own.add(5))).toEqual({ before: 1, after: 6 });
    expect(lines).toEqual(['getData /n', 'multi: setData /n, setData /n/guid-mark-0000000000']);
    expect(await t.until(own.subtract(4))).toEqual({ before: 6, after: 2 });
    expect(await t.until(own.decrement())).toEqual({ before: 2, after: 1 });
    expect(await t.until(own.get())).toBe(1);
    expect(await t.childrenOf(path)).toEqual([expect.stringMatching(/^_c_[0-9a-f-]{36}-mark-0000000000$/)]);
    await t.until(own.close());
    expect(await t.childrenOf(path)).toEqual([]);
  });

  it('B19: is set, compared and set, and initialized', async () => {
    const own = number();
    expect(await t.until(own.get())).toBe(0);
    expect(await t.until(own.compareAndSet(1, 2))).toBe(false);
    expect(await t.until(t.zk.exists(path))).toBe(null);
    expect(await t.until(own.initialize(7))).toBe(true);
    expect(await t.until(own.initialize(8))).toBe(false);
    expect(await t.until(own.compareAndSet(7, 9))).toBe(true);
    expect(await t.until(own.set(-3))).toEqual({ before: 9, after: -3 });
    expect(await t.until(new AtomicNumber(t.zk, '/deep/down').increment())).toEqual({ before: 0n, after: 1n });
    await t.until(new AtomicNumber(t.zk, '/max').set(2n ** 63n - 1n));
    expect(await t.until(failureOf(new AtomicNumber(t.zk, '/max').increment()))).toMatchObject({ name: 'RangeError' });
    await t.until(t.zk.setData(path, 'seven'));
    expect(await t.until(failureOf(own.increment()))).toMatchObject({ name: 'TypeError' });
  });

  it('B19: counts every change of many clients, which queue after losses, with requests linear in the number of clients', async () => {
    const crowd = async (size: number): Promise<number> => {
      const recorded = await Promise.all(Array.from({ length: size }, () => t.recorded()));
      const counter = `/crowd${size}`;
      await t.until(new AtomicNumber(t.zk, counter).initialize(0n));
      const changes = await t.until(Promise.all(recorded.map(({ zk }) => new AtomicNumber(zk, counter).increment())));
      expect(changes.map(({ after }) => Number(after)).toSorted((a, b) => a - b)).toEqual(recorded.map((_each, index) => index + 1));
      return recorded.reduce((sum, { lines }) => sum + lines.length, 0);
    };
    const few = await crowd(10);
    const many = await crowd(100);
    expect(few / 10).toBeLessThan(25);
    expect(many / 100).toBeLessThan(25);
  });

  it.each(['multi', 'create2', 'getData'] as const)(
    'B19, C1-3: counts once when the reply to %s is lost, while others count the same',
    async (op) => {
      const { zk, lose } = await forgetful(t);
      const own = number(zk);
      const other = number();
      await t.until(other.initialize(0));
      for (let round = 1; round <= 5; round++) {
        lose(op);
        const [mine, theirs] = await t.until(Promise.all([own.increment(), other.increment()]));
        expect([mine.after, theirs.after].toSorted((a, b) => a - b)).toEqual([round * 2 - 1, round * 2]);
      }
      expect(await t.until(own.get())).toBe(10);
    },
  );

  it('B19: repeats a write that was not applied because its request was lost', async () => {
    const zk = await t.client();
    const own = number(zk);
    await t.until(own.increment());
    const { forward } = t.world.cnxn;
    forward.cut();
    const late = own.increment();
    await t.settle();
    await t.until(number().set(2));
    t.world.break([...t.world.wire.cnxns].find((cnxn) => cnxn.forward === forward));
    expect(await t.until(late)).toEqual({ before: 2, after: 3 });
  });

  it('stops at the timeout or an abort of the signal, continues with the next change, and replaces a deleted mark', async () => {
    const zk = await t.client();
    const own = number(zk);
    await t.until(own.increment());
    const { backward } = t.world.cnxn;
    backward.cut();
    expect(await t.until(failureOf(own.increment({ timeoutMs: 300 })))).toMatchObject({ name: 'RecipeError', code: 'TimedOut' });
    const abort = new AbortController();
    const unwanted = failureOf(own.increment({ signal: abort.signal }));
    abort.abort(new Error('never mind'));
    expect(await t.until(unwanted)).toMatchObject({ message: 'never mind' });
    backward.heal();
    const now = await t.until(own.get());
    expect(await t.until(own.increment())).toEqual({ before: now, after: now + 1 });
    const [writer] = await t.childrenOf(path);
    await t.until(t.zk.delete(`${path}/${writer}`));
    expect(await t.until(own.increment())).toEqual({ before: now + 1, after: now + 2 });
    const doomed = await t.client();
    await t.until(number(doomed).increment());
    await t.until(doomed.close());
    expect(KeeperError.is(await t.until(failureOf(number(doomed).increment())), 'SessionExpired')).toBe(true);
  });
});

describe('number formats', () => {
  const table: readonly (readonly [string, NumberFormat<number> | NumberFormat<bigint>, number | bigint, string])[] = [
    ['bigint64', bigint64, 258n, '0000000000000102'],
    ['bigint64', bigint64, -1n, 'ffffffffffffffff'],
    ['int32', int32, -2, 'fffffffe'],
    ['int32', int32, 2 ** 31 - 1, '7fffffff'],
    ['textInteger', textInteger, -12, Buffer.from('-12').toString('hex')],
    ['textFloat', textFloat, 2, Buffer.from('2.0').toString('hex')],
    ['textFloat', textFloat, -0.25, Buffer.from('-0.25').toString('hex')],
    ['textFloat', textFloat, 1e22, Buffer.from('1e+22').toString('hex')],
  ];

  it.each(table)('B19: encode a %s as Curator or kazoo does: %#', (_name, format, value, hex) => {
    const { encode, decode } = format as NumberFormat<number | bigint>;
    expect(Buffer.from(encode(value)).toString('hex')).toBe(hex);
    expect(decode(Buffer.from(`ff${hex}`, 'hex').subarray(1))).toBe(value);
  });

  it('reject numbers that do not fit, and data in another format', () => {
    expect(() => bigint64.encode(2n ** 63n)).toThrow(RangeError);
    expect(() => int32.encode(2 ** 31)).toThrow('2147483648 does not fit the format int32');
    expect(() => int32.encode(0.5)).toThrow(RangeError);
    expect(() => textInteger.encode(2 ** 53)).toThrow(RangeError);
    expect(() => textFloat.encode(NaN)).toThrow(RangeError);
    expect(() => bigint64.decode(Buffer.from('12'))).toThrow('these 2 bytes are not in the format bigint64: 31 32; use the format');
    expect(() => textInteger.decode(Buffer.from('1.5'))).toThrow(TypeError);
    expect(() => textInteger.decode(Buffer.from('9007199254740993'))).toThrow('9007199254740993 does not fit the format textInteger');
    expect(() => textFloat.decode(Buffer.from('nan'))).toThrow(TypeError);
    expect(textFloat.decode(Buffer.from('1e-05'))).toBe(0.00001);
  });
});

describe('a cached number', () => {
  it('B19: hands numbers out by ranges, each once, and sends requests only at the end of a range', async () => {
    const { zk, lines } = await t.recorded();
    const taken = new AtomicNumber(zk, path);
    const one = new CachedAtomicNumber(taken, 10);
    const two = new CachedAtomicNumber(new AtomicNumber(await t.client(), path), 10);
    await t.until(one.next());
    lines.length = 0;
    const rest = await t.until(Promise.all(Array.from({ length: 9 }, () => one.next())));
    expect(rest).toEqual([1n, 2n, 3n, 4n, 5n, 6n, 7n, 8n, 9n]);
    expect(lines).toEqual([]);
    const given = await t.until(Promise.all(Array.from({ length: 40 }, (_each, index) => (index % 4 === 0 ? two : one).next())));
    expect(new Set(given).size).toBe(40);
    expect(await t.until(taken.get())).toBe(50n);
    expect(() => new CachedAtomicNumber(new AtomicNumber(zk, path), 0)).toThrow('the size of a range must be a whole number from 1, not 0');
  });

  it('B19: hands no number out twice, whichever replies are lost, and continues after a failure', async () => {
    const { zk, lose } = await forgetful(t);
    const ids = new CachedAtomicNumber(new AtomicNumber(zk, path, { format: textInteger }), 2);
    const given: number[] = [];
    for (let round = 0; round < 8; round++) {
      if (round % 4 === 0) lose('multi');
      given.push(await t.until(ids.next()));
    }
    expect(given).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    const abort = new AbortController();
    abort.abort(new Error('not now'));
    await expect(ids.next({ signal: abort.signal })).rejects.toThrow('not now');
    expect(await t.until(ids.next())).toBe(8);
  });

  it('waits no longer than its timeout, also after a call that waits forever', async () => {
    const { zk } = await t.recorded();
    const ids = new CachedAtomicNumber(new AtomicNumber(zk, path), 2);
    await t.until(ids.next());
    await t.until(ids.next());
    t.world.wire.name('server', []);
    t.world.break(t.world.cnxn);
    const patient = ids.next();
    const hurried = failureOf(ids.next({ timeoutMs: 100 }));
    expect(await t.until(hurried, 500)).toMatchObject({ code: 'TimedOut' });
    const last = ids.next();
    await t.pass(100);
    t.world.wire.name('server', [t.world.address]);
    expect(await t.until(Promise.all([patient, last]))).toEqual([2n, 3n]);
  });
});
