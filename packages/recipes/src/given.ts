/**
 * Checks of arguments. They run when the program makes the call, so that a mistake does not surface
 * later, as a failing request or not at all.
 */
import type { ClientView } from '@tskeeper/client';
import {
  checkCount,
  checkOps,
  checkOptions as checkNamedOptions,
  checkValue,
  connectOptions,
  createSettings,
  type Kind,
  kinds,
  methodForms,
  oneOf,
  optionKinds,
  type OptionKinds,
  pathFault,
} from '@tskeeper/client/internal';
import { hasSessionsBrand } from './sessions/sessions-brand.ts';
import type { WaitOptions } from './waiting/wait-options.ts';

/** The source and the path of a recipe. Throws a TypeError. */
export function checkPlace(source: unknown, path: string): void {
  checkSource(source);
  checkPath(path);
}

/** Throws a TypeError for a value that is neither a client, nor a view of one, nor Sessions. */
export function checkSource(source: unknown): void {
  if (!isClient(source) && !hasSessionsBrand(source))
    throw new TypeError(`expected a Client from connect(), a view of one, or Sessions, got ${named(source)}; ${howToConnect}`);
}

/** Throws a TypeError for a value that is neither a client nor a view of one. */
export function checkClient(zk: ClientView): void {
  if (isClient(zk)) return;
  const remedy = hasSessionsBrand(zk) ? 'pass the client of each session: sessions.each((client) => ...)' : howToConnect;
  throw new TypeError(
    `expected a Client from connect(), or a view of one, got ${hasSessionsBrand(zk) ? 'Sessions' : named(zk)}; ${remedy}`,
  );
}

const howToConnect = 'await connect() of @tskeeper/client, or Sessions.start(), and pass the result';

/** Throws a TypeError for a value that is not a path. */
export function checkPath(path: string): void {
  const fault = typeof path === 'string' ? pathFault(path) : 'must be a string';
  if (fault !== undefined) throw new TypeError(`${named(path)} is not a path of a znode: it ${fault}`);
}

/** Throws a TypeError for a value that is not a string; `what`: `the name of a znode`. */
export function checkText(given: unknown, what: string): void {
  if (typeof given !== 'string') throw new TypeError(`${what} is a string, not ${named(given)}`);
}

/**
 * A part of a znode's name. Throws a TypeError for any other value; `what`: `the name of a lock`.
 */
export function checkName(given: unknown, what: string): void {
  if (typeof given !== 'string' || given === '' || given.includes('/'))
    throw new TypeError(`${what} is a non-empty string without "/", not ${named(given)}`);
}

/** Throws a TypeError for a value that cannot be the data of a znode. */
export function checkData(given: unknown): void {
  if (given !== null && typeof given !== 'string' && !(given instanceof Uint8Array))
    throw new TypeError(`data are a Uint8Array, a string or null, not ${named(given)}`);
}

/** Throws a TypeError for a value that is not a codec. */
export function checkCodec(given: unknown, example: string): void {
  if (!isObject(given) || typeof given['encode'] !== 'function' || typeof given['decode'] !== 'function')
    throw new TypeError(`a codec is an object with encode and decode, as ${example}, not ${named(given)}`);
}

/** A program's validation of values: a function, or a schema of a library. */
const check: Kind = {
  wanted: 'a function or a schema',
  fits: (given) => typeof given === 'function' || (isObject(given) && '~standard' in given),
};

/** Throws a TypeError for a value that cannot validate. */
export function checkCheck(given: unknown): void {
  checkValue(given, check, 'a check of values');
}

/**
 * The operations of a `multi` and the options of the call, before a recipe adds operations of its
 * own. Throws a TypeError or a RangeError.
 */
export function checkMulti(ops: unknown, options: unknown): void {
  methodForms.multi.check(2, options);
  checkOps(ops, 'multi');
}

/** Throws a TypeError for a value that is not an array; `what`: `items are`. */
export function checkArray(given: unknown, what: string): void {
  if (!Array.isArray(given)) throw new TypeError(`${what} an array, not ${named(given)}`);
}

/** Throws a TypeError for a value that is not a function; `what`: `work`. */
export function checkFunction(given: unknown, what: string): void {
  if (typeof given !== 'function') throw new TypeError(`${what} is a function, not ${named(given)}`);
}

