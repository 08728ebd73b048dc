import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Acl } from '@tskeeper/protocol';
import { expect, it } from 'vitest';
import { AclTable } from '../../src/tree/acl-table.ts';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

function heapGrowth(of: () => void): number {
  collect();
  const before = process.memoryUsage().heapUsed;
  of();
  collect();
  return process.memoryUsage().heapUsed - before;
}

function users(list: number, count: number): Acl[] {
  return Array.from({ length: count }, (_, i) => ({ perms: 31, id: { scheme: 'digest', id: `user${list}-${i}:hash` } }));
}

it('ACLs are stored outside of the heap, a few long ones as well as many short ones', () => {
  const table = new AclTable();
  const long = heapGrowth(() => {
    for (let i = 0; i < 10; i++) table.intern(users(i, 20_000));
  });
  expect(long).toBeLessThan(2 * 1024 ** 2);
  const short = heapGrowth(() => {
    for (let i = 0; i < 60_000; i++) {
      const id = table.intern(users(i, 1));
      table.get(id);
    }
  });
  expect(short).toBeLessThan(4 * 1024 ** 2);
  expect(table.size).toBe(60_010);
});
