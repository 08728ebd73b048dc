import { type Acl, openAcl, readAclList, Reader, Writer } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { AclTable, openAclId } from '../../src/tree/acl-table.ts';

const anyone = { scheme: 'world', id: 'anyone' };
const open: readonly Acl[] = [{ perms: 31, id: anyone }];
const alice: readonly Acl[] = [
  { perms: 1, id: anyone },
  { perms: 31, id: { scheme: 'digest', id: 'alice:é中' } },
];

function wire(table: AclTable, id: number): Acl[] {
  const writer = new Writer(1);
  table.write(id, writer);
  return readAclList(new Reader(writer.written()));
}

describe('AclTable', () => {
  it('stores equal lists once, and different lists separately', () => {
    const table = new AclTable();
    const id = table.intern(alice);
    expect(table.intern(alice.map((acl) => ({ ...acl })))).toBe(id);
    expect(table.intern(alice.toReversed())).not.toBe(id);
    expect(table.intern([{ perms: 1, id: { scheme: 'world', id: null } }])).not.toBe(
      table.intern([{ perms: 1, id: { scheme: 'world', id: '' } }]),
    );
    expect(table.intern(open)).toBe(table.intern(open));
    expect(table.size).toBe(5);
  });

  it('returns the same frozen list each time, and the same in wire form', () => {
    const table = new AclTable();
    const given = alice.map((acl) => ({ ...acl }));
    const id = table.intern(given);
    given[0]!.perms = 16;
    expect(table.get(id)).toEqual(alice);
    expect(table.get(id)).toBe(table.get(id));
    expect(Object.isFrozen(table.get(id)[1]!.id)).toBe(true);
    expect(wire(table, id)).toEqual(alice);
    expect(wire(table, table.intern([]))).toEqual([]);
  });

  it('removes a list with its last reference', () => {
    const table = new AclTable();
    const id = table.intern(alice);
    table.retain(id);
    table.release(id);
    expect(table.get(id)).toEqual(alice);
    table.release(id);
    expect(table.size).toBe(0);
    expect(() => table.get(id)).toThrow(`there is no ACL ${id}`);
    const openId = table.intern(open);
    table.release(openId);
    expect(table.size).toBe(0);
    expect(table.get(table.intern(open))).toEqual(open);
  });

  it('contains the list of the first znodes outside its entries, and gives an equal list another id (A66)', () => {
    const table = new AclTable();
    expect(table.get(openAclId)).toBe(openAcl);
    expect(wire(table, openAclId)).toEqual(open);
    table.retain(openAclId);
    table.release(openAclId);
    table.release(openAclId);
    expect(table.size).toBe(0);
    expect(table.intern(open)).not.toBe(openAclId);
  });

  it('keeps every entry while a snapshot needs it, and does not reuse its id (ZOOKEEPER-2141)', () => {
    const table = new AclTable();
    const kept = table.intern(open);
    const gone = table.intern(alice);
    table.release(gone);
    const early = table.intern(alice);
    const hold = table.pin();
    table.release(early);
    table.release(kept);
    expect(table.size).toBe(2);
    expect(wire(table, early)).toEqual(alice);
    expect(table.intern([])).not.toBe(early);
    // In use again before the snapshot ends.
    expect(table.intern(open)).toBe(kept);
    table.unpin(hold);
    expect(Array.from(table.ids(), (id) => table.get(id))).toEqual([open, []]);
    expect(table.size).toBe(2);
  });

  it('keeps an entry for every snapshot that began while it was used, and for no other', () => {
    const table = new AclTable();
    const kept = table.intern(alice);
    const first = table.pin();
    table.release(kept);
    // It is unused by now, and the second snapshot neither lists nor needs it.
    const second = table.pin();
    expect([...table.ids()]).toEqual([]);
    table.unpin(first);
    expect(table.size).toBe(0);
    const other = table.intern(open);
    const third = table.pin();
    table.release(other);
    expect(table.intern(open)).toBe(other);
    const fourth = table.pin();
    table.release(other);
    table.unpin(second);
    table.unpin(third);
    expect(table.size).toBe(1);
    table.unpin(fourth);
    expect(table.size).toBe(0);
  });

  it('does not keep lists added and removed during a snapshot', () => {
    const table = new AclTable();
    const hold = table.pin();
    table.release(table.intern(alice));
    expect(table.size).toBe(0);
    const seen = table.intern(alice);
    const later = table.pin();
    table.release(seen);
    expect(table.size).toBe(1);
    table.unpin(hold);
    expect(table.size).toBe(1);
    table.unpin(later);
    expect(table.size).toBe(0);
  });

  it('distinguishes a missing list from every other, and removes it with its last reference', () => {
    const table = new AclTable();
    const missing = table.addMissing();
    expect(table.isMissing(missing)).toBe(true);
    expect(table.isMissing(table.intern(open))).toBe(false);
    expect(table.isMissing(openAclId)).toBe(false);
    expect(table.get(missing)).toHaveLength(1);
    expect(table.get(missing)[0]!.perms).toBe(0);
    // A client may request an equal list.
    expect(table.intern(table.get(missing))).not.toBe(missing);
    expect([...table.ids()]).not.toContain(missing);
    expect([table.size, table.missingCount]).toEqual([2, 1]);
    table.release(missing);
    expect(table.missingCount).toBe(0);
  });

  it('throws at one release too many', () => {
    const table = new AclTable();
    const id = table.intern(alice);
    table.pin();
    table.release(id);
    expect(() => table.release(id)).toThrow('more often');
  });
});