/** Throws a TypeError for a value that is not an object; `example`: `{ timeoutMs: 5000 }`. */
export function checkOptions(given: unknown, example: string, what = 'options are'): void {
  if (!isObject(given)) throw new TypeError(`${what} an object, as ${example}, not ${named(given)}`);
}

const wait = {
  signal: kinds.signal,
  timeoutMs: {
    wanted: 'a number of milliseconds; leave it out to wait for as long as it takes',
    isNumber: true,
    fits: (given: unknown) => typeof given === 'number' && !Number.isNaN(given),
  },
};

/**
 * A value that is checked elsewhere. `wanted` describes it, for the error about a misspelt option.
 */
export function checkedElsewhere(wanted: string): Kind {
  return { wanted, fits: () => true };
}

const milliseconds = checkedElsewhere('a number of milliseconds');
const flag = kinds.boolean;
const line = { acl: kinds.acl };

/** The options of calls, by purpose. */
export const callOptions = {
  wait: optionKinds(wait),
  acquire: optionKinds(wait, { onRevocation: checkedElsewhere('a function') }),
  read: optionKinds({ concurrency: checkedElsewhere('a whole number from 1') }),
  start: optionKinds({ signal: kinds.signal }),
  // An expired session cannot be resumed.
  startOfServers: optionKinds(Object.fromEntries(Object.entries(connectOptions).filter(([name]) => name !== 'session'))),
  revoke: optionKinds(wait, { deleteAfterMs: milliseconds }),
  preempt: optionKinds({ preempt: checkedElsewhere('true, or { deleteAfterMs: 5000 }') }),
  loop: optionKinds({ signal: kinds.signal }),
  changes: optionKinds({ signal: kinds.signal, maxQueuedChanges: checkedElsewhere('a whole number from 1') }),
  join: optionKinds(wait, { data: kinds.data, takesOver: flag }),
  begin: optionKinds(wait, { data: kinds.data }),
  register: optionKinds(wait, { takesOver: flag }),
  putPriority: optionKinds(wait, { priority: checkedElsewhere('a whole number, lower first') }),
  putDelay: optionKinds(wait, { delayMs: milliseconds, dueMs: checkedElsewhere('a time in ms since 1970') }),
  putId: optionKinds(wait, { id: checkedElsewhere('a string') }),
} as const;

const item = { acl: kinds.acl, items: checkedElsewhere('"persistent" or "ephemeral"') };
const queue = { ...item, maxItems: checkedElsewhere('a whole number from 1'), takenPath: checkedElsewhere('a path') };
const decode = { decode: checkedElsewhere('a function') };
const many = { ...decode, data: flag, concurrency: checkedElsewhere('a whole number from 1') };
const include = checkedElsewhere('a function');
const participant = { name: checkedElsewhere('a string without "/"'), data: kinds.data, acl: kinds.acl };
const candidate = { ...line, data: kinds.data, name: checkedElsewhere('a string without "/"') };
const lease = { ...line, durationMs: milliseconds, holder: checkedElsewhere('a string') };

