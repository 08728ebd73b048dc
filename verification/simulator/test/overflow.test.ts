/**
 * The whole server at the limits of its numbers: the production writers prepare a folder, and
 * clients see what happens next.
 */
import { CreateMode, ErrorCode, formatZxid, makeZxid, OpCode, openAcl, type Txn, type Zxid } from '@tskeeper/protocol';
import { keepAll, loseAll, numberedFiles } from '@tskeeper/runtime';
import { describe, expect, test } from 'vitest';
import { sendRequest, connectRawClient, writeSeedTxns, type RawClient, VirtualWorld, type WorldOptions } from '../src/index.ts';

const data = Buffer.from('x');
const wallMs = 1_699_999_999_000;

/**
 * A world whose disk contains one snapshot made by these txns. The first txn has the zxid
 * `firstZxid`.
 */
async function worldWith(
  firstZxid: Zxid,
  txns: readonly { readonly type: number; readonly txn: Txn }[],
  options?: WorldOptions,
): Promise<VirtualWorld> {
  const world = new VirtualWorld(1, options);
  await writeSeedTxns(world, world.server, firstZxid + txns.length - 1, wallMs, txns);
  return world;
}

function created(path: string, parentCVersion: number): { readonly type: number; readonly txn: Txn } {
  return { type: OpCode.create, txn: { kind: 'create', path, data, acl: openAcl, ephemeral: false, parentCVersion } };
}

const createAt = (path: string, flags: number = CreateMode.persistent) => ({ path, data, acl: openAcl, flags });

/** The ways in which a server can end before it starts again. */
const ends: [string, (world: VirtualWorld) => Promise<void> | void][] = [
  ['a stop', (world) => world.server.stop()],
  ['a kill', (world) => world.server.kill()],
  ['a power loss', (world) => world.server.losePower(loseAll)],
];

describe('zxids at the end of an epoch', () => {
  test.each(ends)('continue in the next epoch, and the log is read again after %s', async (_end, end) => {
    const last = makeZxid(0, 0xffffffff);
    const world = await worldWith(last - 3, [created('/a', 1)]);
    await world.server.start();
    const client = await connectRawClient(world);
    const zxids: Zxid[] = [];
    for (let index = 0; index < 6; index++) zxids.push((await sendRequest(world, client, 'create', createAt(`/n${index}`))).zxid);
    // The session used the first one.
    expect(zxids.map(formatZxid)).toEqual(['0xfffffffe', '0xffffffff', '0x100000000', '0x100000001', '0x100000002', '0x100000003']);
    await end(world);
    await world.server.start();
    const again = await connectRawClient(world);
    for (const [index, zxid] of zxids.entries()) {
      const { body } = await sendRequest(world, again, 'exists', { path: `/n${index}`, watch: false });
      expect(body.stat.czxid).toBe(zxid);
    }
    expect((await sendRequest(world, again, 'create', createAt('/more'))).zxid).toBeGreaterThan(zxids.at(-1)!);
  });

  test('may be the last of one log file and the first of the next', async () => {
    const last = makeZxid(0, 0xffffffff);
    const world = await worldWith(last - 2, [created('/a', 1)], { options: { txnLogSizeLimitBytes: 1 } });
    await world.server.start();
    const client = await connectRawClient(world);
    for (let index = 0; index < 4; index++) await sendRequest(world, client, 'create', createAt(`/n${index}`));
    const logs = () =>
      numberedFiles(
        world.server.disk.files().map((path) => path.slice(world.server.snapshotFolder.length + 1)),
        'log',
      ).map(({ name }) => name);
    expect(logs()).toEqual(['log.fffffffe', 'log.ffffffff', 'log.100000000', 'log.100000001', 'log.100000002']);
    world.server.losePower(keepAll);
    await world.server.start();
    expect((await sendRequest(world, await connectRawClient(world), 'getChildren', { path: '/', watch: false })).body.children).toContain(
      'n3',
    );
  });

  test('are sent to clients in events and compared with the last zxid that a client has seen', async () => {
    const world = await worldWith(makeZxid(0, 0xfffffffd), [created('/a', 1)]);
    await world.server.start();
    const client = await connectRawClient(world);
    await sendRequest(world, client, 'getData', { path: '/a', watch: true });
    const { zxid } = await sendRequest(world, client, 'setData', { path: '/a', data, version: -1 });
    await sendRequest(world, client, 'setData', { path: '/a', data, version: -1 });
    expect(client.cnxn!.record!.items.find(({ kind }) => kind === 'event')).toMatchObject({ zxid, path: '/a' });
    expect(formatZxid(client.lastZxidSeen)).toBe('0x100000000');
    world.server.kill();
    await world.server.start();
    // The client has seen epoch 1, and so has the server.
    expect(await world.runUntil(() => client.ready, 5000)).toBe(true);
    expect(client.lostSessions).toEqual([]);
  });
});

