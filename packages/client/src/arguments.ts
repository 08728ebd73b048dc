/**
 * Run-time checks of the arguments of a call. TypeScript finds these mistakes in TypeScript, but
 * not in plain JavaScript: there `setData(path, data, 0)` would overwrite any version, and
 * `delete(path, { verison: 3 })` would delete unconditionally.
 *
 * A call is identified by its form, as a program writes it: `setData(path, data, options)`. Errors
 * quote the form and say what to write. A value of the wrong type causes a TypeError, a number out
 * of range a RangeError. Checks that pass allocate nothing, as every request runs them.
 */
import { editDistance } from '@tskeeper/protocol/internal';

/** What a value must be. */
export interface ValueType {
  /** Completes the sentence "version must be ...": `a whole number`. */
  readonly expected: string;
  /**
   * Whether a number that does not fit is out of range (RangeError) rather than of the wrong type.
   */
  readonly isNumber?: boolean;
  /** Whether an error must not quote the value. Set by `secret`. */
  readonly isSecret?: boolean;
  accepts(value: unknown): boolean;
  /**
   * Throws if something inside a fitting value is wrong. `what` names the value in the error:
   * `connect: auth`.
   */
  checkContents?(value: unknown, what: string): void;
}

/** The options of a call by name. Made by `optionTypes`. */
export type OptionTypes = Readonly<Record<string, ValueType>>;

/** Names and kinds of options, without inherited properties: `toString` is not an option. */
export function optionTypes(...groups: readonly Readonly<Record<string, ValueType>>[]): OptionTypes {
  return Object.assign(Object.create(null) as Record<string, ValueType>, ...groups) as OptionTypes;
}

const int32Max = 0x7fffffff;

/** The kinds that several calls use. */
export const valueTypes = {
  boolean: { expected: 'true or false', accepts: (value) => typeof value === 'boolean' },
  string: { expected: 'a string', accepts: isString },
  /** A version of a znode: an int, and -1 means any version. */
  version: {
    expected: `a whole number from -${int32Max + 1} to ${int32Max}`,
    isNumber: true,
    accepts: (value) => Number.isInteger(value) && (value as number) >= -int32Max - 1 && (value as number) <= int32Max,
  },
  /** A count: 1 or more. */
  count: { expected: 'a whole number >= 1', isNumber: true, accepts: (value) => Number.isInteger(value) && (value as number) >= 1 },
  /** A number that the protocol encodes as a positive int. */
  int: {
    expected: `a whole number from 1 to ${int32Max}`,
    isNumber: true,
    accepts: (value) => Number.isInteger(value) && (value as number) >= 1 && (value as number) <= int32Max,
  },
  milliseconds: {
    expected: 'a number of milliseconds >= 0, or Infinity',
    isNumber: true,
    accepts: (value) => typeof value === 'number' && value >= 0,
  },
  function: { expected: 'a function', accepts: (value) => typeof value === 'function' },
  watch: { expected: 'a function or true', accepts: (value) => typeof value === 'function' || value === true },
  signal: { expected: 'an AbortSignal (pass controller.signal)', accepts: isSignal },
  object: { expected: 'an object', accepts: isObject },
  array: { expected: 'an array', accepts: Array.isArray },
  data: {
    expected: 'a Uint8Array, a string or null',
    accepts: (value) => value === null || typeof value === 'string' || value instanceof Uint8Array,
  },
  bytes: { expected: 'a Uint8Array or a string', accepts: (value) => typeof value === 'string' || value instanceof Uint8Array },
  acl: {
    expected: 'an array of { perms: Perms.read, id: { scheme, id } }',
    accepts: Array.isArray,
    checkContents: (value, what) => {
      for (const [index, each] of (value as readonly unknown[]).entries()) if (!isAclEntry(each)) checkAclEntry(each, `${what}[${index}]`);
    },
  },
} as const satisfies Readonly<Record<string, ValueType>>;

const aclEntryType: ValueType = { expected: 'an object { perms, id: { scheme, id } }', accepts: isObject };
const permsType: ValueType = { expected: 'a whole number, such as Perms.read | Perms.write', accepts: Number.isInteger };
const aclIdType: ValueType = { expected: 'an object { scheme, id } of two strings', accepts: isAclId };

