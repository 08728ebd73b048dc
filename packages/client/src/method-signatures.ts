/**
 * The forms and options of the client's calls, for the validation of their arguments. A call that
 * returns a promise rejects with a mistake; other calls throw it.
 */
import { CallSignature } from './call-signature.ts';
import {
  checkValue,
  describeValue,
  type ValueType,
  valueTypes,
  closestName,
  objectOf,
  oneOf,
  optionTypes,
  orOneOf,
  secret,
} from './arguments.ts';
import { createSettingTypes, optionalDataType } from './operations/op-signatures.ts';
import type { KeeperState } from './watched-event.ts';
import { resolveRetryPolicy, type RetryPolicy } from './calls/retry-policy.ts';

export const retryType: ValueType = {
  expected: 'true, false or a policy',
  accepts: (given) => typeof given === 'boolean' || valueTypes.object.accepts(given),
  checkContents: (given) => void resolveRetryPolicy(given as RetryPolicy | boolean),
};
const call = { signal: valueTypes.signal, timeoutMs: valueTypes.milliseconds, retry: retryType };
const versioned = { version: valueTypes.version, ...call };
const unwatchedRead = { linearizable: valueTypes.boolean, ...call };
const read = { watch: valueTypes.watch, ...unwatchedRead };
const create = {
  ...createSettingTypes,
  parents: oneOf(true, false, 'persistent', 'container'),
  protection: {
    expected: 'true, false or a guid',
    accepts: (given) => typeof given === 'boolean' || typeof given === 'string',
  } satisfies ValueType,
  idempotent: valueTypes.boolean,
  ...call,
};
const setData = { ...versioned, idempotent: valueTypes.boolean };
const deleteNode = { ...versioned, idempotent: valueTypes.boolean, guaranteed: valueTypes.boolean };
const serverSpecs: ValueType = { expected: 'a string or an array', accepts: (given) => typeof given === 'string' || Array.isArray(given) };

const share: ValueType = {
  expected: 'a number from 0 to 1',
  accepts: (given) => typeof given === 'number' && given >= 0 && given <= 1,
};

/** The options of calls, for packages whose calls pass them on. */
export const callOptionTypes = { call, plainRead: unwatchedRead, create, setData, deletion: deleteNode } as const;

