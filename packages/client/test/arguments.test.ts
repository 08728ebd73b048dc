import { describe, expect, it } from 'vitest';
import {
  checkArgumentCount,
  checkOptions,
  checkPathType,
  checkValue,
  valueTypes,
  objectOf,
  oneOf,
  optionTypes,
  secret,
  arrayOf,
} from '../src/arguments.ts';

const form = 'setData(path, data, options)';
const options = optionTypes({
  version: valueTypes.version,
  timeoutMs: valueTypes.milliseconds,
  signal: valueTypes.signal,
  idempotent: valueTypes.boolean,
  watch: valueTypes.watch,
});

function messageOf(act: () => void): string {
  try {
    act();
  } catch (error) {
    return `${(error as Error).name}: ${(error as Error).message}`;
  }
  return 'nothing was thrown';
}

describe('options', () => {
  it.each([
    {},
    { version: 0 },
    { version: -1, timeoutMs: Infinity, signal: undefined },
    { signal: AbortSignal.abort(), idempotent: false, watch: true },
    Object.create(null) as object,
    new (class Settings {
      version = 3;
    })(),
  ])('are accepted if valid: %o', (given) => {
    expect(messageOf(() => checkOptions(given, options, form))).toBe('nothing was thrown');
  });

  it.each([
    [0, 'TypeError: setData: options must be an object, not 0: write setData(path, data, { version: 0 })'],
    [
      () => {},
      'TypeError: setData: options must be an object, not a function: write setData(path, data, { watch: listener }); calls return promises and take no callback',
    ],
    [true, 'TypeError: setData: options must be an object, not true: write setData(path, data, { watch: true })'],
    [null, 'TypeError: setData: options must be an object, not null: write setData(path, data, { version: ... })'],
    [[], 'TypeError: setData: options must be an object, not an array: write setData(path, data, { version: ... })'],
    [
      Buffer.from('x'),
      'TypeError: setData: options must be an object, not an object of class Buffer: write setData(path, data, { version: ... })',
    ],
    [
      Promise.resolve({}),
      'TypeError: setData: options must be an object, not a promise; await it first: write setData(path, data, { version: ... })',
    ],
    [AbortSignal.abort(), 'TypeError: setData: options must be an object, not an AbortSignal: write setData(path, data, { signal })'],
  ])('that are not an object cause a TypeError: %o', (given, message) => {
    expect(messageOf(() => checkOptions(given, options, form))).toBe(message);
  });

  it.each([
    [
      { verison: 3 },
      'TypeError: setData: unknown option "verison"; write version, which must be a whole number from -2147483648 to 2147483647',
    ],
    [
      { Version: 3 },
      'TypeError: setData: unknown option "Version"; write version, which must be a whole number from -2147483648 to 2147483647',
    ],
    [{ watcher: () => {} }, 'TypeError: setData: unknown option "watcher"; write watch, which must be a function or true'],
    [
      { timeout: 5 },
      'TypeError: setData: unknown option "timeout"; write timeoutMs, which must be a number of milliseconds >= 0, or Infinity',
    ],
    [
      { time_out: 5 },
      'TypeError: setData: unknown option "time_out"; write timeoutMs, which must be a number of milliseconds >= 0, or Infinity',
    ],
    [{ toString: 1 }, 'TypeError: setData: unknown option "toString"; the options are version, timeoutMs, signal, idempotent, watch'],
    [{ constructor: 1 }, 'TypeError: setData: unknown option "constructor"; the options are version, timeoutMs, signal, idempotent, watch'],
    [{ x: undefined }, 'TypeError: setData: unknown option "x"; the options are version, timeoutMs, signal, idempotent, watch'],
    [{ hosts: 'a' }, 'TypeError: setData: unknown option "hosts"; the servers are the first argument, as in "zk1:2181,zk2:2181"'],
  ])('with an unknown name cause a TypeError that suggests one: %o', (given, message) => {
    expect(messageOf(() => checkOptions(given, options, form))).toBe(message);
  });

  it.each([
    [{ version: '3' }, 'TypeError: setData: version must be a whole number from -2147483648 to 2147483647, not "3"'],
    [{ version: 3.5 }, 'RangeError: setData: version must be a whole number from -2147483648 to 2147483647, not 3.5'],
    [{ version: 3n }, 'TypeError: setData: version must be a whole number from -2147483648 to 2147483647, not 3n'],
    [{ version: null }, 'TypeError: setData: version must be a whole number from -2147483648 to 2147483647, not null'],
    [{ timeoutMs: Number.NaN }, 'RangeError: setData: timeoutMs must be a number of milliseconds >= 0, or Infinity, not NaN'],
    [{ timeoutMs: -1 }, 'RangeError: setData: timeoutMs must be a number of milliseconds >= 0, or Infinity, not -1'],
    [{ idempotent: 1 }, 'TypeError: setData: idempotent must be true or false, not 1'],
    [
      { signal: new AbortController() },
      'TypeError: setData: signal must be an AbortSignal (pass controller.signal), not an object of class AbortController',
    ],
    [{ watch: 'yes' }, 'TypeError: setData: watch must be a function or true, not "yes"'],
  ])('with a wrong value cause an error that names the option: %o', (given, message) => {
    expect(messageOf(() => checkOptions(given, options, form))).toBe(message);
  });

  it('are validated when nested too, and errors contain their full name', () => {
    const outer = optionTypes({
      session: objectOf(optionTypes({ id: valueTypes.int, password: valueTypes.bytes }), ['id', 'password']),
      auth: arrayOf(objectOf(optionTypes({ scheme: valueTypes.string, auth: valueTypes.bytes }), ['scheme', 'auth'])),
    });
    const of = (given: object) => messageOf(() => checkOptions(given, outer, 'connect(servers, options)'));
    expect(of({ session: 5 })).toBe('TypeError: connect: session must be an object { id, password }, not 5');
    expect(of({ session: { id: 5 } })).toBe('TypeError: connect: session.password is missing: write { id, password }');
    expect(of({ session: { id: 0, password: '' } })).toBe(
      'RangeError: connect: session.id must be a whole number from 1 to 2147483647, not 0',
    );
    expect(of({ session: { ID: 1 } })).toBe(
      'TypeError: connect: session: unknown option "ID"; write id, which must be a whole number from 1 to 2147483647',
    );
    expect(of({ auth: {} })).toBe('TypeError: connect: auth must be an array with each element an object { scheme, auth }, not an object');
    expect(of({ auth: [{ scheme: 'digest' }] })).toBe('TypeError: connect: auth[0].auth is missing: write { scheme, auth }');
    expect(of({ auth: [{ scheme: 'digest', auth: 'a:b' }] })).toBe('nothing was thrown');
  });
});