/** The options of constructors, by the name of the class. */
export const settings = {
  AtomicNumber: optionKinds({ format: checkedElsewhere('a format such as int32'), lockPath: checkedElsewhere('a path'), acl: kinds.acl }),
  Barrier: optionKinds({ data: kinds.data, ephemeral: flag, acl: kinds.acl }),
  Candidate: optionKinds(candidate),
  ChildrenCache: optionKinds(many, { include }),
  DelayQueue: optionKinds(queue),
  DoubleBarrier: optionKinds(participant),
  Election: optionKinds(candidate),
  EventHandle: optionKinds(line, { autoReset: flag }),
  Group: optionKinds(line, { naming: checkedElsewhere('"plain", "party" or "shallowParty"') }),
  IdQueue: optionKinds(queue),
  Lease: optionKinds(lease),
  Lock: optionKinds(line, { name: checkedElsewhere('a string without "/"'), data: kinds.data }),
  Migrations: optionKinds(line),
  Model: optionKinds(createSettings, {
    codec: checkedElsewhere('a codec, as jsonCodec()'),
    parents: oneOf('persistent', 'container', false),
  }),
  MultiLease: optionKinds(lease, { count: checkedElsewhere('a whole number from 1') }),
  NodeCache: optionKinds(decode),
  PersistentNode: optionKinds({
    mode: checkedElsewhere('"ephemeral" or another mode'),
    ttlMs: milliseconds,
    acl: kinds.acl,
    protection: flag,
    takesOver: flag,
  }),
  PriorityLock: optionKinds(line, { data: kinds.data }),
  PriorityQueue: optionKinds(queue, { naming: checkedElsewhere('"page", "kazoo" or "curator"') }),
  Queue: optionKinds(queue, { prefix: checkedElsewhere('a string without "/"') }),
  SchemaSet: optionKinds({ others: oneOf('allowed', 'refused') }),
  Semaphore: optionKinds(line, { size: checkedElsewhere('a whole number from 1'), data: kinds.data }),
  ServiceProvider: optionKinds({
    strategy: checkedElsewhere('a function, as roundRobin()'),
    include,
    downAfterErrors: checkedElsewhere('a whole number from 1'),
    downForMs: milliseconds,
  }),
  ServiceRegistry: optionKinds(line, { payload: check }),
  SetPartitioner: optionKinds(line, { timeBoundaryMs: milliseconds, plan: kinds.function }),
  ShardedQueue: optionKinds(item, { shards: checkedElsewhere('a whole number from 1 to 100') }),
  SharedCount: optionKinds(line, { format: checkedElsewhere('a format such as int32') }),
  SharedLock: optionKinds(line, { names: checkedElsewhere("{ read: 'read-', write: 'write-' }"), data: kinds.data }),
  SharedValue: optionKinds(line),
  SimpleBarrier: optionKinds(participant, wait),
  TreeCache: optionKinds(many, { maxDepth: checkedElsewhere('a whole number from 1'), include }),
  TwoPhaseCommit: optionKinds(line, { watching: checkedElsewhere('"sites" or "coordinator"'), presence: flag }),
} as const;

/** The parameters of a constructor before its options, where these are not `source, path`. */
const inFront: Partial<Readonly<Record<keyof typeof settings, string>>> = {
  DoubleBarrier: 'source, path, size',
  Migrations: 'source, path, list',
  Model: 'template',
  PersistentNode: 'source, path, data',
  SchemaSet: 'schemas',
  ServiceProvider: 'source, name, open',
  SetPartitioner: 'source, path, name, items, work',
  SharedValue: 'source, path, codec',
};

export { checkCount };

/**
 * What `checkCount` throws, or undefined. For a method that returns the promise of an earlier call:
 * it returns a rejected promise, and does not throw.
 */
export function surplusOf(count: number, most: number, form: string): unknown {
  try {
    checkCount(count, most, form);
    return undefined;
  } catch (error) {
    return error;
  }
}

/**
 * The options of a constructor; `count` is its `arguments.length`. Throws a TypeError or a
 * RangeError that says what to write.
 */
export function checkSettings(given: unknown, name: keyof typeof settings, count: number): void {
  const form = `new ${name}(${inFront[name] ?? 'source, path'}, options)`;
  checkCount(count, form.split(', ').length, form);
  checkNamedOptions(given, settings[name], form);
}

/**
 * The options of a call. Throws a TypeError or a RangeError that says what to write: for a value
 * that is not an object, for an unknown option, and for an option of another kind. `what` is the
 * subject of the call: `lock /a`.
 */
export function checkCallOptions(given: unknown, options: OptionKinds, what: string): void {
  checkOptions(given, '{ timeoutMs: 5000 }');
  checkNamedOptions(given, options, what);
}

/**
 * Throws a TypeError or a RangeError for invalid WaitOptions. `what` is what the call waits for.
 */
export function checkWaitOptions(given: WaitOptions, what: string): void {
  checkCallOptions(given, callOptions.wait, what);
}

/** Describes a value for an error message. */
export function named(given: unknown): string {
  if (typeof given === 'string') return JSON.stringify(given);
  if (Array.isArray(given)) return 'an array';
  if (isObject(given)) return given instanceof Promise ? 'a promise' : `an object of ${given.constructor?.name ?? 'no class'}`;
  if (typeof given === 'function') return 'a function';
  return String(given);
}

function isClient(given: unknown): given is ClientView {
  return isObject(given) && isObject(given['clock']) && typeof given['watch'] === 'function';
}

function isObject(given: unknown): given is Readonly<Record<string, unknown>> {
  return typeof given === 'object' && given !== null;
}
