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
} from '../src/index.ts';

/** digest and ip are registered; digest takes `user:hash`, ip takes digits and dots. */
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

describe('the ACL a client asks for', () => {
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
    ['super is no scheme to ask for', [acl(31, 'super', '')], [alice], undefined],
    ['an id its provider accepts is kept', [acl(31, 'ip', '10.0.0.9')], [], [acl(31, 'ip', '10.0.0.9')]],
    ['an id its provider refuses is refused', [acl(31, 'ip', 'host')], [], undefined],
    ['a null id is refused', [acl(31, 'digest', null)], [alice], undefined],
    ['one bad entry spoils the list', [world, acl(31, 'ip', 'host')], [alice], undefined],
    ['auth becomes the one who is authenticated', creatorAcl, [ip, alice], [{ perms: 31, id: alice }]],
    [
      'auth becomes each of them, with the same perms',
      [acl(5, 'auth', '')],
      [alice, ip, bob],
      [
        { perms: 5, id: alice },
        { perms: 5, id: bob },
      ],
    ],
    ['the id beside auth does not matter', [acl(31, 'auth', 'x')], [alice], [{ perms: 31, id: alice }]],
    ['nor does a null one', [acl(31, 'auth', null)], [alice], [{ perms: 31, id: alice }]],
    ['auth of one who is not authenticated is refused', creatorAcl, [ip], undefined],
    ['auth of nobody is refused', creatorAcl, [], undefined],
    ['auth stands where it stood', [acl(31, 'auth', ''), world], [alice], [{ perms: 31, id: alice }, world]],
    ['repetitions are dropped, the first kept', [world, acl(2, 'ip', '1.1'), acl(1, 'world', 'anyone')], [], [world, acl(2, 'ip', '1.1')]],
    ['other perms are no repetition', [world, acl(3, 'world', 'anyone')], [], [world, acl(3, 'world', 'anyone')]],
    [
      'what auth becomes is not compared again',
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

  test('long lists lose their repetitions by the same rule', () => {
    const distinct = Array.from({ length: 50 }, (_, i) => acl(i % 3, 'ip', `10.0.0.${i >> 1}`)).concat(acl(1, 'digest', 'a:b'));
    const expected = distinct.filter(
      (entry, i) => distinct.findIndex((other) => other.perms === entry.perms && other.id.id === entry.id.id) === i,
    );
    expect(fixupAcl([...distinct, ...distinct], [], schemes)).toEqual(expected);
  });

  test('long lists are not confused by texts that look alike', () => {
    const filler = Array.from({ length: 20 }, (_, i) => acl(i, 'ip', '1.1'));
    const tricky = [acl(1, 'digest', 'a:b'), acl(1, 'digest', 'a":"b'), acl(1, 'auth', null), acl(1, 'auth', 'null')];
    const stored = fixupAcl([...filler, ...tricky], [alice], schemes);
    expect(stored).toHaveLength(20 + 2 + 2);
  });

  test('the well-known lists pass as ZooKeeper has them', () => {
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
  ])('%i is "%s", both ways', (perms, text) => {
    expect(permsText(perms)).toBe(text);
    expect(parsePerms(text)).toBe(perms);
  });

  test('bits without a letter are not printed', () => {
    expect(permsText(0xff)).toBe('cdrwa');
  });

  test('letters may come in any order, and an unknown one spoils the text', () => {
    expect(parsePerms('awrdc')).toBe(Perms.all);
    expect(parsePerms('rx')).toBeUndefined();
    expect(parsePerms('R')).toBeUndefined();
  });
});