function checkAclEntry(value: unknown, what: string): void {
  checkValue(value, aclEntryType, what);
  const entry = value as { readonly perms?: unknown; readonly id?: unknown };
  checkValue(entry.perms, permsType, `${what}.perms`);
  checkValue(entry.id, aclIdType, `${what}.id`);
}

/** One of these words. */
export function oneOf(...words: readonly (string | boolean)[]): ValueType {
  const quoted = words.map((word) => JSON.stringify(word));
  return { expected: `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}`, accepts: (value) => words.includes(value as string) };
}

/** An object with options of its own, such as `session: { id, password }`. */
export function objectOf(options: OptionTypes, required: readonly string[] = []): ValueType {
  const form = `{ ${required.length > 0 ? required.join(', ') : Object.keys(options)[0]}${required.length > 0 ? '' : ': ...'} }`;
  return {
    expected: `an object ${form}`,
    accepts: isOptionsObject,
    checkContents: (value, what) => {
      checkNames(value as object, options, what);
      for (const name of required) {
        if ((value as Record<string, unknown>)[name] === undefined) throw new TypeError(`${what}.${name} is missing: write ${form}`);
      }
    },
  };
}

/** An array of values of one kind. */
export function arrayOf(kind: ValueType): ValueType {
  return {
    expected: `an array with each element ${kind.expected}`,
    accepts: Array.isArray,
    checkContents: (value, what) => (value as readonly unknown[]).forEach((each, index) => checkValue(each, kind, `${what}[${index}]`)),
  };
}

/** The same kind, for values that may contain a password: errors do not quote them. */
export function secret(kind: ValueType): ValueType {
  return { ...kind, isSecret: true };
}

/** The kind, or one of the values. */
export function orOneOf(kind: ValueType, ...values: readonly unknown[]): ValueType {
  return {
    expected: [...values.filter((value) => value !== undefined).map(describeValue), kind.expected].join(' or '),
    accepts: (given) => values.includes(given) || kind.accepts(given),
    checkContents: (given, what) => {
      if (!values.includes(given)) kind.checkContents?.(given, what);
    },
  };
}

/**
 * Throws a TypeError, or a RangeError for a number out of range. `what` names the value in the
 * error: `setData: version`.
 */
export function checkValue(value: unknown, kind: ValueType, what: string): void {
  if (kind.accepts(value)) kind.checkContents?.(value, what);
  else throw wrongValueError(value, kind, what);
}

function wrongValueError(value: unknown, kind: ValueType, what: string): TypeError | RangeError {
  const quoted = kind.isSecret === true && typeof value === 'string' ? 'a string' : describeValue(value);
  const message = `${what} must be ${kind.expected}, not ${quoted}`;
  return kind.isNumber === true && typeof value === 'number' ? new RangeError(message) : new TypeError(message);
}

/**
 * Checks the options of a call: they must be an object with known names, and each value must be of
 * its kind or undefined. `form` is the call as a program writes it, with the word `options` in
 * their place: `setData(path, data, options)`. Throws a TypeError or a RangeError.
 */
export function checkOptions(value: unknown, options: OptionTypes, form: string): void {
  if (!isOptionsObject(value)) throw notAnObjectError(value, options, form);
  checkNames(value, options, callName(form));
}

function checkNames(given: object, options: OptionTypes, what: string): void {
  for (const name in given) {
    const kind = options[name];
    if (kind === undefined) throw unknownOptionError(given, name, options, what);
    const value = (given as Record<string, unknown>)[name];
    if (value === undefined) continue;
    if (!kind.accepts(value)) throw wrongValueError(value, kind, qualifiedName(what, name));
    if (kind.checkContents !== undefined) kind.checkContents(value, qualifiedName(what, name));
  }
}

/**
 * `count` is `arguments.length` of a call of this form, which takes at most `max` arguments.
 * Throws a TypeError.
 */
export function checkArgumentCount(count: number, max: number, form: string): void {
  if (count <= max) return;
  const many = max === 0 ? 'no argument' : max === 1 ? '1 argument' : `${max} arguments`;
  throw new TypeError(`${form} takes ${many}, not ${count}; calls return promises and take no callback`);
}

