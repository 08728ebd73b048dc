import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { breadth } from '../../../../test/breadth.ts';
import { isReservedPath, isValidPath, nodeName, parentPath, pathError, sequenceSuffix } from '../../src/index.ts';

/**
 * Both functions must agree on every path: the one that returns a reason, and the one that reads
 * bytes.
 */
function faultOf(path: string): string | undefined {
  const fault = pathError(path);
  const bytes = Buffer.from(`xx${path}xx`);
  // A lone surrogate has no UTF-8 of its own; it is encoded as U+FFFD, which is refused as well.
  expect(isValidPath(bytes, 2, bytes.length - 2), JSON.stringify(path)).toBe(fault === undefined);
  return fault;
}

function atEveryPlace(unit: string): string[] {
  return [`/${unit}`, `/a${unit}`, `/${unit}a`, `/a${unit}b/c`, `/a/b${unit}`, `/é${unit}`];
}

describe('valid paths', () => {
  test.each(['/', '/a', '/a/b/c', '/zookeeper', '/a b', '/a%20', '/é中', '/-', `/${'x'.repeat(10_000)}`, '/a'.repeat(500)])(
    'A1, C3-2: include %s',
    (path) => {
      expect(faultOf(path)).toBeUndefined();
    },
  );

  test.each(['/.a', '/...', '/a.', '/a..', '/..a', '/a/.b', '/a/..b', '/.a/..b/c', '/a/...', '/....', '/.é', '/..é'])(
    'C3-6: a dot may be part of a name: %s',
    (path) => {
      expect(faultOf(path)).toBeUndefined();
    },
  );
});

describe('invalid paths', () => {
  test.each([
    ['', 'must not be empty'],
    ['a', 'must start with "/"'],
    ['a/b', 'must start with "/"'],
    ['.', 'must start with "/"'],
    ['/a/', 'must not end with "/"'],
    ['//', 'must not end with "/"'],
    ['//a', 'must not have an empty name, as at 1'],
    ['/a//b', 'must not have an empty name, as at 3'],
    ['/é//b', 'must not have an empty name, as at 3'],
    ['/a/b//', 'must not end with "/"'],
  ])('C3-2: "%s" is refused: it %s', (path, fault) => {
    expect(faultOf(path)).toBe(fault);
  });

  test.each([
    ['/.', 'must not be relative, as "." at 1 makes it'],
    ['/..', 'must not be relative, as ".." at 1 makes it'],
    ['/./a', 'must not be relative, as "." at 1 makes it'],
    ['/../a', 'must not be relative, as ".." at 1 makes it'],
    ['/a/b/./c', 'must not be relative, as "." at 5 makes it'],
    ['/a/b/../c', 'must not be relative, as ".." at 5 makes it'],
    ['/a/.', 'must not be relative, as "." at 3 makes it'],
    ['/a/..', 'must not be relative, as ".." at 3 makes it'],
    ['/é/..', 'must not be relative, as ".." at 3 makes it'],
  ])('C3-6: "%s" is refused: it %s', (path, fault) => {
    expect(faultOf(path)).toBe(fault);
  });

  test('C3-3: U+0000 is refused at every position', () => {
    for (const path of atEveryPlace('\0')) expect(faultOf(path)).toMatch(/^must not have U\+0000, as at \d$/);
  });

  test.each([0x01, 0x02, 0x1e, 0x1f, 0x7f, 0x80, 0x9e, 0x9f])('C3-4: the control character %i is refused at every position', (code) => {
    for (const path of atEveryPlace(String.fromCharCode(code))) expect(faultOf(path)).toMatch(/^must not have U\+00/);
  });

  test.each([0x20, 0x21, 0x7e, 0xa0, 0xa1, 0xff, 0x100])('C3-4: the character %i, next to the control characters, is allowed', (code) => {
    for (const path of atEveryPlace(String.fromCharCode(code))) expect(faultOf(path)).toBeUndefined();
  });

  test.each([0xd800, 0xd801, 0xdbff, 0xdc00, 0xdfff, 0xe000, 0xf8fe, 0xf8ff, 0xfff0, 0xfff1, 0xfffd, 0xfffe, 0xffff])(
    'C3-5: the code unit %i is refused at every position',
    (code) => {
      for (const path of atEveryPlace(String.fromCharCode(code))) expect(faultOf(path)).toMatch(/^must not have U\+[DEF]/);
    },
  );

  test.each([0xd7fe, 0xd7ff, 0xf900, 0xf901, 0xffee, 0xffef])('C3-5: the code unit %i, next to the refused ones, is allowed', (code) => {
    for (const path of atEveryPlace(String.fromCharCode(code))) expect(faultOf(path)).toBeUndefined();
  });

  test('C3-5: a character outside the basic plane, a pair of surrogates, is refused', () => {
    for (const path of atEveryPlace('\u{1f600}')) expect(faultOf(path)).toMatch(/^must not have U\+D83D/);
  });

  test('bytes that are not UTF-8 are refused, since they read as U+FFFD', () => {
    for (const hex of ['2f80', '2fc3', '2fc0af', '2feda080', '2fff', '2ff09f98', '2f61c32f62']) {
      const bytes = Buffer.from(hex, 'hex');
      expect(isValidPath(bytes, 0, bytes.length), hex).toBe(false);
    }
  });

  test('null and undefined are refused', () => {
    expect(pathError(null)).toBe('must not be null');
    expect(pathError(undefined)).toBe('must not be null');
    expect(isValidPath(Buffer.from('/a'), 1, 1)).toBe(false);
  });
});

