import { describe, expect, it } from 'vitest';
import { digestMd5Proofs, parseDirectives, quoted } from '../../src/internal.ts';

const directives = (text: string) => Object.fromEntries(parseDirectives(Buffer.from(text), 'the token'));

describe('A39: DIGEST-MD5', () => {
  it('has the proofs of the example in RFC 2831', () => {
    const terms = {
      username: 'chris',
      realm: 'elwood.innosoft.com',
      password: 'secret',
      nonce: 'OA6MG9tEQGm2hh',
      cnonce: 'OA6MHXh6VqTrRk',
      nonceCount: '00000001',
      authzid: undefined,
      digestUri: 'imap/elwood.innosoft.com',
      isUtf8: true,
    };
    expect(digestMd5Proofs(terms)).toEqual({
      response: 'd388dad90d4bbd760a152321f2143af7',
      rspauth: 'ea40f60335c427b5527b84dbabcdfffd',
    });
  });

  it('reads directives with quotes, escapes, blanks and empty elements', () => {
    expect(directives(String.raw`a=1, b="x,\"y\\" ,, c = "", a=2`)).toEqual({ a: ['1', '2'], b: [String.raw`x,"y\ `.trimEnd()], c: [''] });
    expect(directives('')).toEqual({});
    expect(quoted(String.raw`a"b\c`)).toBe(String.raw`"a\"b\\c"`);
  });

  it.each(['a', 'a=', 'a="', 'a="b"c', '=b'])('reports from where on %s is not valid', (text) => {
    expect(() => directives(text)).toThrow('the token is not valid for DIGEST-MD5 from character 0 on');
  });

  it('reads a long token in linear time', () => {
    const before = performance.now();
    expect(() => directives(`${' ,'.repeat(200_000)}"`)).toThrow('not valid');
    expect(() => directives(`a="${'\\x'.repeat(200_000)}`)).toThrow('not valid');
    expect(performance.now() - before).toBeLessThan(2000);
  });
});