/** Throws a TypeError for a path that is not a string. `pathError` validates strings. */
export function checkPathType(value: unknown, form: string): void {
  if (typeof value !== 'string')
    throw new TypeError(`${callName(form)}: the path must be a string, not ${describeValue(value)}: write ${form}`);
}

// --- Texts of errors

/** `connect: session`, and inside it `connect: session.id`. */
function qualifiedName(what: string, name: string): string {
  return what.includes(': ') ? `${what}.${name}` : `${what}: ${name}`;
}

/** `setData` from `setData(path, data, options)`. */
function callName(form: string): string {
  const end = form.indexOf('(');
  return end === -1 ? form : form.slice(0, end);
}

/** The value as an error quotes it. Never the content of bytes or objects, which may be secret. */
export function describeValue(value: unknown): string {
  if (typeof value === 'string') return value.length > 60 ? 'a string' : JSON.stringify(value);
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value !== 'object' || value === null) return String(value);
  if (Array.isArray(value)) return 'an array';
  if (typeof (value as { readonly then?: unknown }).then === 'function') return 'a promise; await it first';
  if (isSignal(value)) return 'an AbortSignal';
  const className = (value as { readonly constructor?: { readonly name?: string } }).constructor?.name;
  return className === undefined || className === 'Object' || className === '' ? 'an object' : `an object of class ${className}`;
}

/**
 * The option that an argument of this type means in other clients' calls; the first one that the
 * call has wins.
 */
const likelyOptionsByType: Readonly<Record<string, readonly (readonly [name: string, value: (value: unknown) => string])[]>> = {
  number: [
    ['version', String],
    ['mode', () => "'ephemeral'"],
    ['sessionTimeoutMs', String],
    ['timeoutMs', String],
  ],
  function: [['watch', () => 'listener']],
  boolean: [
    ['watch', () => 'true'],
    ['mode', () => "'ephemeral'"],
    ['recursive', String],
  ],
  string: [['mode', (value) => `'${String(value)}'`]],
  array: [['acl', () => '[...]']],
  signal: [['signal', () => '']],
};

function notAnObjectError(given: unknown, options: OptionTypes, form: string): TypeError {
  const type = Array.isArray(given) ? 'array' : isSignal(given) ? 'signal' : typeof given;
  const meant = (likelyOptionsByType[type] ?? []).find(([name]) => options[name]?.accepts !== undefined);
  const first = Object.keys(options)[0];
  const value = meant === undefined ? '...' : meant[1](given);
  const name = meant === undefined ? first : meant[0];
  const example = name === undefined ? '{}' : value === '' ? `{ ${name} }` : `{ ${name}: ${value} }`;
  const callback = type === 'function' ? '; calls return promises and take no callback' : '';
  return new TypeError(
    `${callName(form)}: options must be an object, not ${describeValue(given)}: write ${form.replace(/\boptions\b/, example)}${callback}`,
  );
}

/**
 * The names of the options in other ZooKeeper clients (node-zookeeper-client, zookeeper on npm,
 * kazoo, Curator, Java), in lower case without signs.
 */
const optionSynonyms: ReadonlyMap<string, readonly string[]> = new Map([
  ['aborted', ['signal']],
  ['abortcontroller', ['signal']],
  ['abortsignal', ['signal']],
  ['acls', ['acl']],
  ['authdata', ['auth']],
  ['authinfo', ['auth']],
  ['callback', ['watch']],
  ['canbereadonly', ['readOnly']],
  ['cancel', ['signal']],
  ['cb', ['watch']],
  ['clientid', ['session']],
  ['commandretry', ['retry']],
  ['connectiontimeout', ['connectTimeoutMs']],
  ['controller', ['signal']],
  ['createmode', ['mode']],
  ['createparents', ['parents']],
  ['credentials', ['auth']],
  ['datawatch', ['watch']],
  ['deadline', ['timeoutMs']],
  ['ephemeral', ['mode']],
  ['expectedversion', ['version']],
  ['flags', ['mode']],
  ['includedata', ['data']],
  ['listener', ['watch']],
  ['makepath', ['parents']],
  ['maxretries', ['retry']],
  ['maxwait', ['timeoutMs']],
  ['operationtimeout', ['requestTimeoutMs', 'timeoutMs']],
  ['permissions', ['acl']],
  ['recursive', ['parents']],
  ['retries', ['retry']],
  ['retrypolicy', ['retry']],
  ['secure', ['tls']],
  ['sequence', ['mode']],
  ['sequential', ['mode']],
  ['sessionid', ['session']],
  ['spindelay', ['retry']],
  ['ssl', ['tls']],
  ['timeout', ['timeoutMs', 'sessionTimeoutMs']],
  ['timeoutms', ['connectTimeoutMs']],
  ['usessl', ['tls']],
  ['waittime', ['timeoutMs']],
  ['watcher', ['watch']],
  ['watchfn', ['watch']],
]);

