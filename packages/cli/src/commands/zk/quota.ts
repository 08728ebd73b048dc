import { type Client, KeeperError } from '@tskeeper/client';
import { exitCodes } from '../../exit-codes.ts';
import {
  argumentsOf,
  type CommandCall,
  validPath,
  CommandFailed,
  usageError,
  noNodeError,
  numberOption,
  pathOf,
  type ZkCommand,
} from '../../zk/command.ts';
import {
  quotaLimitName,
  quotaLimitPath,
  parseQuota,
  quotaPath,
  quotaRoot,
  formatQuota,
  quotaView,
  type QuotaField,
  type QuotaValues,
  quotaStatPath,
} from '../../zk/quota-text.ts';
import { childPath, walkSubtree } from '../../zk/subtree.ts';

/**
 * Quotas are ordinary znodes below /zookeeper/quota. These commands create, change and delete them
 * as zkCli does; servers enforce them.
 */

const fieldsByFlag = { n: 'count', b: 'bytes', N: 'countHardLimit', B: 'byteHardLimit' } as const satisfies Record<string, QuotaField>;
const noUsage: QuotaValues = new Map([
  ['count', 0],
  ['bytes', 0],
]);
const quotaFlags = Object.keys(fieldsByFlag) as (keyof typeof fieldsByFlag)[];

export const setQuota: ZkCommand = {
  name: 'setquota',
  usage: '-n|-b|-N|-B val path',
  summary: 'limit the number of znodes or bytes of a subtree: -n and -b warn, -N and -B reject',
  options: [
    { name: 'n', value: 'val', description: 'num soft quota' },
    { name: 'b', value: 'val', description: 'bytes soft quota' },
    { name: 'N', value: 'val', description: 'num hard quota' },
    { name: 'B', value: 'val', description: 'bytes hard quota' },
  ],
  exclusive: 'exactly one',
  argumentsMax: 1,
  jsonShape: '{"path": "/a", "limits": {"count": 5, "bytes": -1, "countHardLimit": -1, "byteHardLimit": -1}}',
  async run(call) {
    const [path = ''] = argumentsOf(call, 1);
    if (path.startsWith(quotaRoot)) throw new CommandFailed(`cannot set a quota under the path: ${quotaRoot}`, exitCodes.refused);
    pathOf(call);
    const [flag] = quotaFlags.filter((one) => call.line.has(one));
    if (flag === undefined) throw usageError(this);
    const value = numberOption(call, flag, -1);
    if ((flag === 'n' || flag === 'N') && value <= 0) throw new CommandFailed('the num quota must be greater than zero', exitCodes.refused);
    if (value < 0) throw new CommandFailed('the bytes quota must be greater than or equal to zero', exitCodes.refused);
    const limits = await setLimit(await call.client(), path, fieldsByFlag[flag], value, call);
    await call.answer(undefined, { path, limits: quotaView(limits) });
  },
};

async function setLimit(client: Client, path: string, field: QuotaField, value: number, call: CommandCall): Promise<QuotaValues> {
  const { options } = call;
  if ((await client.exists(path, options)) === null) throw noNodeError(path, `${path} does not exist.`);
  validPath(quotaPath(path));
  if ((await client.exists(quotaRoot, options)) === null) {
    throw new CommandFailed(`${quotaRoot} does not exist; connect without a chroot to set quotas`, exitCodes.refused);
  }
  await refuseNested(client, path, call);
  let at: string = quotaRoot;
  for (const name of path.split('/').slice(1)) {
    at = childPath(at, name);
    await createIfMissing(client, at, null, call);
  }
  const known = await client.exists(quotaLimitPath(path), options);
  if (known === null) {
    const limits = new Map<string, number>([
      ['count', -1],
      ['bytes', -1],
      ['countHardLimit', -1],
      ['byteHardLimit', -1],
      [field, value],
    ]);
    await client.create(quotaLimitPath(path), formatQuota(limits), options);
    await createIfMissing(client, quotaStatPath(path), formatQuota(noUsage), call);
    await warnIfExceeded(client, path, limits, call);
    return limits;
  }
  const limits = parseQuota((await client.getData(quotaLimitPath(path), options)).data);
  limits.set(field, value);
  await warnIfExceeded(client, path, limits, call);
  await client.setData(quotaLimitPath(path), formatQuota(limits), options);
  return limits;
}

async function createIfMissing(client: Client, path: string, data: string | null, { options }: CommandCall): Promise<void> {
  try {
    await client.create(path, data, options);
  } catch (error) {
    if (!KeeperError.is(error, 'NodeExists')) throw error;
  }
}

/**
 * A quota may not be inside another: on its way up from a znode a server looks for one quota only.
 */
