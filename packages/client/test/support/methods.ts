/** Every method of a client that can fail, for tests that try each. */
import { type CallOptions, type Client, ClientView, op } from '../../src/index.ts';

/** Calls each on a path, if it has one. */
export const methods: Readonly<Record<string, (zk: Client, path: string, options?: CallOptions) => Promise<unknown>>> = {
  addAuth: (zk, _, options) => zk.addAuth('digest', 'a:b', options),
  addWatch: (zk, path, options) => zk.addWatch(path, { ...options, watch: true }),
  children: (zk, path, options) => zk.children(path, options).next(),
  create: (zk, path, options) => zk.create(path, null, options),
  createJson: (zk, path, options) => zk.createJson(path, 1, options),
  delete: (zk, path, options) => zk.delete(path, options),
  deleteRecursive: (zk, path, options) => zk.deleteRecursive(path, options),
  ensurePath: (zk, path, options) => zk.ensurePath(path, options),
  exists: (zk, path, options) => zk.exists(path, options),
  getACL: (zk, path, options) => zk.getACL(path, options),
  getAllChildrenNumber: (zk, path, options) => zk.getAllChildrenNumber(path, options),
  getChildren: (zk, path, options) => zk.getChildren(path, options),
  getChildrenWithData: (zk, path, options) => zk.getChildrenWithData(path, options),
  getConfig: (zk, _, options) => zk.getConfig(options),
  getData: (zk, path, options) => zk.getData(path, options),
  getEphemerals: (zk, path, options) => zk.getEphemerals(path, options),
  getJson: (zk, path, options) => zk.getJson(path, options),
  getLeader: (zk, _, options) => zk.getLeader(options),
  getText: (zk, path, options) => zk.getText(path, options),
  multi: (zk, path, options) => zk.multi([op.delete(path)], options),
  multiRead: (zk, path, options) => zk.multiRead([op.getData(path)], options),
  reconfig: (zk, _, options) => zk.reconfig({ leavingServers: '2', ...options }),
  removeWatches: (zk, path, options) => zk.removeWatches(path, options),
  setACL: (zk, path, options) => zk.setACL(path, [], options),
  setData: (zk, path, options) => zk.setData(path, 'x', options),
  setJson: (zk, path, options) => zk.setJson(path, 1, options),
  shedConnections: (zk, _, options) => zk.shedConnections(0, options),
  sync: (zk, path, options) => zk.sync(path, options),
  transferLeader: (zk, _, options) => zk.transferLeader(options),
  update: (zk, path, options) => zk.update(path, () => 'x', options),
  walk: (zk, path, options) => zk.walk(path, options).next(),
  watch: (zk, path, options) => zk.watch(path, { signal: options?.signal }).next(),
  whoAmI: (zk, _, options) => zk.whoAmI(options),
};

/** The methods of ClientView, except those that send no request. */
export function methodsOfClient(): string[] {
  const local = ['constructor', 'chroot', 'on'];
  return Object.entries(Object.getOwnPropertyDescriptors(ClientView.prototype))
    .filter(([name, { value }]) => typeof value === 'function' && !local.includes(name))
    .map(([name]) => name)
    .sort();
}
