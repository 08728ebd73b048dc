/**
 * Compares permission checks, by scan and by index, with ZooKeeper's rule.
 */
import { type Acl, Writer, readAclList, Reader } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { type AuthProvider, AuthRegistry } from '../../src/auth/auth-provider.ts';
import { digestProvider } from '../../src/auth/digest-provider.ts';
import { Identities } from '../../src/auth/identities.ts';
import type { Identity } from '../../src/auth/identity.ts';
import { ipProvider } from '../../src/auth/ip-provider.ts';
import { Permissions } from '../../src/auth/permissions.ts';
import { AclTable, openAclId } from '../../src/tree/acl-table.ts';

/** Matches by a rule of its own, which no look-up supports. */
const lengths: AuthProvider = {
  scheme: 'lengths',
  provesIdentity: true,
  authenticate: () => ({ kind: 'refused' }),
  isValidId: () => true,
  matches: (identity, aclId) => identity.length === aclId.length,
  userName: (identity) => identity,
};
const registry = new AuthRegistry([ipProvider, digestProvider('SHA1', undefined), lengths]);

/** The rule, entry by entry. */
function permitted(acl: readonly Acl[], perms: number, identities: readonly Identity[]): boolean {
  if (acl.length === 0 || identities.some(({ scheme }) => scheme === 'super')) return true;
  return acl.some((entry) => {
    if ((entry.perms & perms) === 0) return false;
    const { scheme, id } = entry.id;
    if (scheme === 'world' && id === 'anyone') return true;
    const provider = registry.get(scheme ?? '');
    return provider !== undefined && identities.some((own) => own.scheme === scheme && provider.matches(own.id, id ?? ''));
  });
}