/** The methods of a client. */
export const methodSignatures = {
  addAuth: new CallSignature('addAuth(scheme, auth, options)', optionTypes(call), valueTypes.string, secret(valueTypes.bytes)),
  addWatch: new CallSignature(
    'addWatch(path, options)',
    optionTypes({ watch: valueTypes.watch, mode: oneOf('persistent', 'persistentRecursive'), ...call }),
  ),
  children: new CallSignature('children(path, options)', optionTypes({ pageSize: valueTypes.count, data: valueTypes.boolean, ...read })),
  chroot: new CallSignature('chroot(path)'),
  close: new CallSignature('close()'),
  ready: new CallSignature('ready()'),
  create: new CallSignature('create(path, data, options)', optionTypes(create), optionalDataType),
  createJson: new CallSignature('createJson(path, value, options)', optionTypes(create)),
  delete: new CallSignature('delete(path, options)', optionTypes(deleteNode)),
  deleteRecursive: new CallSignature('deleteRecursive(path, options)', optionTypes(call)),
  ensurePath: new CallSignature(
    'ensurePath(path, options)',
    optionTypes({ mode: oneOf('persistent', 'container'), acl: valueTypes.acl, ...call }),
  ),
  exists: new CallSignature('exists(path, options)', optionTypes(read)),
  getACL: new CallSignature('getACL(path, options)', optionTypes(unwatchedRead)),
  getAllChildrenNumber: new CallSignature('getAllChildrenNumber(path, options)', optionTypes(unwatchedRead)),
  getChildren: new CallSignature('getChildren(path, options)', optionTypes(read)),
  getChildrenWithData: new CallSignature('getChildrenWithData(path, options)', optionTypes({ pageSize: valueTypes.count, ...read })),
  getConfig: new CallSignature('getConfig(options)', optionTypes(read)),
  getData: new CallSignature('getData(path, options)', optionTypes(read)),
  getEphemerals: new CallSignature('getEphemerals(prefix, options)', optionTypes(unwatchedRead), valueTypes.string),
  getJson: new CallSignature('getJson(path, options)', optionTypes(read)),
  getLeader: new CallSignature('getLeader(options)', optionTypes(call)),
  getText: new CallSignature('getText(path, options)', optionTypes(read)),
  multi: new CallSignature('multi(ops, options)', optionTypes(call)),
  multiRead: new CallSignature('multiRead(ops, options)', optionTypes(unwatchedRead)),
  on: new CallSignature('on(event, listener)'),
  reconfig: new CallSignature(
    'reconfig(options)',
    optionTypes({
      joiningServers: serverSpecs,
      leavingServers: serverSpecs,
      newMembers: serverSpecs,
      fromConfig: { expected: 'a bigint', accepts: (given) => typeof given === 'bigint' },
      ...call,
    }),
  ),
  removeWatches: new CallSignature(
    'removeWatches(path, options)',
    optionTypes({
      type: oneOf('children', 'data', 'any', 'persistent', 'persistentRecursive'),
      watch: valueTypes.watch,
      local: valueTypes.boolean,
      ...call,
    }),
  ),
  setACL: new CallSignature('setACL(path, acl, options)', optionTypes(versioned), valueTypes.acl),
  setData: new CallSignature('setData(path, data, options)', optionTypes(setData), valueTypes.data),
  setJson: new CallSignature('setJson(path, value, options)', optionTypes(setData)),
  shedConnections: new CallSignature('shedConnections(share, options)', optionTypes(call), share),
  sync: new CallSignature('sync(path, options)', optionTypes(call)),
  transferLeader: new CallSignature('transferLeader(options)', optionTypes({ to: valueTypes.count, ...call })),
  update: new CallSignature(
    'update(path, updater, options)',
    optionTypes({ create: orOneOf(objectOf(optionTypes(createSettingTypes)), true, false), idempotent: valueTypes.boolean, ...call }),
    valueTypes.function,
  ),
  updateServerList: new CallSignature('updateServerList(servers)'),
  walk: new CallSignature('walk(path, options)', optionTypes({ concurrency: valueTypes.count, data: valueTypes.boolean, ...call })),
  watch: new CallSignature(
    'watch(path, options)',
    optionTypes({ recursive: valueTypes.boolean, signal: valueTypes.signal, maxQueuedEvents: valueTypes.count }),
  ),
  whoAmI: new CallSignature('whoAmI(options)', optionTypes(call)),
} as const;

const noOptions = {};

/**
 * Names of events of other emitters, in lower case, and the states of `on('state')` that they mean.
 */
const stateNames: ReadonlyMap<string, KeeperState> = new Map([
  ['authfailed', 'AuthFailed'],
  ['close', 'Closed'],
  ['closed', 'Closed'],
  ['connect', 'SyncConnected'],
  ['connected', 'SyncConnected'],
  ['connectedreadonly', 'ConnectedReadOnly'],
  ['connectionlost', 'Disconnected'],
  ['disconnect', 'Disconnected'],
  ['disconnected', 'Disconnected'],
  ['end', 'Closed'],
  ['expired', 'Expired'],
  ['lost', 'Expired'],
  ['reconnected', 'SyncConnected'],
  ['sessionexpired', 'Expired'],
  ['suspended', 'Disconnected'],
  ['syncconnected', 'SyncConnected'],
]);

function unknownEventError(name: unknown, names: readonly string[]): TypeError {
  if (typeof name !== 'string') return new TypeError(`on: the event must be ${oneOf(...names).expected}, not ${describeValue(name)}`);
  const plain = name.toLowerCase().replaceAll(/[_ -]/g, '');
  const state = stateNames.get(plain);
  const near = closestName(plain, names);
  if (state !== undefined)
    return new TypeError(
      `on: there is no event "${name}"; it is a state: write on('state', ({ state }) => ...), where state is '${state}'`,
    );
  if (near !== undefined) return new TypeError(`on: there is no event ${describeValue(name)}; write on('${near}', listener)`);
  return new TypeError(`on: the event must be ${oneOf(...names).expected}, not ${describeValue(name)}`);
}

/**
 * `count` is `arguments.length`. Throws a TypeError for an unknown event, or a listener that is not
 * a function.
 */
export function checkListener(count: number, name: unknown, listener: unknown, names: readonly string[]): void {
  methodSignatures.on.check(count, noOptions);
  if (!names.includes(name as string)) throw unknownEventError(name, names);
  checkValue(listener, valueTypes.function, 'on: the listener');
}
