import { openAcl, OpCode, type Txn } from '@tskeeper/protocol';
import { expect, it } from 'vitest';
import { Replica, replicaOptions } from '../src/request/replica.ts';
import { Script, testOptions } from './support/script.ts';

/** A tree with a znode /q below which `count` znodes have been created, a number of 32 bits. */
function afterCreates(count: number): Replica {
  const replica = new Replica(replicaOptions(testOptions, { uint32: () => 1 }));
  const create = (path: string, parentCVersion: number): Txn => {
    return { kind: 'create', path, data: null, acl: openAcl, ephemeral: false, parentCVersion };
  };
  const apply = (zxid: number, txn: Txn): void => {
    replica.apply({ clientHigh: 0, clientLow: 1, cxid: 0, zxid, time: 0, type: OpCode.create }, txn, undefined);
  };
  apply(1, create('/q', 1));
  // The counter never moves by half a circle at once.
  apply(2, create('/q/first', count < 0 ? 2_147_483_647 : count));
  if (count < 0) apply(3, create('/q/second', count));
  return replica;
}

/** Commands to a script, and the replies to creates. */
function creatorOf(script: Script): (...lines: string[]) => string[] {
  return (...lines) => lines.flatMap((line) => script.run(line)).filter((line) => line.startsWith('a <- create'));
}

it('A6, C3-19, C3-20, E7: after 2147483647 the counter of a parent continues at -2147483648, one by one and many at once', () => {
  const script = new Script({}, afterCreates(2_147_483_646));
  const run = creatorOf(script);
  script.run('log at once');
  script.run('a connects');
  const one = 'a create /q/n- mode=2';
  expect(run(one, one, one)).toEqual([
    'a <- create 0x4 /q/n-2147483646',
    'a <- create 0x5 /q/n-2147483647',
    'a <- create 0x6 /q/n--2147483648',
  ]);
  script.run('log on request');
  expect(run(one, one, 'appended')).toEqual(['a <- create 0x7 /q/n--2147483647', 'a <- create 0x8 /q/n--2147483646']);
});

const wide = { wideSequences: true };
const record = 'a getData /zookeeper/sequences/%2Fq';

it('option tskeeper.wideSequences: D17: numbers continue after 2147483647, one by one and many at once', () => {
  const script = new Script(wide, afterCreates(2_147_483_646));
  const run = creatorOf(script);
  script.run('log at once');
  script.run('a connects');
  const one = 'a create /q/n- mode=2';
  expect(run(one, one, one)).toEqual([
    'a <- create 0x4 /q/n-2147483646',
    'a <- create 0x5 /q/n-2147483647',
    // 0x6 made the record.
    'a <- create 0x7 /q/n-2147483648',
  ]);
  expect(script.run(record).join('\n')).toContain('number=2147483648');
  script.run('log on request');
  expect(run(one, one, 'appended')).toEqual(['a <- create 0x8 /q/n-2147483649', 'a <- create 0x9 /q/n-2147483650']);
});

it('D17: numbers continue after 4294967295, and the counter in 32 bits begins anew', () => {
  const script = new Script(wide, afterCreates(-2));
  const run = creatorOf(script);
  script.run('log on request');
  script.run('a connects');
  script.run('appended');
  const one = 'a create /q/n- mode=2';
  expect(run(one, one, one, one, 'appended').map((line) => line.split(' ').at(-1))).toEqual([
    '/q/n-4294967294',
    '/q/n-4294967295',
    '/q/n-4294967296',
    '/q/n-4294967297',
  ]);
});

it.each([
  ['two creates, and one after them', ['a multi [create /q/n- mode=2; create /q/n- mode=2]', 'a create /q/n- mode=2']],
  ['three creates', ['a multi [create /q/n- mode=2; create /q/n- mode=2; create /q/n- mode=2]']],
])('D17: a multi passes 4294967295 while there is no record: %s', (_, lines) => {
  const script = new Script(wide, afterCreates(-2));
  script.run('log at once');
  script.run('a connects');
  const replies = lines.flatMap((line) => script.run(line)).join('\n');
  expect([...replies.matchAll(/n-\d+/g)].map(String)).toEqual(['n-4294967294', 'n-4294967295', 'n-4294967296']);
  expect(script.run(record).join('\n')).toMatch(/number=429496729[67]/);
});

it('D17: a record is renewed after 2^30 creates, and one of an earlier znode does not count', () => {
  const replica = afterCreates(5);
  const apply = (zxid: number, type: number, txn: Txn): void => {
    replica.apply({ clientHigh: 0, clientLow: 1, cxid: 0, zxid, time: 0, type }, txn, undefined);
  };
  const create = (zxid: number, path: string, data: string | null): void =>
    apply(zxid, OpCode.create, {
      kind: 'create',
      path,
      data: data === null ? null : Buffer.from(data),
      acl: openAcl,
      ephemeral: false,
      parentCVersion: -1,
    });
  create(3, '/zookeeper/sequences', null);
  const number = 3 * 2 ** 32 + 6 - 2 ** 30;
  create(4, '/zookeeper/sequences/%2Fq', `number=${number}\nczxid=0x1\n`);
  create(5, '/other', null);
  create(6, '/zookeeper/sequences/%2Fother', `number=${number}\nczxid=0x1\n`);
  const script = new Script(wide, replica);
  const run = creatorOf(script);
  script.run('log at once');
  script.run('a connects');
  expect(run('a create /q/n- mode=2').join()).toContain(`/q/n-${3 * 2 ** 32 + 5}`);
  expect(script.run(record).join('\n')).toContain(`number=${3 * 2 ** 32 + 6}`);
  expect(run('a create /q/n- mode=2').join()).toContain(`/q/n-${3 * 2 ** 32 + 6}`);
  expect(run('a create /other/n- mode=2').join()).toContain('/other/n-0000000000');
});

it('D17: a record counts without the option as well', () => {
  const replica = afterCreates(2_147_483_647);
  const script = new Script(wide, replica);
  script.run('log at once');
  script.run('a connects');
  script.run('a create /q/n- mode=2');
  const without = new Script({}, replica);
  const run = creatorOf(without);
  without.run('log at once');
  without.run('a connects');
  expect(run('a create /q/n- mode=2').join()).toContain('/q/n-2147483648');
});

it('D17: no client may write the records', () => {
  const script = new Script(wide);
  script.run('log at once');
  script.run('a connects');
  expect(script.run('a create /zookeeper/sequences').join()).toContain('NoAuth');
});