async function refuseNested(client: Client, path: string, { options }: CommandCall): Promise<void> {
  const nested = (complaint: string) => new CommandFailed(complaint, exitCodes.refused);
  try {
    for await (const one of walkSubtree(client, quotaPath(path), options)) {
      const owner = one.slice(quotaRoot.length, -quotaLimitName.length - 1);
      if (one.endsWith(`/${quotaLimitName}`) && owner !== path) {
        throw nested(`${path} has a child ${owner} which has a quota`);
      }
    }
  } catch (error) {
    if (!KeeperError.is(error, 'NoNode')) throw error;
  }
  const names = path.split('/').slice(1, -1);
  for (let depth = 1; depth <= names.length; depth++) {
    const parent = `/${names.slice(0, depth).join('/')}`;
    if ((await client.exists(quotaLimitPath(parent), options)) !== null) {
      throw nested(`${path} has a parent ${parent} which has a quota`);
    }
  }
}

async function warnIfExceeded(client: Client, path: string, limits: QuotaValues, call: CommandCall): Promise<void> {
  const used = parseQuota((await client.getData(quotaStatPath(path), call.options)).data);
  const exceeded = (soft: QuotaField, hard: QuotaField) => {
    const now = used.get(soft) ?? -1;
    return [soft, hard].some((field) => (limits.get(field) ?? -1) > -1 && limits.get(field)! < now);
  };
  if (exceeded('count', 'countHardLimit')) {
    call.note(`[Warning]: the count quota you create is less than the existing count:${used.get('count')}`);
  }
  if (exceeded('bytes', 'byteHardLimit')) {
    call.note(`[Warning]: the bytes quota you create is less than the existing bytes:${used.get('bytes')}`);
  }
}

export const listQuota: ZkCommand = {
  name: 'listquota',
  usage: 'path',
  summary: 'print the limits and the usage of a quota',
  options: [],
  argumentsMax: 1,
  jsonShape: '{"path": "/a", "limits": {"count": 5, ...}, "used": {"count": 1, "bytes": 3}}; both null without a quota',
  async run(call) {
    const path = pathOf(call);
    validPath(quotaLimitPath(path));
    const client = await call.client();
    call.note(`absolute path is ${quotaLimitPath(path)}`);
    let limits: QuotaValues;
    let used: QuotaValues;
    try {
      limits = parseQuota((await client.getData(quotaLimitPath(path), call.options)).data);
      used = parseQuota((await client.getData(quotaStatPath(path), call.options)).data);
    } catch (error) {
      if (!KeeperError.is(error, 'NoNode')) throw error;
      call.note(`quota for ${path} does not exist.`);
      await call.answer(undefined, { path, limits: null, used: null });
      return;
    }
    await call.answer(`Output quota for ${path} ${formatQuota(limits)}\nOutput stat for ${path} ${formatQuota(used)}`, {
      path,
      limits: quotaView(limits),
      used: quotaView(used),
    });
  },
};

export const delQuota: ZkCommand = {
  name: 'delquota',
  usage: '[-n|-b|-N|-B] path',
  summary: 'delete one limit of a quota, or the whole quota',
  options: [
    { name: 'n', description: 'num soft quota' },
    { name: 'b', description: 'bytes soft quota' },
    { name: 'N', description: 'num hard quota' },
    { name: 'B', description: 'bytes hard quota' },
  ],
  exclusive: 'at most one',
  argumentsMax: 1,
  jsonShape: '{"path": "/a", "limits": {...}}, the remaining limits; null if no quota remains',
  async run(call) {
    const path = pathOf(call);
    validPath(quotaLimitPath(path));
    const client = await call.client();
    if ((await client.exists(quotaLimitPath(path), call.options)) === null) {
      call.note(`Quota does not exist for ${path}`);
      await call.answer(undefined, { path, limits: null });
      return;
    }
    const flag = quotaFlags.find((one) => call.line.has(one));
    if (flag !== undefined) {
      const limits = parseQuota((await client.getData(quotaLimitPath(path), call.options)).data);
      limits.set(fieldsByFlag[flag], -1);
      await client.setData(quotaLimitPath(path), formatQuota(limits), call.options);
      await call.answer(undefined, { path, limits: quotaView(limits) });
      return;
    }
    await removeQuota(client, path, call);
    await call.answer(undefined, { path, limits: null });
  },
};

/** Deletes the quota, and then each parent that has no other children. */
async function removeQuota(client: Client, path: string, { options }: CommandCall): Promise<void> {
  let parent = quotaPath(path);
  for (const name of (await client.getChildren(parent, options)).children) await client.delete(childPath(parent, name), options);
  while (parent !== quotaRoot && (await client.getChildren(parent, options)).children.length === 0) {
    await client.delete(parent, options);
    parent = parent.slice(0, parent.lastIndexOf('/'));
  }
}
