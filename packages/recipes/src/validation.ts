/**
 * Checks of arguments. They run when the program makes the call, so that a mistake does not surface
 * later, as a failing request or not at all.
 */
import type { ClientView } from '@tskeeper/client';
import {
  checkArgumentCount,
  checkOps,
  checkOptions as checkNamedOptions,
  checkValue,
  connectOptionTypes,
  createSettingTypes,
  type ValueType,
  valueTypes,
  methodSignatures,
  oneOf,
  optionTypes,
  type OptionTypes,
  pathError,
} from '@tskeeper/client/internal';
import { hasSessionsBrand } from './sessions-brand.ts';
import type { WaitOptions } from './wait-options.ts';

/** The source and the path of a recipe. Throws a TypeError. */
export function checkSourceAndPath(source: unknown, path: string): void {
  checkSource(source);
  checkPath(path);
}

/** Throws a TypeError for a value that is neither a client, nor a view of one, nor Sessions. */
export function checkSource(source: unknown): void {
  if (!isClient(source) && !hasSessionsBrand(source))
    throw new TypeError(`expected a Client from connect(), a view of one, or Sessions, got ${describeValue(source)}; ${connectHint}`);
}

/** Throws a TypeError for a value that is neither a client nor a view of one. */
export function checkClient(zk: ClientView): void {
  if (isClient(zk)) return;
  const remedy = hasSessionsBrand(zk) ? 'pass the client of each session: sessions.each((client) => ...)' : connectHint;
  throw new TypeError(
    `expected a Client from connect(), or a view of one, got ${hasSessionsBrand(zk) ? 'Sessions' : describeValue(zk)}; ${remedy}`,
  );
}

const connectHint = 'await connect() of @tskeeper/client, or Sessions.start(), and pass the result';

/** Throws a TypeError for a value that is not a path. */
export function checkPath(path: string): void {
  const fault = typeof path === 'string' ? pathError(path) : 'must be a string';
  if (fault !== undefined) throw new TypeError(`${describeValue(path)} is not a path of a znode: it ${fault}`);
}

/** Throws a TypeError for a value that is not a string; `what`: `the name of a znode`. */
export function checkString(value: unknown, what: string): void {
  if (typeof value !== 'string') throw new TypeError(`${what} must be a string, not ${describeValue(value)}`);
}

/**
 * A part of a znode's name. Throws a TypeError for any other value; `what`: `the name of a lock`.
 */
export function checkName(value: unknown, what: string): void {
  if (typeof value !== 'string' || value === '' || value.includes('/'))
    throw new TypeError(`${what} must be a non-empty string without "/", not ${describeValue(value)}`);
}

/** Throws a TypeError for a value that cannot be the data of a znode. */
export function checkData(value: unknown): void {
  if (value !== null && typeof value !== 'string' && !(value instanceof Uint8Array))
    throw new TypeError(`data must be a Uint8Array, a string or null, not ${describeValue(value)}`);
}

/** Throws a TypeError for a value that is not a codec. */
export function checkCodec(value: unknown, example: string): void {
  if (!isObject(value) || typeof value['encode'] !== 'function' || typeof value['decode'] !== 'function')
    throw new TypeError(`a codec must be an object with encode and decode, as ${example}, not ${describeValue(value)}`);
}

/** A program's validation of values: a function, or a schema of a library. */
const validatorType: ValueType = {
  expected: 'a function or a schema',
  accepts: (value) => typeof value === 'function' || (isObject(value) && '~standard' in value),
};

/** Throws a TypeError for a value that cannot validate. */
export function checkValidator(value: unknown): void {
  checkValue(value, validatorType, 'a check of values');
}

/**
 * The operations of a `multi` and the options of the call, before a recipe adds operations of its
 * own. Throws a TypeError or a RangeError.
 */
export function checkMulti(ops: unknown, options: unknown): void {
  methodSignatures.multi.check(2, options);
  checkOps(ops, 'multi');
}

/** Throws a TypeError for a value that is not an array; `what`: `items`. */
export function checkArray(value: unknown, what: string): void {
  if (!Array.isArray(value)) throw new TypeError(`${what} must be an array, not ${describeValue(value)}`);
}

/** Throws a TypeError for a value that is not a function; `what`: `work`. */
export function checkFunction(value: unknown, what: string): void {
  if (typeof value !== 'function') throw new TypeError(`${what} must be a function, not ${describeValue(value)}`);
}

