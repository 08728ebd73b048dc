import { openAcl, OpCode, type Txn } from '@tskeeper/protocol';
import { expect, it } from 'vitest';
import { Replica, replicaOptions } from '../src/request/replica.ts';
import { Script, testOptions } from './support/script.ts';

/** A tree with a znode /q below which `count` znodes have been created. */
function afterCreates(count: number): Replica {
  const replica = new Replica(replicaOptions(testOptions, { uint32: () => 1 }));
  const create = (path: string, parentCVersion: number): Txn => {
    return { kind: 'create', path, data: null, acl: openAcl, ephemeral: false, parentCVersion };
  };
  const apply = (zxid: number, txn: Txn): void => {
    replica.apply({ clientHigh: 0, clientLow: 1, cxid: 0, zxid, time: 0, type: OpCode.create }, txn, undefined);
  };
  apply(1, create('/q', 1));
  apply(2, create('/q/first', count));
  return replica;
}

it('A6, C3-19, C3-20, E7: after 2147483647 the counter of a parent continues at -2147483648, one by one and many at once', () => {
  const script = new Script({}, afterCreates(2_147_483_646));
  const run = (...lines: string[]): string[] => lines.flatMap((line) => script.run(line)).filter((line) => line.startsWith('a <- create'));
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