it('an error does not quote a value that may be a password', () => {
  const given = { auth: 'user:password' };
  expect(messageOf(() => checkOptions(given, optionTypes({ auth: secret(valueTypes.array) }), 'connect(servers, options)'))).toBe(
    'TypeError: connect: auth must be an array, not a string',
  );
});

it('a surplus argument causes a TypeError, as a callback would never be called', () => {
  expect(messageOf(() => checkArgumentCount(2, 2, 'getData(path, options)'))).toBe('nothing was thrown');
  expect(messageOf(() => checkArgumentCount(3, 2, 'getData(path, options)'))).toBe(
    'TypeError: getData(path, options) takes 2 arguments, not 3; calls return promises and take no callback',
  );
});

it('a path that is not a string causes a TypeError', () => {
  expect(messageOf(() => checkPathType(undefined, 'getData(path, options)'))).toBe(
    'TypeError: getData: the path must be a string, not undefined: write getData(path, options)',
  );
});

it.each([
  [valueTypes.data, 5, 'TypeError: x must be a Uint8Array, a string or null, not 5'],
  [valueTypes.data, { a: 1 }, 'TypeError: x must be a Uint8Array, a string or null, not an object'],
  [valueTypes.acl, {}, 'TypeError: x must be an array of { perms: Perms.read, id: { scheme, id } }, not an object'],
  [
    valueTypes.acl,
    [{ perms: 'rw', id: { scheme: 'world', id: 'anyone' } }],
    'TypeError: x[0].perms must be a whole number, such as Perms.read | Perms.write, not "rw"',
  ],
  [oneOf('persistent', 'container'), 'CONTAINER', 'TypeError: x must be "persistent" or "container", not "CONTAINER"'],
])('a value of the wrong kind causes an error: %o, %o', (kind, given, message) => {
  expect(messageOf(() => checkValue(given, kind, 'x'))).toBe(message);
});
