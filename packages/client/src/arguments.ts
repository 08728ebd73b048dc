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
export interface Kind {
  /** Completes the sentence "version must be ...": `a whole number`. */
  readonly wanted: string;
  /**
   * Whether a number that does not fit is out of range (RangeError) rather than of the wrong type.
   */
  readonly isNumber?: boolean;
  /** Whether an error must not quote the value. Set by `secret`. */
  readonly isSecret?: boolean;
  fits(given: unknown): boolean;
  /**
   * Throws if something inside a fitting value is wrong. `what` names the value in the error:
   * `connect: auth`.
   */
  inside?(given: unknown, what: string): void;
}

/** The options of a call by name. Made by `optionKinds`. */
export type OptionKinds = Readonly<Record<string, Kind>>;

/** Names and kinds of options, without inherited properties: `toString` is not an option. */
export function optionKinds(...groups: readonly Readonly<Record<string, Kind>>[]): OptionKinds {
  return Object.assign(Object.create(null) as Record<string, Kind>, ...groups) as OptionKinds;
}

const int32Max = 0x7fffffff;

/** The kinds that several calls use. */
export const kinds = {
  boolean: { wanted: 'true or false', fits: (given) => typeof given === 'boolean' },
  string: { wanted: 'a string', fits: isString },
  /** A version of a znode: an int, and -1 means any version. */
  version: {
    wanted: `a whole number from -${int32Max + 1} to ${int32Max}`,
    isNumber: true,
    fits: (given) => Number.isInteger(given) && (given as number) >= -int32Max - 1 && (given as number) <= int32Max,
  },
  /** A count: 1 or more. */
  count: { wanted: 'a whole number >= 1', isNumber: true, fits: (given) => Number.isInteger(given) && (given as number) >= 1 },
  /** A number that the protocol encodes as a positive int. */
  int: {
    wanted: `a whole number from 1 to ${int32Max}`,
    isNumber: true,
    fits: (given) => Number.isInteger(given) && (given as number) >= 1 && (given as number) <= int32Max,
  },
  milliseconds: {
    wanted: 'a number of milliseconds >= 0, or Infinity',
    isNumber: true,
    fits: (given) => typeof given === 'number' && given >= 0,
  },
  function: { wanted: 'a function', fits: (given) => typeof given === 'function' },
  watch: { wanted: 'a function or true', fits: (given) => typeof given === 'function' || given === true },
  signal: { wanted: 'an AbortSignal (pass controller.signal)', fits: isSignal },
  object: { wanted: 'an object', fits: isObject },
  array: { wanted: 'an array', fits: Array.isArray },
  data: {
    wanted: 'a Uint8Array, a string or null',
    fits: (given) => given === null || typeof given === 'string' || given instanceof Uint8Array,
  },
  bytes: { wanted: 'a Uint8Array or a string', fits: (given) => typeof given === 'string' || given instanceof Uint8Array },
  acl: {
    wanted: 'an array of { perms: Perms.read, id: { scheme, id } }',
    fits: Array.isArray,
    inside: (given, what) => {
      for (const [index, each] of (given as readonly unknown[]).entries()) if (!isAclEntry(each)) checkAclEntry(each, `${what}[${index}]`);
    },
  },
} as const satisfies Readonly<Record<string, Kind>>;

const aclEntry: Kind = { wanted: 'an object { perms, id: { scheme, id } }', fits: isObject };
const perms: Kind = { wanted: 'a whole number, such as Perms.read | Perms.write', fits: Number.isInteger };
const aclId: Kind = { wanted: 'an object { scheme, id } of two strings', fits: isAclId };

function checkAclEntry(given: unknown, what: string): void {
  checkValue(given, aclEntry, what);
  const entry = given as { readonly perms?: unknown; readonly id?: unknown };
  checkValue(entry.perms, perms, `${what}.perms`);
  checkValue(entry.id, aclId, `${what}.id`);
}

/** One of these words. */
export function oneOf(...words: readonly (string | boolean)[]): Kind {
  const quoted = words.map((word) => JSON.stringify(word));
  return { wanted: `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}`, fits: (given) => words.includes(given as string) };
}

/** An object with options of its own, such as `session: { id, password }`. */
export function nested(options: OptionKinds, required: readonly string[] = []): Kind {
  const form = `{ ${required.length > 0 ? required.join(', ') : Object.keys(options)[0]}${required.length > 0 ? '' : ': ...'} }`;
  return {
    wanted: `an object ${form}`,
    fits: isOptionsObject,
    inside: (given, what) => {
      checkNames(given as object, options, what);
      for (const name of required) {
        if ((given as Record<string, unknown>)[name] === undefined) throw new TypeError(`${what}.${name} is missing: write ${form}`);
      }
    },
  };
}