test('pathError and isValidPath agree on any text of relevant characters', () => {
  const unit = fc.constantFrom(
    '/',
    '/',
    '.',
    '.',
    'a',
    '\0',
    '\x1f',
    ' ',
    '\x7f',
    '\x9f',
    '\xa0',
    '\ud7ff',
    '\ue000',
    '\uffef',
    '\ufff0',
    '😀',
  );
  fc.assert(
    fc.property(fc.string({ unit, maxLength: 12 }), (tail) => {
      faultOf(`/${tail}`);
      faultOf(tail);
    }),
    { numRuns: breadth(500, 5_000) },
  );
});

test('pathError and isValidPath follow a plain statement of the rules', () => {
  const refused = (code: number): boolean =>
    code <= 0x1f || (code >= 0x7f && code <= 0x9f) || (code >= 0xd800 && code <= 0xf8ff) || (code >= 0xfff0 && code <= 0xffff);
  const obeys = (path: string): boolean =>
    path === '/' ||
    (path.startsWith('/') &&
      path
        .slice(1)
        .split('/')
        .every((name) => name !== '' && name !== '.' && name !== '..') &&
      Array.from({ length: path.length }, (_, at) => path.charCodeAt(at)).every((code) => !refused(code)));
  const pathsOfOneUnit = Array.from({ length: 0x10000 }, (_, code) => `/${String.fromCharCode(code)}b`);
  expect(pathsOfOneUnit.filter((path) => (pathError(path) === undefined) !== obeys(path))).toEqual([]);
  const unit = fc.constantFrom('/', '/', '.', '.', 'a', '\0', '\x1f', ' ', '\ue000', 'é');
  fc.assert(
    fc.property(fc.string({ unit, maxLength: 10 }), (path) => {
      expect(faultOf(path) === undefined).toBe(obeys(path));
    }),
    { numRuns: breadth(500, 5_000) },
  );
});

test.each(['/', '/zookeeper', '/zookeeper/quota', '/zookeeper/config'])('C3-7: %s is reserved', (path) => {
  expect(isReservedPath(path)).toBe(true);
});

test.each(['/zookeeper/quota/a', '/zookeeper2', '/a/zookeeper', '', '/zookeeper/'])('C3-7: %s is not reserved', (path) => {
  expect(isReservedPath(path)).toBe(false);
});

test.each([
  ['/a/b/c', '/a/b', 'c'],
  ['/a', '/', 'a'],
  ['/a/', '/a', ''],
  ['/', '/', ''],
])('C3-1: the parent of %s is %s, and its name "%s"', (path, parent, name) => {
  expect(parentPath(path)).toBe(parent);
  expect(nodeName(path)).toBe(name);
});

test.each([
  [0, '0000000000'],
  [1, '0000000001'],
  [42, '0000000042'],
  [2147483647, '2147483647'],
])('C3-18: counter %i is written %s', (counter, text) => {
  expect(sequenceSuffix(counter)).toBe(text);
});

test.each([
  [-2147483648, '-2147483648'],
  [-2147483647, '-2147483647'],
  [-1, '-000000001'],
])('C3-20: after its end the counter wraps: %i is written %s', (counter, text) => {
  expect(sequenceSuffix(counter)).toBe(text);
  expect(sequenceSuffix((2147483647 + 1) | 0)).toBe('-2147483648');
});
