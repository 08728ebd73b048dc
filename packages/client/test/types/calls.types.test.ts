/**
 * The calls of a client: what does not compile, and the types of their results. The compiler checks
 * the assertions (`npm run check`); nothing of this runs.
 */
import { expectTypeOf, it } from 'vitest';
import {
  type Acl,
  type Client,
  type ClientInfo,
  ClientView,
  type CreateMode,
  type CreateResult,
  type Data,
  type DeleteRecursiveResult,
  type GetAclResult,
  type GetChildrenResult,
  type GetDataResult,
  openAcl,
  Perms,
  type Stat,
  type ListedChild,
  type WalkedZnode,
} from '../../src/index.ts';

declare const zk: Client;
declare const view: ClientView;
declare const anyMode: CreateMode;
const bytes = new Uint8Array(1);

export function creating(): void {
  expectTypeOf(zk.create('/a')).resolves.toEqualTypeOf<CreateResult>();
  expectTypeOf(zk.create('/a', 'x', { mode: 'ephemeralSequential', acl: openAcl })).resolves.toEqualTypeOf<CreateResult>();
  void zk.create('/a', bytes, { mode: 'persistentWithTtl', ttlMs: 1000 });
  void zk.create('/a', null, { parents: 'container', protection: true, idempotent: false, timeoutMs: 5, retry: { maxAttempts: 2 } });
  // @ts-expect-error a create needs a path
  void zk.create();
  // @ts-expect-error a path is a string
  void zk.create(bytes);
  // @ts-expect-error data are bytes, text or null
  void zk.create('/a', 5);
  // @ts-expect-error nor an object: JSON has its own calls
  void zk.create('/a', { n: 1 });
  // @ts-expect-error there is no such mode
  void zk.create('/a', null, { mode: 'PERSISTENT' });
  // @ts-expect-error modes have names, not numbers
  void zk.create('/a', null, { mode: 1 });
  // @ts-expect-error a TTL needs a mode with one
  void zk.create('/a', null, { ttlMs: 1000 });
  // @ts-expect-error an ephemeral has no TTL
  void zk.create('/a', null, { mode: 'ephemeral', ttlMs: 1000 });
  // @ts-expect-error a mode with a TTL requires one
  void zk.create('/a', null, { mode: 'persistentSequentialWithTtl' });
  // @ts-expect-error a TTL is a number of ms
  void zk.create('/a', null, { mode: 'persistentWithTtl', ttlMs: 1000n });
  // @ts-expect-error a mode known only at run time may be one with a TTL
  void zk.create('/a', null, { mode: anyMode });
  // @ts-expect-error there is no such mode of parents
  void zk.create('/a', null, { parents: 'ephemeral' });
  // @ts-expect-error there is no such option
  void zk.create('/a', null, { makepath: true });
  // @ts-expect-error an ACL is a list
  void zk.create('/a', null, { acl: openAcl[0] });
  // @ts-expect-error an entry has permissions and an identity
  void zk.create('/a', null, { acl: [{ perms: Perms.all }] });
  // @ts-expect-error permissions are bits
  void zk.create('/a', null, { acl: [{ perms: 'rw', id: { scheme: 'world', id: 'anyone' } }] });
  expectTypeOf(zk.ensurePath('/a', { mode: 'container' })).resolves.toEqualTypeOf<void>();
  // @ts-expect-error a parent cannot be an ephemeral
  void zk.ensurePath('/a', { mode: 'ephemeral' });
}

export function reading(): void {
  expectTypeOf(zk.exists('/a')).resolves.toEqualTypeOf<Stat | null>();
  expectTypeOf(zk.getData('/a', { watch: true, linearizable: true })).resolves.toEqualTypeOf<GetDataResult>();
  expectTypeOf<GetDataResult['data']>().toEqualTypeOf<Uint8Array | null>();
  expectTypeOf(zk.getChildren('/a', { watch: ({ state }) => void state })).resolves.toEqualTypeOf<GetChildrenResult>();
  expectTypeOf<GetChildrenResult['children']>().toEqualTypeOf<readonly string[]>();
  expectTypeOf(zk.getACL('/a')).resolves.toEqualTypeOf<GetAclResult>();
  expectTypeOf(zk.getAllChildrenNumber('/a')).resolves.toEqualTypeOf<number>();
  expectTypeOf(zk.getEphemerals()).resolves.toEqualTypeOf<readonly string[]>();
  expectTypeOf(zk.getConfig()).resolves.toEqualTypeOf<GetDataResult>();
  expectTypeOf(zk.whoAmI()).resolves.toEqualTypeOf<readonly ClientInfo[]>();
  expectTypeOf(zk.sync()).resolves.toEqualTypeOf<void>();
  expectTypeOf(zk.children('/a', { data: true, pageSize: 5 })).toEqualTypeOf<AsyncGenerator<ListedChild, void, undefined>>();
  expectTypeOf(zk.getChildrenWithData('/a')).resolves.toEqualTypeOf<readonly ListedChild[]>();
  expectTypeOf(zk.walk('/a', { data: true })).toEqualTypeOf<AsyncGenerator<WalkedZnode, void, undefined>>();
  // @ts-expect-error a watch is a listener or true: omit it for none
  void zk.getData('/a', { watch: false });
  // @ts-expect-error a read of the ACL sets no watch
  void zk.getACL('/a', { watch: true });
  // @ts-expect-error nor does one of all children
  void zk.getAllChildrenNumber('/a', { watch: true });
  // @ts-expect-error a sync is linearizable by itself
  void zk.sync('/', { linearizable: true });
  // @ts-expect-error time-outs are numbers
  void zk.getData('/a', { timeoutMs: '5s' });
  // @ts-expect-error and their unit is in their name
  void zk.getData('/a', { timeout: 5000 });
  // @ts-expect-error the option is the signal, not the controller
  void zk.getData('/a', { signal: new AbortController() });
  // @ts-expect-error a policy has no such part
  void zk.getData('/a', { retry: { retries: 3 } });
  // @ts-expect-error a walk requires `for await`
  for (const _ of zk.walk('/a')) break;
}