/** An array of values of one kind. */
export function arrayOf(kind: Kind): Kind {
  return {
    wanted: `an array with each element ${kind.wanted}`,
    fits: Array.isArray,
    inside: (given, what) => (given as readonly unknown[]).forEach((each, index) => checkValue(each, kind, `${what}[${index}]`)),
  };
}

/** The same kind, for values that may contain a password: errors do not quote them. */
export function secret(kind: Kind): Kind {
  return { ...kind, isSecret: true };
}

/** The kind, or one of the values. */
export function orOneOf(kind: Kind, ...values: readonly unknown[]): Kind {
  return {
    wanted: [...values.filter((value) => value !== undefined).map(described), kind.wanted].join(' or '),
    fits: (given) => values.includes(given) || kind.fits(given),
    inside: (given, what) => {
      if (!values.includes(given)) kind.inside?.(given, what);
    },
  };
}

/**
 * Throws a TypeError, or a RangeError for a number out of range. `what` names the value in the
 * error: `setData: version`.
 */
export function checkValue(given: unknown, kind: Kind, what: string): void {
  if (kind.fits(given)) kind.inside?.(given, what);
  else throw wrongValue(given, kind, what);
}

function wrongValue(given: unknown, kind: Kind, what: string): TypeError | RangeError {
  const quoted = kind.isSecret === true && typeof given === 'string' ? 'a string' : described(given);
  const message = `${what} must be ${kind.wanted}, not ${quoted}`;
  return kind.isNumber === true && typeof given === 'number' ? new RangeError(message) : new TypeError(message);
}

/**
 * Checks the options of a call: they must be an object with known names, and each value must be of
 * its kind or undefined. `form` is the call as a program writes it, with the word `options` in
 * their place: `setData(path, data, options)`. Throws a TypeError or a RangeError.
 */
export function checkOptions(given: unknown, options: OptionKinds, form: string): void {
  if (!isOptionsObject(given)) throw notOptions(given, options, form);
  checkNames(given, options, nameOf(form));
}

function checkNames(given: object, options: OptionKinds, what: string): void {
  for (const name in given) {
    const kind = options[name];
    if (kind === undefined) throw unknownOption(given, name, options, what);
    const value = (given as Record<string, unknown>)[name];
    if (value === undefined) continue;
    if (!kind.fits(value)) throw wrongValue(value, kind, within(what, name));
    if (kind.inside !== undefined) kind.inside(value, within(what, name));
  }
}

/**
 * `count` is `arguments.length` of a call of this form, which takes at most `most` arguments.
 * Throws a TypeError.
 */
export function checkCount(count: number, most: number, form: string): void {
  if (count <= most) return;
  const many = most === 0 ? 'no argument' : most === 1 ? '1 argument' : `${most} arguments`;
  throw new TypeError(`${form} takes ${many}, not ${count}; calls return promises and take no callback`);
}

/** Throws a TypeError for a path that is not a string. `pathFault` validates strings. */
export function checkPathType(given: unknown, form: string): void {
  if (typeof given !== 'string') throw new TypeError(`${nameOf(form)}: the path must be a string, not ${described(given)}: write ${form}`);
}

// --- Texts of errors

/** `connect: session`, and inside it `connect: session.id`. */
function within(what: string, name: string): string {
  return what.includes(': ') ? `${what}.${name}` : `${what}: ${name}`;
}

/** `setData` from `setData(path, data, options)`. */
function nameOf(form: string): string {
  const end = form.indexOf('(');
  return end === -1 ? form : form.slice(0, end);
}

/** The value as an error quotes it. Never the content of bytes or objects, which may be secret. */
export function described(given: unknown): string {
  if (typeof given === 'string') return given.length > 60 ? 'a string' : JSON.stringify(given);
  if (typeof given === 'function') return 'a function';
  if (typeof given === 'bigint') return `${given}n`;
  if (typeof given !== 'object' || given === null) return String(given);
  if (Array.isArray(given)) return 'an array';
  if (typeof (given as { readonly then?: unknown }).then === 'function') return 'a promise; await it first';
  if (isSignal(given)) return 'an AbortSignal';
  const className = (given as { readonly constructor?: { readonly name?: string } }).constructor?.name;
  return className === undefined || className === 'Object' || className === '' ? 'an object' : `an object of class ${className}`;
}

