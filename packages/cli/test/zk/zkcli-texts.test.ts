import { pathError } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { parseAcl } from '../../src/zk/acl-text.ts';
import { parseQuota, formatQuota } from '../../src/zk/quota-text.ts';
import { aclLines, hexDump, javaDate, invalidPathReason } from '../../src/zk/zkcli-texts.ts';
import { splitWords } from '../../src/zk/split-words.ts';

describe('words of a line', () => {
  it.each([
    ['ls /', ['ls', '/']],
    ['  create   /a  "two words"  ', ['create', '/a', 'two words']],
    [`set /a '{"x": 1}'`, ['set', '/a', '{"x": 1}']],
    ['set /a ""', ['set', '/a', '']],
    [`set /a it's`, ['set', '/a', `it's`]],
    [`get "/a b"/c`, ['get', '/a b', '/c']],
    ['', []],
  ])('are split at spaces and quotes: %s', (line, words) => {
    expect(splitWords(line)).toEqual(words);
  });
});

describe('texts of zkCli', () => {
  it('formats dates as Java does, with the name of the time zone', () => {
    const ms = Date.UTC(2026, 6, 4, 5, 6, 7);
    expect(javaDate(ms, 'UTC')).toBe('Sat Jul 04 05:06:07 UTC 2026');
    expect(javaDate(ms, 'America/Los_Angeles')).toBe('Fri Jul 03 22:06:07 PDT 2026');
    expect(javaDate(ms, 'Europe/Berlin')).toBe('Sat Jul 04 07:06:07 CEST 2026');
    expect(javaDate(Date.UTC(2026, 0, 1), 'UTC')).toBe('Thu Jan 01 00:00:00 UTC 2026');
    expect(javaDate(9e15)).toBe('9000000000000000');
  });

  it('dumps bytes as netty does', () => {
    expect(hexDump(new Uint8Array())).toBe('');
    expect(hexDump(Buffer.from('hello world, and \n more'))).toBe(
      `         +-------------------------------------------------+
         |  0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f |
+--------+-------------------------------------------------+----------------+
|00000000| 68 65 6c 6c 6f 20 77 6f 72 6c 64 2c 20 61 6e 64 |hello world, and|
|00000010| 20 0a 20 6d 6f 72 65                            | . more         |
+--------+-------------------------------------------------+----------------+`,
    );
  });

  it('rejects the paths that the client rejects, and no others', () => {
    const pieces = ['/', 'a', '.', '..', '\0', '\u0001', '\u007f', '\u009f', '\ud800', '\uf8ff', '\ufff0', 'é', '中', ' '];
    let refused = 0;
    for (let n = 0; n < pieces.length ** 3; n++) {
      const path = `/${pieces[n % pieces.length]}${pieces[Math.floor(n / pieces.length) % pieces.length]}${pieces[Math.floor(n / pieces.length ** 2)]}`;
      expect([path, invalidPathReason(path) !== undefined]).toEqual([path, pathError(path) !== undefined]);
      if (pathError(path) !== undefined) refused++;
    }
    expect(refused).toBeGreaterThan(1000);
    expect(invalidPathReason('')).toBe('Path length must be > 0');
  });

  it('parses ACLs whose ids contain colons, and omits invalid parts', () => {
    const complaints: string[] = [];
    const acl = parseAcl('ip:fe80::1:rw,digest:bob:abc=:x,nonsense', (sentence) => complaints.push(sentence));
    expect(acl).toEqual([
      { perms: 3, id: { scheme: 'ip', id: 'fe80::1' } },
      { perms: 0, id: { scheme: 'digest', id: 'bob:abc=' } },
    ]);
    expect(complaints).toEqual(['Unknown perm type: x', 'nonsense does not have the form scheme:id:perm']);
    expect(aclLines([{ perms: 31, id: { scheme: 'x509', id: 'CN=a,O=b%' } }])).toBe("'x509,'CN=a%2CO=b%25\n: cdrwa");
  });

  it('writes quotas that older servers can read', () => {
    expect(formatQuota(new Map([['count', 5]]))).toBe('count=5,bytes=-1');
    const all = 'count=5,bytes=7=;byteHardLimit=9;countHardLimit=-1';
    expect(formatQuota(parseQuota(Buffer.from(all)))).toBe(all);
    expect(formatQuota(parseQuota(null))).toBe('count=-1,bytes=-1');
  });
});