/** Throws a TypeError for a value that is not an object; `example`: `{ timeoutMs: 5000 }`. */
export function checkOptions(value: unknown, example: string, what = 'options'): void {
  if (!isObject(value)) throw new TypeError(`${what} must be an object, as ${example}, not ${describeValue(value)}`);
}

const waitTypes = {
  signal: valueTypes.signal,
  timeoutMs: {
    expected: 'a number of milliseconds; leave it out to wait for as long as it takes',
    isNumber: true,
    accepts: (value: unknown) => typeof value === 'number' && !Number.isNaN(value),
  },
};

/**
 * A value that is checked elsewhere. `expected` describes it, for the error about a misspelt
 * option.
 */
export function anyValue(expected: string): ValueType {
  return { expected, accepts: () => true };
}

const milliseconds = anyValue('a number of milliseconds');
const booleanType = valueTypes.boolean;
const contenderTypes = { acl: valueTypes.acl };

/** The options of calls, by purpose. */
export const callOptionTypes = {
  wait: optionTypes(waitTypes),
  acquire: optionTypes(waitTypes, { onRevocation: anyValue('a function') }),
  read: optionTypes({ concurrency: anyValue('a whole number from 1') }),
  start: optionTypes({ signal: valueTypes.signal }),
  // An expired session cannot be resumed.
  startWithServers: optionTypes(Object.fromEntries(Object.entries(connectOptionTypes).filter(([name]) => name !== 'session'))),
  revoke: optionTypes(waitTypes, { deleteAfterMs: milliseconds }),
  preempt: optionTypes({ preempt: anyValue('true, or { deleteAfterMs: 5000 }') }),
  loop: optionTypes({ signal: valueTypes.signal }),
  changes: optionTypes({ signal: valueTypes.signal, maxQueuedChanges: anyValue('a whole number from 1') }),
  join: optionTypes(waitTypes, { data: valueTypes.data, takeOver: booleanType }),
  begin: optionTypes(waitTypes, { data: valueTypes.data }),
  register: optionTypes(waitTypes, { takeOver: booleanType }),
  putPriority: optionTypes(waitTypes, { priority: anyValue('a whole number, lower first') }),
  putDelay: optionTypes(waitTypes, { delayMs: milliseconds, dueAtMs: anyValue('a time in ms since 1970') }),
  putId: optionTypes(waitTypes, { id: anyValue('a string') }),
} as const;

const itemTypes = { acl: valueTypes.acl, items: anyValue('"persistent" or "ephemeral"') };
const queueTypes = { ...itemTypes, maxItems: anyValue('a whole number from 1'), claimsPath: anyValue('a path') };
const decodeTypes = { decode: anyValue('a function') };
const multiZnodeTypes = { ...decodeTypes, data: booleanType, concurrency: anyValue('a whole number from 1') };
const includeType = anyValue('a function');
const participantTypes = { name: anyValue('a string without "/"'), data: valueTypes.data, acl: valueTypes.acl };
const electionTypes = { ...contenderTypes, data: valueTypes.data, prefix: anyValue('a string without "/"') };
const leaseTypes = { ...contenderTypes, durationMs: milliseconds, holder: anyValue('a string') };