/** Options of other clients that are not options here. */
const notAnOption: ReadonlyMap<string, string> = new Map([
  ['chroot', 'write the chroot at the end of the connect string, as in "zk1:2181/app", or call client.chroot(path)'],
  ['connect', 'the servers are the first argument, as in "zk1:2181,zk2:2181"'],
  ['connectstring', 'the servers are the first argument, as in "zk1:2181,zk2:2181"'],
  ['hosts', 'the servers are the first argument, as in "zk1:2181,zk2:2181"'],
  ['namespace', 'call client.chroot(path)'],
  ['servers', 'the servers are the first argument, as in "zk1:2181,zk2:2181"'],
]);

function unknownOptionError(value: object, name: string, options: OptionTypes, what: string): TypeError {
  if (isSignal(value)) return new TypeError(`${what}: options must be an object, not an AbortSignal: write { signal }`);
  const plain = name.toLowerCase().replaceAll(/[_-]/g, '');
  const known = Object.keys(options);
  const near = optionSynonyms.get(plain)?.find((each) => known.includes(each)) ?? closestName(plain, known);
  const remedy =
    near === undefined
      ? (notAnOption.get(plain) ?? `the options are ${known.join(', ')}`)
      : `write ${near}, which must be ${options[near]!.expected}`;
  return new TypeError(`${what}: unknown option ${JSON.stringify(name)}; ${remedy}`);
}

/** The known name with the smallest edit distance; undefined if all distances are too large. */
export function closestName(plain: string, known: readonly string[]): string | undefined {
  let best: string | undefined;
  let fewest = Math.min(2, Math.floor(plain.length / 3)) + 1;
  for (const name of known) {
    const lower = name.toLowerCase();
    // Many programs omit the unit at the end of our names, and some the end of a name.
    const distance = lower === `${plain}ms` ? 0 : plain.length >= 3 && lower.startsWith(plain) ? 1 : editDistance(plain, lower);
    if (distance >= fewest) continue;
    fewest = distance;
    best = name;
  }
  return best;
}

// --- Types of values

function isString(value: unknown): boolean {
  return typeof value === 'string';
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** Does not check the class: signals of another realm or of a package are signals too. */
function isSignal(value: unknown): value is AbortSignal {
  return isObject(value) && typeof (value as Partial<AbortSignal>).aborted === 'boolean' && 'addEventListener' in value;
}

/**
 * Whether the value can be options: a plain object, or an object of a class that programs may use
 * for options.
 */
function isOptionsObject(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) return true;
  return !(
    Array.isArray(value) ||
    ArrayBuffer.isView(value) ||
    isSignal(value) ||
    value instanceof Date ||
    value instanceof Error ||
    value instanceof Map ||
    value instanceof Set ||
    typeof (value as { readonly then?: unknown }).then === 'function'
  );
}

function isAclEntry(value: unknown): boolean {
  if (!isObject(value)) return false;
  const entry = value as { readonly perms?: unknown; readonly id?: unknown };
  return Number.isInteger(entry.perms) && isAclId(entry.id);
}

function isAclId(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { scheme, id } = value as { readonly scheme?: unknown; readonly id?: unknown };
  return typeof scheme === 'string' && typeof id === 'string';
}