/**
 * The option that an argument of this type means in other clients' calls; the first one that the
 * call has wins.
 */
const meantBy: Readonly<Record<string, readonly (readonly [name: string, value: (given: unknown) => string])[]>> = {
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
  string: [['mode', (given) => `'${String(given)}'`]],
  array: [['acl', () => '[...]']],
  signal: [['signal', () => '']],
};

function notOptions(given: unknown, options: OptionKinds, form: string): TypeError {
  const type = Array.isArray(given) ? 'array' : isSignal(given) ? 'signal' : typeof given;
  const meant = (meantBy[type] ?? []).find(([name]) => options[name]?.fits !== undefined);
  const first = Object.keys(options)[0];
  const value = meant === undefined ? '...' : meant[1](given);
  const name = meant === undefined ? first : meant[0];
  const example = name === undefined ? '{}' : value === '' ? `{ ${name} }` : `{ ${name}: ${value} }`;
  const callback = type === 'function' ? '; calls return promises and take no callback' : '';
  return new TypeError(
    `${nameOf(form)}: options must be an object, not ${described(given)}: write ${form.replace(/\boptions\b/, example)}${callback}`,
  );
}

/**
 * The names of the options in other ZooKeeper clients (node-zookeeper-client, zookeeper on npm,
 * kazoo, Curator, Java), in lower case without signs.
 */
const otherNames: ReadonlyMap<string, readonly string[]> = new Map([
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
const elsewhere: ReadonlyMap<string, string> = new Map([
  ['chroot', 'write the chroot at the end of the connect string, as in "zk1:2181/app", or call client.chroot(path)'],
  ['connect', 'the servers are the first argument, as in "zk1:2181,zk2:2181"'],
  ['connectstring', 'the servers are the first argument, as in "zk1:2181,zk2:2181"'],
  ['hosts', 'the servers are the first argument, as in "zk1:2181,zk2:2181"'],
  ['namespace', 'call client.chroot(path)'],
  ['servers', 'the servers are the first argument, as in "zk1:2181,zk2:2181"'],
]);

function unknownOption(given: object, name: string, options: OptionKinds, what: string): TypeError {
  if (isSignal(given)) return new TypeError(`${what}: options must be an object, not an AbortSignal: write { signal }`);
  const plain = name.toLowerCase().replaceAll(/[_-]/g, '');
  const known = Object.keys(options);
  const near = otherNames.get(plain)?.find((each) => known.includes(each)) ?? nearest(plain, known);
  const remedy =
    near === undefined
      ? (elsewhere.get(plain) ?? `the options are ${known.join(', ')}`)
      : `write ${near}, which must be ${options[near]!.wanted}`;
  return new TypeError(`${what}: unknown option ${JSON.stringify(name)}; ${remedy}`);
}

/** The known name with the smallest edit distance; undefined if all distances are too large. */
export function nearest(plain: string, known: readonly string[]): string | undefined {
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

function isString(given: unknown): boolean {
  return typeof given === 'string';
}

function isObject(given: unknown): given is object {
  return typeof given === 'object' && given !== null;
}

/** Does not check the class: signals of another realm or of a package are signals too. */
function isSignal(given: unknown): given is AbortSignal {
  return isObject(given) && typeof (given as Partial<AbortSignal>).aborted === 'boolean' && 'addEventListener' in given;
}

/**
 * Whether the value can be options: a plain object, or an object of a class that programs may use
 * for options.
 */
function isOptionsObject(given: unknown): given is object {
  if (typeof given !== 'object' || given === null) return false;
  const prototype: unknown = Object.getPrototypeOf(given);
  if (prototype === Object.prototype || prototype === null) return true;
  return !(
    Array.isArray(given) ||
    ArrayBuffer.isView(given) ||
    isSignal(given) ||
    given instanceof Date ||
    given instanceof Error ||
    given instanceof Map ||
    given instanceof Set ||
    typeof (given as { readonly then?: unknown }).then === 'function'
  );
}

function isAclEntry(given: unknown): boolean {
  if (!isObject(given)) return false;
  const entry = given as { readonly perms?: unknown; readonly id?: unknown };
  return Number.isInteger(entry.perms) && isAclId(entry.id);
}

function isAclId(given: unknown): boolean {
  if (!isObject(given)) return false;
  const { scheme, id } = given as { readonly scheme?: unknown; readonly id?: unknown };
  return typeof scheme === 'string' && typeof id === 'string';
}
