import { describe, expect, test } from 'vitest';
import {
  type Acl,
  type AclSchemes,
  creatorAcl,
  fixupAcl,
  type Id,
  openAcl,
  parsePerms,
  Perms,
  permsText,
  readOnlyAcl,
} from '../../src/index.ts';

/** digest and ip are registered; digest accepts `user:hash`, ip accepts digits and dots. */
const schemes: AclSchemes = {
  accepts: (scheme, id) => (scheme === 'digest' ? id.split(':').length === 2 : scheme === 'ip' && /^[\d.]+$/.test(id)),
  isAuthenticated: (scheme) => scheme === 'digest',
};

const ip: Id = { scheme: 'ip', id: '10.0.0.1' };
const alice: Id = { scheme: 'digest', id: 'alice:aaaa' };
const bob: Id = { scheme: 'digest', id: 'bob:bbbb' };

function acl(perms: number, scheme: string | null, id: string | null): Acl {
  return { perms, id: { scheme, id } };
}

const world = acl(1, 'world', 'anyone');

describe('the ACL requested by a client', () => {
  test.each<[title: string, requested: readonly Acl[], identities: readonly Id[], stored: readonly Acl[] | undefined]>([
    ['empty is refused', [], [alice], undefined],
    ['world:anyone is kept', [world], [], [world]],
    ['world with another id is refused', [acl(31, 'world', 'someone')], [alice], undefined],
    ['world with an empty id is refused', [acl(31, 'world', '')], [alice], undefined],
    ['world with a null id is refused', [acl(31, 'world', null)], [alice], undefined],
    ['World is another scheme, and unknown', [acl(31, 'World', 'anyone')], [alice], undefined],
    ['a null scheme is refused', [acl(31, null, 'anyone')], [alice], undefined],
    ['an empty scheme is refused', [acl(31, '', '')], [alice], undefined],
    ['an unknown scheme is refused', [acl(31, 'kerberos', 'alice')], [alice], undefined],
    ['super cannot be requested', [acl(31, 'super', '')], [alice], undefined],
    ['an id that its provider accepts is kept', [acl(31, 'ip', '10.0.0.9')], [], [acl(31, 'ip', '10.0.0.9')]],
    ['an id that its provider refuses is refused', [acl(31, 'ip', 'host')], [], undefined],
    ['a null id is refused', [acl(31, 'digest', null)], [alice], undefined],
    ['one invalid entry makes the list invalid', [world, acl(31, 'ip', 'host')], [alice], undefined],
    ['auth becomes the authenticated identity', creatorAcl, [ip, alice], [{ perms: 31, id: alice }]],
    [
      'auth becomes each authenticated identity, with the same perms',
      [acl(5, 'auth', '')],
      [alice, ip, bob],
      [
        { perms: 5, id: alice },
        { perms: 5, id: bob },
      ],
    ],
    ['the id of auth does not matter', [acl(31, 'auth', 'x')], [alice], [{ perms: 31, id: alice }]],
    ['a null id of auth does not matter', [acl(31, 'auth', null)], [alice], [{ perms: 31, id: alice }]],
    ['auth without an authenticated identity is refused', creatorAcl, [ip], undefined],
    ['auth without any identity is refused', creatorAcl, [], undefined],
    ['auth keeps its position', [acl(31, 'auth', ''), world], [alice], [{ perms: 31, id: alice }, world]],
    ['duplicates are dropped, the first kept', [world, acl(2, 'ip', '1.1'), acl(1, 'world', 'anyone')], [], [world, acl(2, 'ip', '1.1')]],
    ['entries with other perms are not duplicates', [world, acl(3, 'world', 'anyone')], [], [world, acl(3, 'world', 'anyone')]],
    [
      'entries that replace auth are not compared again',
      [acl(31, 'digest', 'alice:aaaa'), acl(31, 'auth', '')],
      [alice],
      [acl(31, 'digest', 'alice:aaaa'), { perms: 31, id: alice }],
    ],
    [
      'perms are kept as given',
      [acl(0, 'world', 'anyone'), acl(-1, 'world', 'anyone')],
      [],
      [acl(0, 'world', 'anyone'), acl(-1, 'world', 'anyone')],
    ],
  ])('%s', (_title, requested, identities, stored) => {
    expect(fixupAcl(requested, identities, schemes)).toEqual(stored);
  });

  test('long lists lose their duplicates by the same rule', () => {
    const distinct = Array.from({ length: 50 }, (_, i) => acl(i % 3, 'ip', `10.0.0.${i >> 1}`)).concat(acl(1, 'digest', 'a:b'));
    const expected = distinct.filter(
      (entry, i) => distinct.findIndex((other) => other.perms === entry.perms && other.id.id === entry.id.id) === i,
    );
    expect(fixupAcl([...distinct, ...distinct], [], schemes)).toEqual(expected);
  });

  test('long lists keep entries with similar texts apart', () => {
    const filler = Array.from({ length: 20 }, (_, i) => acl(i, 'ip', '1.1'));
    const tricky = [acl(1, 'digest', 'a:b'), acl(1, 'digest', 'a":"b'), acl(1, 'auth', null), acl(1, 'auth', 'null')];
    const stored = fixupAcl([...filler, ...tricky], [alice], schemes);
    expect(stored).toHaveLength(20 + 2 + 2);
  });

  test('the well-known lists are accepted as in ZooKeeper', () => {
    expect(fixupAcl(openAcl, [], schemes)).toEqual([acl(31, 'world', 'anyone')]);
    expect(fixupAcl(readOnlyAcl, [], schemes)).toEqual([world]);
  });
});

describe('permissions as text', () => {
  test.each([
    [0, ''],
    [Perms.read, 'r'],
    [Perms.write, 'w'],
    [Perms.create, 'c'],
    [Perms.delete, 'd'],
    [Perms.admin, 'a'],
    [Perms.all, 'cdrwa'],
    [Perms.read | Perms.admin, 'ra'],
  ])('%i is formatted as "%s", and parsed back', (perms, text) => {
    expect(permsText(perms)).toBe(text);
    expect(parsePerms(text)).toBe(perms);
  });

  test('bits without a letter are not printed', () => {
    expect(permsText(0xff)).toBe('cdrwa');
  });

  test('letters may be in any order, and an unknown one makes the text invalid', () => {
    expect(parsePerms('awrdc')).toBe(Perms.all);
    expect(parsePerms('rx')).toBeUndefined();
    expect(parsePerms('R')).toBeUndefined();
  });
});
