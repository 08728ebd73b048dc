import { describe, expect, it } from 'vitest';
import { parseJaas } from '../../src/config/jaas-file.ts';

const parse = (text: string, properties: Readonly<Record<string, string>> = {}) =>
  Object.fromEntries(
    [...parseJaas(text, 'jaas.conf', new Map(Object.entries(properties)))].map(([name, modules]) => [
      name,
      modules.map(({ className, options, where }) => [className, Object.fromEntries(options), where]),
    ]),
  );

describe('a JAAS file', () => {
  it('has sections of modules with options', () => {
    const text = `// first
Server {
  a.b.Digest required
  user_bob="sec\\"ret;" "user_jörg"=plain_1; /* two
  lines */ c.d.Krb5 OPTIONAL;
};
"Client" { };`;
    expect(parse(text)).toEqual({
      Server: [
        ['a.b.Digest', { user_bob: 'sec"ret;', user_jörg: 'plain_1' }, 'jaas.conf:3'],
        ['c.d.Krb5', {}, 'jaas.conf:5'],
      ],
      Client: [],
    });
    expect(parse('')).toEqual({});
  });

  it('has escapes and properties in values', () => {
    expect(parse(String.raw`S { m required a="\101\n\q" b="${'${user.home}'}${'${/}'}x"; };`, { 'user.home': '/srv/zk' })).toEqual({
      S: [['m', { a: 'A\nq', b: '/srv/zk/x' }, 'jaas.conf:1']],
    });
  });

  it.each([
    ['Server', 'jaas.conf:1: the file ends where a { after the name of the section Server belongs.'],
    ['Server\nm required;', 'jaas.conf:2: a { is missing after the name of the section Server.'],
    ['{', 'jaas.conf:1: a { stands where the name of a section belongs.'],
    ['S { m needed; };', 'jaas.conf:1: needed stands where one of required, requisite, sufficient, optional belongs, after m.'],
    ['S { m required a=1 };', 'jaas.conf:1: a } stands where an option of m, or the ; that ends it belongs.'],
    ['S { m required a 1; };', 'jaas.conf:1: a = is missing after the option a.'],
    ['S { m required a=; };', 'jaas.conf:1: the option a has no value. Write a="value".'],
    ['S { m required a=1 a=2; };', 'jaas.conf:1: the option a is there twice. Remove one of them.'],
    ['S { m required; }', 'jaas.conf:1: the file ends where a ; after the } of the section S belongs.'],
    ['S { m required; };\nS { };', 'jaas.conf:2: the section S is there twice. Remove one of them.'],
    ['S { m required a="b\n; };', 'jaas.conf:1: a quote begins here and does not end.'],
    ['S { };\n/* ', 'jaas.conf:2: a comment begins here and does not end.'],
    ['S { m required a="${x.y}"; };', 'jaas.conf:1: ${x.y} has no value. Pass -Dx.y=value, or write the value into the file.'],
  ])('%s: %s', (text, sentence) => {
    expect(() => parse(text)).toThrow(sentence);
  });
});