/** Results may be absent, and are read-only. */
export async function results(): Promise<void> {
  const stat = await zk.exists('/a');
  // @ts-expect-error there may be none
  void stat.version;
  const { data, stat: known } = await zk.getData('/a');
  // @ts-expect-error data may be null
  void data.length;
  // @ts-expect-error a Stat is read-only
  known.version = 1;
  const { children } = await zk.getChildren('/a');
  // @ts-expect-error so are the children
  children.push('b');
  expectTypeOf(known.mzxid).toEqualTypeOf<bigint>();
  expectTypeOf(known.ephemeralOwner).toEqualTypeOf<bigint>();
  expectTypeOf(known.version).toEqualTypeOf<number>();
  expectTypeOf(known.mtime).toEqualTypeOf<number>();
  // @ts-expect-error a zxid has 64 bits
  void (known.mzxid + 1);
  // @ts-expect-error and a version has 32
  void (known.version + 1n);
}

export function writing(): void {
  expectTypeOf(zk.setData('/a', 'x', { version: 3 })).resolves.toEqualTypeOf<Stat>();
  expectTypeOf(zk.setACL('/a', openAcl, { version: 3 })).resolves.toEqualTypeOf<Stat>();
  expectTypeOf(zk.delete('/a', { version: 3, guaranteed: true })).resolves.toEqualTypeOf<void>();
  expectTypeOf(zk.deleteRecursive('/a')).resolves.toEqualTypeOf<DeleteRecursiveResult>();
  expectTypeOf(zk.update('/a', (old, stat) => (stat === undefined ? 'x' : old))).resolves.toEqualTypeOf<GetDataResult | undefined>();
  void zk.update('/a', () => Promise.resolve(undefined), { create: { mode: 'ephemeral' } });
  // @ts-expect-error data are required; null means that there are none
  void zk.setData('/a');
  // @ts-expect-error a version is a number
  void zk.setData('/a', 'x', { version: 3n });
  // @ts-expect-error nor a Stat
  void zk.setData('/a', 'x', { version: {} as Stat });
  // @ts-expect-error options are named
  void zk.setData('/a', 'x', 3);
  // @ts-expect-error the version goes into options
  void zk.delete('/a', 3);
  // @ts-expect-error a write is not a read
  void zk.setData('/a', 'x', { linearizable: true });
  // @ts-expect-error there is no option recursive
  void zk.delete('/a', { recursive: true });
  // @ts-expect-error an updater gives data, not a number
  void zk.update('/a', () => 5);
  // @ts-expect-error it gets data and Stat
  void zk.update('/a', (old: string) => old);
  // @ts-expect-error the ACL comes first
  void zk.setACL('/a', { version: 3 });
  expectTypeOf<Data>().toEqualTypeOf<Uint8Array | string | null>();
  expectTypeOf(openAcl).toEqualTypeOf<readonly Acl[]>();
}

export function reconfiguring(): void {
  expectTypeOf(
    zk.reconfig({ joiningServers: 'server.4=d:2888:3888;2181', leavingServers: [1, '2'] }),
  ).resolves.toEqualTypeOf<GetDataResult>();
  void zk.reconfig({ newMembers: ['server.1=a:1:2;3'], fromConfig: 0x100000000n });
  // @ts-expect-error either joining and leaving servers, or all members
  void zk.reconfig({ newMembers: 'server.1=a:1:2;3', leavingServers: '2' });
  // @ts-expect-error the version of a configuration is a zxid
  void zk.reconfig({ leavingServers: '2', fromConfig: 5 });
  // @ts-expect-error options are required
  void zk.reconfig();
}

export function views(): void {
  expectTypeOf(zk.chroot('/tenants/1')).toEqualTypeOf<ClientView>();
  expectTypeOf(view.chroot('/a')).toEqualTypeOf<ClientView>();
  expectTypeOf(zk).toExtend<ClientView>();
  expectTypeOf(zk).toExtend<AsyncDisposable>();
  expectTypeOf(zk.close()).resolves.toEqualTypeOf<void>();
  // @ts-expect-error a view has no close
  void view.close();
  // @ts-expect-error nor a dispose
  void view[Symbol.asyncDispose]();
  // @ts-expect-error nor an updateServerList
  view.updateServerList('a');
  // @ts-expect-error shared properties are read-only
  view.state = 'closed';
}

it('B32, D3: calls have the asserted types', () => {
  expectTypeOf(creating).returns.toEqualTypeOf<void>();
  expectTypeOf(results).returns.resolves.toEqualTypeOf<void>();
});