/** The options of constructors, by the name of the class. */
export const constructorOptionTypes = {
  AtomicNumber: optionTypes({ format: anyValue('a format such as int32'), lockPath: anyValue('a path'), acl: valueTypes.acl }),
  Barrier: optionTypes({ data: valueTypes.data, ephemeral: booleanType, acl: valueTypes.acl }),
  LeaderLatch: optionTypes(electionTypes),
  ChildrenCache: optionTypes(multiZnodeTypes, { include: includeType }),
  DelayQueue: optionTypes(queueTypes),
  DoubleBarrier: optionTypes(participantTypes),
  Election: optionTypes(electionTypes),
  EventHandle: optionTypes(contenderTypes, { autoReset: booleanType }),
  Group: optionTypes(contenderTypes, { naming: anyValue('"plain", "party" or "shallowParty"') }),
  IdQueue: optionTypes(queueTypes),
  Lease: optionTypes(leaseTypes),
  Lock: optionTypes(contenderTypes, { prefix: anyValue('a string without "/"'), data: valueTypes.data }),
  Migrations: optionTypes(contenderTypes),
  Model: optionTypes(createSettingTypes, {
    codec: anyValue('a codec, as jsonCodec()'),
    parents: oneOf('persistent', 'container', false),
  }),
  MultiLease: optionTypes(leaseTypes, { count: anyValue('a whole number from 1') }),
  NodeCache: optionTypes(decodeTypes),
  PersistentNode: optionTypes({
    mode: anyValue('"ephemeral" or another mode'),
    ttlMs: milliseconds,
    acl: valueTypes.acl,
    protection: booleanType,
    takeOver: booleanType,
  }),
  PriorityLock: optionTypes(contenderTypes, { data: valueTypes.data }),
  PriorityQueue: optionTypes(queueTypes, { naming: anyValue('"page", "kazoo" or "curator"') }),
  Queue: optionTypes(queueTypes, { prefix: anyValue('a string without "/"') }),
  SchemaSet: optionTypes({ unmatched: oneOf('allowed', 'refused') }),
  Semaphore: optionTypes(contenderTypes, { size: anyValue('a whole number from 1'), data: valueTypes.data }),
  ServiceProvider: optionTypes({
    strategy: anyValue('a function, as roundRobin()'),
    include: includeType,
    downAfterErrors: anyValue('a whole number from 1'),
    downForMs: milliseconds,
  }),
  ServiceDiscovery: optionTypes(contenderTypes, { payloadValidator: validatorType }),
  SetPartitioner: optionTypes(contenderTypes, { timeBoundaryMs: milliseconds, plan: valueTypes.function }),
  ShardedQueue: optionTypes(itemTypes, { shards: anyValue('a whole number from 1 to 100') }),
  SharedCount: optionTypes(contenderTypes, { format: anyValue('a format such as int32') }),
  ReadWriteLock: optionTypes(contenderTypes, { prefixes: anyValue("{ read: 'read-', write: 'write-' }"), data: valueTypes.data }),
  SharedValue: optionTypes(contenderTypes),
  SimpleBarrier: optionTypes(participantTypes, waitTypes),
  TreeCache: optionTypes(multiZnodeTypes, { maxDepth: anyValue('a whole number from 1'), include: includeType }),
  TwoPhaseCommit: optionTypes(contenderTypes, { watchedBy: anyValue('"sites" or "coordinator"'), presence: booleanType }),
} as const;

/** The parameters of a constructor before its options, where these are not `source, path`. */
const leadingArguments: Partial<Readonly<Record<keyof typeof constructorOptionTypes, string>>> = {
  DoubleBarrier: 'source, path, size',
  Migrations: 'source, path, list',
  Model: 'template',
  PersistentNode: 'source, path, data',
  SchemaSet: 'schemas',
  ServiceProvider: 'source, name, open',
  SetPartitioner: 'source, path, name, items, work',
  SharedValue: 'source, path, codec',
};

export { checkArgumentCount };

/**
 * What `checkArgumentCount` throws, or undefined. For a method that returns the promise of an
 * earlier call: it returns a rejected promise, and does not throw.
 */
export function argumentCountError(count: number, most: number, form: string): unknown {
  try {
    checkArgumentCount(count, most, form);
    return undefined;
  } catch (error) {
    return error;
  }
}

/**
 * The options of a constructor; `count` is its `arguments.length`. Throws a TypeError or a
 * RangeError that says what to write.
 */
export function checkConstructorOptions(value: unknown, name: keyof typeof constructorOptionTypes, count: number): void {
  const form = `new ${name}(${leadingArguments[name] ?? 'source, path'}, options)`;
  checkArgumentCount(count, form.split(', ').length, form);
  checkNamedOptions(value, constructorOptionTypes[name], form);
}

/**
 * The options of a call. Throws a TypeError or a RangeError that says what to write: for a value
 * that is not an object, for an unknown option, and for an option of another kind. `what` is the
 * subject of the call: `lock /a`.
 */
export function checkCallOptions(value: unknown, options: OptionTypes, what: string): void {
  checkOptions(value, '{ timeoutMs: 5000 }');
  checkNamedOptions(value, options, what);
}

/**
 * Throws a TypeError or a RangeError for invalid WaitOptions. `what` is what the call waits for.
 */
export function checkWaitOptions(value: WaitOptions, what: string): void {
  checkCallOptions(value, callOptionTypes.wait, what);
}

/** Describes a value for an error message. */
export function describeValue(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value);
  if (Array.isArray(value)) return 'an array';
  if (isObject(value)) return value instanceof Promise ? 'a promise' : `an object of ${value.constructor?.name ?? 'no class'}`;
  if (typeof value === 'function') return 'a function';
  return String(value);
}

function isClient(value: unknown): value is ClientView {
  return isObject(value) && isObject(value['clock']) && typeof value['watch'] === 'function';
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
