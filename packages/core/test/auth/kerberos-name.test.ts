import { describe, expect, it } from 'vitest';
import { AuthToLocal, parseKerberosName } from '../../src/auth/kerberos-name.ts';
import { SaslNames } from '../../src/auth/sasl-names.ts';
import { saslProvider } from '../../src/auth/sasl-provider.ts';

describe('names of principals', () => {
  it.each([
    ['bob', { primary: 'bob', host: undefined, realm: undefined }],
    ['a/b', { primary: 'a/b', host: undefined, realm: undefined }],
    ['bob@R', { primary: 'bob', host: undefined, realm: 'R' }],
    ['zk/h.example@R', { primary: 'zk', host: 'h.example', realm: 'R' }],
    ['@', { primary: '', host: undefined, realm: '' }],
    ['', { primary: '', host: undefined, realm: undefined }],
    ['a/b/c@R', undefined],
    ['a@b@c', undefined],
  ])('%s', (text, name) => {
    expect(parseKerberosName(text)).toEqual(name);
    expect(saslProvider(undefined).isValidId(text)).toBe(name !== undefined);
  });
});

describe('rules of auth_to_local', () => {
  const short = (rules: string, name: string, realm = 'R') => new AuthToLocal(rules, realm).shortName(parseKerberosName(name)!);

  it.each([
    ['DEFAULT', 'bob', 'bob'],
    ['DEFAULT', 'bob@R', 'bob'],
    ['DEFAULT', 'bob/h@R', 'bob'],
    ['DEFAULT', 'bob@S', undefined],
    ['RULE:[1:$1]', 'bob@S', 'bob'],
    ['RULE:[1:$1]', 'bob/h@S', undefined],
    ['RULE:[2:$1-$2]', 'bob/h@S', 'bob-h'],
    ['RULE:[1:$1@$0](.*@S)s/@.*//', 'bob@S', 'bob'],
    ['RULE:[1:$1@$0](.*@S)s/@.*//', 'bob@T', undefined],
    ['RULE:[1:$1@$0](.*@S)s/@.*// DEFAULT', 'bob@R', 'bob'],
    ['RULE:[1:$1]s/o/0/g', 'bobo@S', 'b0b0'],
    ['RULE:[1:$1]s/o/0/', 'bobo@S', 'b0bo'],
    // A short name has neither / nor @.
    ['RULE:[1:$1@$0]', 'bob@S', undefined],
  ])('%s makes %s %s', (rules, name, expected) => {
    expect(short(rules, name)).toBe(expected);
  });

  it.each([
    ['RULE', 'the rule RULE is not valid'],
    ['DEFAULT nonsense', 'the rule  nonsense is not valid'],
    ['RULE:[1:$2]', 'the rule RULE:[1:$2] has no component $2'],
    ['RULE:[1:$1]([a)', 'the rule RULE:[1:$1]([a) has a pattern that is not valid: '],
  ])('%s is refused', (rules, words) => {
    expect(() => new AuthToLocal(rules, '')).toThrow(words);
  });
});

describe('SASL identities', () => {
  const ids = (name: string, options: Partial<ConstructorParameters<typeof SaslNames>[0]> = {}) =>
    new SaslNames({
      rules: new AuthToLocal('DEFAULT', 'R'),
      removesHost: false,
      removesRealm: false,
      superUsers: new Set(['root@R']),
      ...options,
    })
      .identitiesOf(name)
      .map(({ scheme, id }) => `${scheme}:${id}`);

  it('keep host and realm, unless they are to be removed', () => {
    expect(ids('zk/h@R')).toEqual(['sasl:zk/h@R']);
    expect(ids('zk/h@R', { removesHost: true })).toEqual(['sasl:zk@R']);
    expect(ids('zk/h@R', { removesRealm: true })).toEqual(['sasl:zk/h']);
    expect(ids('zk/h@R', { removesHost: true, removesRealm: true })).toEqual(['sasl:zk']);
  });

  it('stay as they are if no rule applies', () => {
    expect(ids('zk/h@S', { removesHost: true })).toEqual(['sasl:zk/h@S']);
    expect(ids('a@b@c')).toEqual(['sasl:a@b@c']);
  });

  it('of a super user are super as well, after removal', () => {
    expect(ids('root@R')).toEqual(['sasl:root@R', 'super:']);
    expect(ids('root/h@R')).toEqual(['sasl:root/h@R']);
    expect(ids('root/h@R', { removesHost: true })).toEqual(['sasl:root@R', 'super:']);
  });
});

describe('the scheme sasl', () => {
  it.each([
    ['bob', 'bob', true],
    ['bob', 'eve', false],
    ['super', 'eve', true],
    ['bob', 'anyone', true],
  ])('%s satisfies %s: %s', (identity, aclId, expected) => {
    const provider = saslProvider('anyone');
    expect(provider.matches(identity, aclId)).toBe(expected);
    // Long lists are searched by keys.
    expect(identity === aclId || provider.keys!.identityKeys(identity).includes(provider.keys!.aclKey(aclId)!)).toBe(expected);
  });
});