/** Pseudo-random numbers, the same each time. */
function chance(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const addresses = ['10.1.2.3', '10.1.2.4', '10.1.255.3', '192.168.0.1', 'fd00::1', 'fd00::2:1', '::1', '10.1.0.0/16', 'nowhere', ''];
const prefixes = [
  ...addresses,
  ...[0, 1, 7, 8, 9, 15, 16, 23, 24, 30, 31, 32].map((bits) => `10.1.2.3/${bits}`),
  ...[0, 1, 8, 63, 64, 112, 127, 128].map((bits) => `fd00::1/${bits}`),
  '10.1.2.3/33',
  'fd00:0:0:0:0:0:0:1',
];
const users = ['ann:h', 'ann:i', 'bob:h', 'é中:h', ''];

function anyEntry(below: (bound: number) => number): Acl {
  const perms = below(8) === 0 ? below(2 ** 31) : 1 << below(5);
  const pick = <T>(list: readonly T[]): T => list[below(list.length)]!;
  switch (below(7)) {
    case 0:
      return { perms, id: { scheme: 'digest', id: below(6) === 0 ? null : pick(users) } };
    case 1:
      return { perms, id: { scheme: 'lengths', id: 'x'.repeat(below(9)) } };
    case 2:
      return { perms, id: { scheme: pick(['world', 'super', 'x509', null, 'auth']), id: pick(['anyone', 'other', null]) } };
    default:
      return { perms, id: { scheme: 'ip', id: below(6) === 0 ? null : pick(prefixes) } };
  }
}

function anyIdentity(below: (bound: number) => number): Identity {
  const pick = <T>(list: readonly T[]): T => list[below(list.length)]!;
  switch (below(8)) {
    case 0:
      return below(8) === 0 ? { scheme: 'super', id: '' } : { scheme: 'x509', id: 'anyone' };
    case 1:
      return { scheme: 'lengths', id: 'y'.repeat(below(9)) };
    case 2:
    case 3:
    case 4:
      return { scheme: 'digest', id: pick(users) };
    default:
      return { scheme: 'ip', id: pick(addresses) };
  }
}

describe('A35: an ACL check', () => {
  /** Makes a list long and grants nothing. */
  const filler = Array.from({ length: 40 }, (_, i): Acl => ({ perms: 31, id: { scheme: 'digest', id: `nobody${i}:h` } }));

  it.each([
    ['a short list', 0],
    ['a long list', 40],
  ])('of %s grants the permissions of the plain rule, and no others', (_name, filling) => {
    const below = chance(7 + filling);
    const table = new AclTable();
    const permissions = new Permissions(table, registry, false);
    let granted = 0;
    for (let round = 0; round < 3000; round++) {
      const acl = [...filler.slice(0, filling), ...Array.from({ length: below(5) }, () => anyEntry(below))];
      const own = Array.from({ length: 1 + below(3) }, () => anyIdentity(below));
      const id = table.intern(acl);
      expect(table.shortAcl(id) === undefined).toBe(filling > 0);
      for (let bit = 1; bit < 32; bit *= 2) {
        const perms = bit | (below(4) === 0 ? 1 << below(5) : 0);
        const rule = permitted(acl, perms, own);
        if (rule) granted++;
        const line = `${perms} of ${JSON.stringify(acl.slice(filling))} for ${JSON.stringify(own)}`;
        expect(`${line}: ${permissions.permits(id, perms, Identities.of(own))}`).toBe(`${line}: ${rule}`);
      }
      table.release(id);
    }
    // The comparison is meaningful only with enough of both results.
    expect(granted).toBeGreaterThan(1000);
    expect(granted).toBeLessThan(13_500);
    expect(table.size).toBe(0);
  });

  it('uses the index of an ACL that is long only by its texts', () => {
    const table = new AclTable();
    const permissions = new Permissions(table, registry, false);
    const long = `${'x'.repeat(5000)}:h`;
    const id = table.intern([{ perms: 1, id: { scheme: 'digest', id: long } }]);
    expect(table.shortAcl(id)).toBeUndefined();
    const of = (name: string) => Identities.of([{ scheme: 'digest', id: name }]);
    expect([permissions.permits(id, 1, of(long)), permissions.permits(id, 2, of(long)), permissions.permits(id, 1, of('x'))]).toEqual([
      true,
      false,
      false,
    ]);
  });

  it('combines thousands of entries for one id, with different permissions, into one row of the index', () => {
    const table = new AclTable();
    const permissions = new Permissions(table, registry, false);
    const ann = Identities.of([{ scheme: 'digest', id: 'ann:h' }]);
    const id = table.intern(Array.from({ length: 5000 }, (_, i): Acl => ({ perms: 32 * (i + 1), id: { scheme: 'digest', id: 'ann:h' } })));
    expect(permissions.permits(id, 31, ann)).toBe(false);
    const other = table.intern([...table.get(id), { perms: 4, id: { scheme: 'digest', id: 'ann:h' } }]);
    expect(permissions.permits(other, 4, ann)).toBe(true);
    expect(permissions.permits(other, 3, ann)).toBe(false);
  });

  it('grants every permission for an open ACL, and for any ACL if checks are disabled', () => {
    const table = new AclTable();
    const closed = table.intern([{ perms: 0, id: { scheme: 'world', id: 'anyone' } }]);
    const nobody = Identities.none;
    expect(new Permissions(table, registry, false).permits(openAclId, 31, nobody)).toBe(true);
    expect(new Permissions(table, registry, false).permits(closed, 31, nobody)).toBe(false);
    expect(new Permissions(table, registry, true).permits(closed, 31, nobody)).toBe(true);
  });
});

describe('A37: an ACL without its hashes', () => {
  it.each([[[]], [[{ perms: 1, id: { scheme: 'digest', id: 'a:b' } }]]])('is written as a decoded and encoded list would be', (more) => {
    const table = new AclTable();
    const acl: Acl[] = [
      ...more,
      ...['ann:hash', 'ann:ha:sh', 'ann', ':hash', 'é:中', '', null].map((id): Acl => ({ perms: 31, id: { scheme: 'digest', id } })),
      { perms: 1, id: { scheme: 'ip', id: 'fd00::1' } },
      { perms: 1, id: { scheme: null, id: 'a:b' } },
      { perms: 1, id: { scheme: 'world', id: 'anyone' } },
      { perms: 1, id: { scheme: 'sasl', id: null } },
    ];
    const writer = new Writer(1);
    table.writeWithoutHashes(table.intern(acl), writer);
    const shown = acl.map(({ perms, id }) => {
      const hides = id.scheme === 'digest' && id.id !== null && id.id.includes(':');
      return hides ? { perms, id: { scheme: 'digest', id: `${id.id.slice(0, id.id.indexOf(':'))}:x` } } : { perms, id };
    });
    expect(readAclList(new Reader(writer.written()))).toEqual(shown);
  });
});
