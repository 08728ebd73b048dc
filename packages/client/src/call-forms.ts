/**
 * The forms and options of the client's calls, for the validation of their arguments. A call that
 * returns a promise rejects with a mistake; other calls throw it.
 */
import { CallForm } from './call-form.ts';
import { checkValue, described, type Kind, kinds, nearest, nested, oneOf, optionKinds, orOneOf, secret } from './arguments.ts';
import { createSettings, optionalData } from './operations/op-forms.ts';
import type { KeeperState } from './watched-event.ts';
import { fullPolicy, type RetryPolicy } from './calls/retry-policy.ts';

export const retryKind: Kind = {
  wanted: 'true, false or a policy',
  fits: (given) => typeof given === 'boolean' || kinds.object.fits(given),
  inside: (given) => void fullPolicy(given as RetryPolicy | boolean),
};
const call = { signal: kinds.signal, timeoutMs: kinds.milliseconds, retry: retryKind };
const versioned = { version: kinds.version, ...call };
const plainRead = { linearizable: kinds.boolean, ...call };
const read = { watch: kinds.watch, ...plainRead };
const create = {
  ...createSettings,
  parents: oneOf(true, false, 'persistent', 'container'),
  protection: { wanted: 'true, false or a guid', fits: (given) => typeof given === 'boolean' || typeof given === 'string' } satisfies Kind,
  idempotent: kinds.boolean,
  ...call,
};
const setData = { ...versioned, idempotent: kinds.boolean };
const deletion = { ...versioned, idempotent: kinds.boolean, guaranteed: kinds.boolean };
const serverLines: Kind = { wanted: 'a string or an array', fits: (given) => typeof given === 'string' || Array.isArray(given) };

/** The options of calls, for packages whose calls pass them on. */
export const callKinds = { call, plainRead, create, setData, deletion } as const;

/** The methods of a client. */
export const methodForms = {
  addAuth: new CallForm('addAuth(scheme, auth, options)', optionKinds(call), kinds.string, secret(kinds.bytes)),
  addWatch: new CallForm(
    'addWatch(path, options)',
    optionKinds({ watch: kinds.watch, mode: oneOf('persistent', 'persistentRecursive'), ...call }),
  ),
  chroot: new CallForm('chroot(path)'),
  close: new CallForm('close()'),
  connected: new CallForm('connected()'),
  create: new CallForm('create(path, data, options)', optionKinds(create), optionalData),
  createJson: new CallForm('createJson(path, value, options)', optionKinds(create)),
  delete: new CallForm('delete(path, options)', optionKinds(deletion)),
  deleteRecursive: new CallForm('deleteRecursive(path, options)', optionKinds(call)),
  ensurePath: new CallForm('ensurePath(path, options)', optionKinds({ mode: oneOf('persistent', 'container'), acl: kinds.acl, ...call })),
  exists: new CallForm('exists(path, options)', optionKinds(read)),
  getACL: new CallForm('getACL(path, options)', optionKinds(plainRead)),
  getAllChildrenNumber: new CallForm('getAllChildrenNumber(path, options)', optionKinds(plainRead)),
  getChildren: new CallForm('getChildren(path, options)', optionKinds(read)),
  getConfig: new CallForm('getConfig(options)', optionKinds(read)),
  getData: new CallForm('getData(path, options)', optionKinds(read)),
  getEphemerals: new CallForm('getEphemerals(prefix, options)', optionKinds(plainRead), kinds.string),
  getJson: new CallForm('getJson(path, options)', optionKinds(read)),
  getText: new CallForm('getText(path, options)', optionKinds(read)),
  multi: new CallForm('multi(ops, options)', optionKinds(call)),
  multiRead: new CallForm('multiRead(ops, options)', optionKinds(plainRead)),
  on: new CallForm('on(event, listener)'),
  reconfig: new CallForm(
    'reconfig(options)',
    optionKinds({
      joiningServers: serverLines,
      leavingServers: serverLines,
      newMembers: serverLines,
      fromConfig: { wanted: 'a bigint', fits: (given) => typeof given === 'bigint' },
      ...call,
    }),
  ),
  removeWatches: new CallForm(
    'removeWatches(path, options)',
    optionKinds({
      type: oneOf('children', 'data', 'any', 'persistent', 'persistentRecursive'),
      watch: kinds.watch,
      local: kinds.boolean,
      ...call,
    }),
  ),
  setACL: new CallForm('setACL(path, acl, options)', optionKinds(versioned), kinds.acl),
  setData: new CallForm('setData(path, data, options)', optionKinds(setData), kinds.data),
  setJson: new CallForm('setJson(path, value, options)', optionKinds(setData)),
  sync: new CallForm('sync(path, options)', optionKinds(call)),
  update: new CallForm(
    'update(path, updater, options)',
    optionKinds({ create: orOneOf(nested(optionKinds(createSettings)), true, false), idempotent: kinds.boolean, ...call }),
    kinds.function,
  ),
  updateServerList: new CallForm('updateServerList(servers)'),
  walk: new CallForm('walk(path, options)', optionKinds({ concurrency: kinds.count, data: kinds.boolean, ...call })),
  watch: new CallForm(
    'watch(path, options)',
    optionKinds({ recursive: kinds.boolean, signal: kinds.signal, maxQueuedEvents: kinds.count }),
  ),
  whoAmI: new CallForm('whoAmI(options)', optionKinds(call)),
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

function unknownEvent(name: unknown, names: readonly string[]): TypeError {
  if (typeof name !== 'string') return new TypeError(`on: the event must be ${oneOf(...names).wanted}, not ${described(name)}`);
  const plain = name.toLowerCase().replaceAll(/[_ -]/g, '');
  const state = stateNames.get(plain);
  const near = nearest(plain, names);
  if (state !== undefined)
    return new TypeError(
      `on: there is no event "${name}"; it is a state: write on('state', ({ state }) => ...), where state is '${state}'`,
    );
  if (near !== undefined) return new TypeError(`on: there is no event ${described(name)}; write on('${near}', listener)`);
  return new TypeError(`on: the event must be ${oneOf(...names).wanted}, not ${described(name)}`);
}

/**
 * `count` is `arguments.length`. Throws a TypeError for an unknown event, or a listener that is not
 * a function.
 */
export function checkListening(count: number, name: unknown, listener: unknown, names: readonly string[]): void {
  methodForms.on.check(count, noOptions);
  if (!names.includes(name as string)) throw unknownEvent(name, names);
  checkValue(listener, kinds.function, 'on: the listener');
}