describe('the counter of sequential znodes', () => {
  test.each(ends)('wraps from 2147483647 to -2147483648, and keeps that value after %s', async (_end, end) => {
    const world = await worldWith(1, [created('/q', 1), created('/q/last', 2147483646)]);
    await world.server.start();
    let client = await connectRawClient(world);
    const next = async () => (await sendRequest(world, client, 'create', createAt('/q/s-', CreateMode.persistentSequential))).body.path;
    expect(await next()).toBe('/q/s-2147483646');
    expect(await next()).toBe('/q/s-2147483647');
    expect(await next()).toBe('/q/s--2147483648');
    await end(world);
    await world.server.start();
    client = await connectRawClient(world);
    expect(await next()).toBe('/q/s--2147483647');
    const { stat } = (await sendRequest(world, client, 'exists', { path: '/q', watch: false })).body;
    expect(stat.numChildren).toBe(5);
    // The counter counts creates and deletes, and the server stores only the number of creates:
    // -2147483646 here, which is twice that number minus five in 32 bits.
    expect(stat.cversion).toBe((-2147483646 * 2 - 5) | 0);
  });
});

describe('the version of data', () => {
  test.each(ends)('wraps from 2147483647 to -2147483648, and is still compared after %s', async (_end, end) => {
    const txn: Txn = { kind: 'setData', path: '/a', data, version: 2147483647 };
    const world = await worldWith(1, [created('/a', 1), { type: OpCode.setData, txn }]);
    await world.server.start();
    let client = await connectRawClient(world);
    const set = async (version: number) => {
      const { err, body } = await sendRequest(world, client, 'setData', { path: '/a', data, version });
      return err === ErrorCode.Ok ? body.stat.version : err;
    };
    expect(await set(2147483646)).toBe(ErrorCode.BadVersion);
    expect(await set(2147483647)).toBe(-2147483648);
    await end(world);
    await world.server.start();
    client = await connectRawClient(world);
    expect(await set(2147483647)).toBe(ErrorCode.BadVersion);
    expect(await set(-2147483648)).toBe(-2147483647);
    expect((await sendRequest(world, client, 'delete', { path: '/a', version: -2147483648 })).err).toBe(ErrorCode.BadVersion);
    expect((await sendRequest(world, client, 'delete', { path: '/a', version: -2147483647 })).err).toBe(ErrorCode.Ok);
  });
});

describe('session ids with the top bit set', () => {
  test.each(ends)('are valid ids, also after %s', async (_end, end) => {
    const world = new VirtualWorld(1, { core: { serverId: 200 } });
    await world.server.start();
    const client = await connectRawClient(world);
    const { session } = client;
    expect(session).toBeLessThan(0n);
    const path = (await sendRequest(world, client, 'create', createAt('/e-', CreateMode.ephemeralSequential))).body.path;
    expect((await sendRequest(world, client, 'exists', { path, watch: false })).body.stat.ephemeralOwner).toBe(session);
    const other = await connectRawClient(world);
    await end(world);
    await world.server.start();
    expect(await world.runUntil(() => client.ready && other.ready, 5000)).toBe(true);
    expect([client.session, other.session, client.lostSessions]).toEqual([session, session + 1n, []]);
    const newcomer = await connectRawClient(world);
    expect(newcomer.session).toBeGreaterThan(other.session);
    client.abandon();
    await world.run(4000 + 2 * world.server.core.tickTimeMs);
    expect((await sendRequest(world, other, 'exists', { path, watch: false })).err).toBe(ErrorCode.NoNode);
  });
});

describe('a server that is started again', () => {
  async function fill(world: VirtualWorld, client: RawClient, count: number): Promise<void> {
    for (let index = 0; index < count; index++) client.send('create', createAt('/n-', CreateMode.persistentSequential));
    await world.runUntil(() => client.outstandingCount === 0, 10_000);
  }

  test.each(ends)('after %s continues its digests, session ids and zxids', async (_end, end) => {
    const world = new VirtualWorld(1, { options: { snapCount: 40 } });
    await world.server.start();
    const client = await connectRawClient(world);
    await fill(world, client, 300);
    const digests = [...world.server.process!.runtime!.inspect.digests()];
    expect(digests.map(({ zxid }) => zxid)).toEqual([128, 256]);
    const lastZxid = world.server.process!.runtime!.inspect.lastZxid();
    await end(world);
    await world.server.start();
    const second = await connectRawClient(world);
    expect(second.session).toBeGreaterThan(client.session);
    await fill(world, second, 100);
    expect(world.server.process!.runtime!.inspect.lastZxid()).toBe(lastZxid + 101);
    const later = [...world.server.process!.runtime!.inspect.digests()].at(-1)!;
    expect(later.zxid).toBe(384);

    // The whole history is read again, from the empty snapshot: the digests are the same, and none
    // contradicts the log.
    await world.server.stop();
    for (const path of world.server.disk.files()) if (/snapshot\.[1-9a-f]/.test(path)) world.server.disk.eraseFile(path);
    await world.server.start();
    expect([...world.server.process!.runtime!.inspect.digests()]).toEqual([...digests, later]);
    expect(world.server.logLines.filter((line) => !/^(?:info|debug)/.test(line))).toEqual([]);
  });
});
