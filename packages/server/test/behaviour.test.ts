/**
 * Guarantees that only a whole server can show: several clients, a clock, a restart. See
 * docs/reference/behaviour.
 */
import { CreateMode, openAcl, type Stat } from '@tskeeper/protocol';
import { VirtualDisk } from '@tskeeper/runtime';
import { describe, expect, it } from 'vitest';
import { type VirtualClient, VirtualServer } from './support/virtual-server.ts';

async function statOf(client: VirtualClient, path: string): Promise<Stat> {
  const { err, body } = await client.call('exists', { path, watch: false });
  expect(err).toBe('Ok');
  return body.stat;
}

describe('a Stat', () => {
  /** /n was created, filled, given a child and another ACL, one second after the other. */
  async function received(): Promise<{ stat: Stat; zxids: Record<string, number>; startMs: number }> {
    const server = await VirtualServer.start();
    const client = await server.join();
    const zxids: Record<string, number> = {};
    const startMs = server.clock.now().wallMs;
    zxids['create'] = (await client.create('/n', 'one')).zxid;
    await server.pass(1000);
    zxids['setData'] = (await client.call('setData', { path: '/n', data: Buffer.from('three'), version: 0 })).zxid;
    await server.pass(1000);
    zxids['child'] = (await client.create('/n/c')).zxid;
    await client.create('/n/d');
    zxids['delete'] = (await client.call('delete', { path: '/n/d', version: 0 })).zxid;
    await server.pass(1000);
    await client.call('setACL', { path: '/n', acl: openAcl, version: 0 });
    return { stat: await statOf(client, '/n'), zxids, startMs };
  }

  it.each<[string, (received: { stat: Stat; zxids: Record<string, number>; startMs: number }) => [unknown, unknown]]>([
    ['C3-29: czxid is the zxid of its creation', ({ stat, zxids }) => [stat.czxid, zxids['create']]],
    ['C3-29: mzxid is the zxid of the last change of its data', ({ stat, zxids }) => [stat.mzxid, zxids['setData']]],
    ['C3-29: pzxid is the zxid of the last change of its children', ({ stat, zxids }) => [stat.pzxid, zxids['delete']]],
    ['C3-28, C3-29: ctime is the wall clock at its creation', ({ stat, startMs }) => [stat.ctime, startMs]],
    ['C3-28, C3-29: mtime is the wall clock at the last change of its data', ({ stat, startMs }) => [stat.mtime, startMs + 1000]],
    ['C3-29: version counts changes of its data', ({ stat }) => [stat.version, 1]],
    ['C3-29: cversion counts children created and deleted', ({ stat }) => [stat.cversion, 3]],
    ['C3-29: aversion counts changes of its ACL', ({ stat }) => [stat.aversion, 1]],
    ['C3-29: ephemeralOwner is 0 where there is none', ({ stat }) => [stat.ephemeralOwner, 0n]],
    ['C3-29: dataLength is that of its data', ({ stat }) => [stat.dataLength, 5]],
    ['C3-29: numChildren is the number of its children', ({ stat }) => [stat.numChildren, 1]],
  ])('%s', async (_title, look) => {
    const [seen, meant] = look(await received());
    expect(seen).toEqual(meant);
  });

  it('C3-29: ephemeralOwner is the session of an ephemeral, and 0 for containers and TTL znodes', async () => {
    const server = await VirtualServer.start('extendedTypesEnabled=true');
    const client = await server.join();
    await client.create('/e', '', CreateMode.ephemeral);
    await client.call('createContainer', { path: '/c', data: null, acl: openAcl, flags: CreateMode.container });
    await client.call('createTTL', { path: '/t', data: null, acl: openAcl, flags: CreateMode.persistentWithTtl, ttl: 9000 });
    const owners = await Promise.all(['/e', '/c', '/t'].map(async (path) => (await statOf(client, path)).ephemeralOwner));
    expect(owners).toEqual([client.session, 0n, 0n]);
  });

  it('A4: cversion is twice the number of creates minus the number of children', async () => {
    const client = await (await VirtualServer.start()).join();
    await client.create('/p');
    const seen: number[] = [];
    for (const step of ['a', 'b', 'c']) {
      await client.create(`/p/${step}`);
      seen.push((await statOf(client, '/p')).cversion);
    }
    for (const step of ['a', 'b']) {
      await client.call('delete', { path: `/p/${step}`, version: -1 });
      seen.push((await statOf(client, '/p')).cversion);
    }
    expect(seen).toEqual([1, 2, 3, 4, 5]);
  });
});

describe('time', () => {
  it('C2-15, C3-28: setting the wall clock changes the times in Stats and not the life of sessions', async () => {
    const server = await VirtualServer.start();
    const client = await server.join(undefined, 10_000);
    const year = 365 * 24 * 3_600_000;
    const before = server.clock.now().wallMs;
    for (const wallMs of [before + year, before - year]) {
      server.clock.setWall(wallMs);
      await server.pass(5000);
      expect((await client.call('ping', undefined)).err).toBe('Ok');
      await client.create('/now');
      expect((await statOf(client, '/now')).ctime).toBe(wallMs + 5000);
      await client.call('delete', { path: '/now', version: -1 });
    }
    await server.pass(20_000);
    expect(client.closed).toBe(true);
  });

  it('C3-28: the age of a TTL znode is measured by the wall clock', async () => {
    const server = await VirtualServer.start('extendedTypesEnabled=true', { definitions: ['znode.container.checkIntervalMs=1000'] });
    const client = await server.join();
    await client.call('createTTL', { path: '/t', data: null, acl: openAcl, flags: CreateMode.persistentWithTtl, ttl: 3_600_000 });
    server.clock.setWall(server.clock.now().wallMs + 3_700_000);
    await server.pass(1500);
    expect((await client.call('exists', { path: '/t', watch: false })).err).toBe('NoNode');
  });
});

describe('order', () => {
  it('A18, C3-25: writes of many clients have one order, which keeps the order of the writes of each client', async () => {
    const server = await VirtualServer.start();
    const clients = await Promise.all([1, 2, 3, 4, 5].map((n) => server.join(`10.0.9.${n}`)));
    const sent = clients.map(() => [] as number[]);
    for (let round = 0; round < 20; round++) {
      for (const [n, client] of clients.entries()) {
        sent[n]!.push(client.send('create', { path: `/c${n}-`, data: null, acl: openAcl, flags: CreateMode.persistentSequential }));
      }
    }
    await server.settle();
    const zxids = clients.map((client, n) => sent[n]!.map((xid) => client.answer(xid)!.zxid));
    for (const own of zxids) expect(own).toEqual([...own].sort((a, b) => a - b));
    expect(new Set(zxids.flat()).size).toBe(100);
  });

  it('C3-12: a read during concurrent writes returns the complete data of one of them', async () => {
    const server = await VirtualServer.start();
    const [writer, reader] = [await server.join('10.0.9.1'), await server.join('10.0.9.2')];
    await writer.create('/whole', 'a'.repeat(30_000));
    const asked: number[] = [];
    for (let n = 0; n < 60; n++) {
      writer.send('setData', { path: '/whole', data: Buffer.alloc(30_000, 97 + (n % 26)), version: -1 });
      asked.push(reader.send('getData', { path: '/whole', watch: false }));
      if (n % 7 === 0) await server.settle();
    }
    await server.settle();
    const read = asked.map((xid) => Buffer.from(reader.answer<'getData'>(xid)!.body.data!));
    expect(read.every((data) => data.length === 30_000 && data.every((byte) => byte === data[0]))).toBe(true);
    expect(new Set(read.map((data) => data[0])).size).toBeGreaterThan(3);
  });
});

describe('sessions', () => {
  it('A30, C2-7, C2-8, C2-11: id and password resume the session with its ephemerals after a restart, within its time-out', async () => {
    const disk = new VirtualDisk();
    const first = await VirtualServer.start([], { disk });
    const client = await first.join();
    await client.create('/mine', '', CreateMode.ephemeral);
    expect(client.session).toBeGreaterThan(BigInt(Number.MAX_SAFE_INTEGER));
    await first.close();

    const second = await VirtualServer.start([], { disk });
    const again = await second.dial();
    await again.shakeHands(10_000, client.session, client.password);
    expect([again.timeoutMs, again.session]).toEqual([10_000, client.session]);
    expect((await statOf(again, '/mine')).ephemeralOwner).toBe(client.session);
  });

  it('C2-9, C2-12: resuming a session with a wrong password, or after it expired, is refused', async () => {
    const server = await VirtualServer.start();
    const client = await server.join();
    await client.create('/mine', '', CreateMode.ephemeral);
    const thief = await server.dial();
    await thief.shakeHands(10_000, client.session, Buffer.alloc(16, 1));
    expect(thief.timeoutMs).toBe(0);
    await server.pass(30_000);
    const late = await server.dial();
    await late.shakeHands(10_000, client.session, client.password);
    expect(late.timeoutMs).toBe(0);
    expect((await (await server.join()).call('exists', { path: '/mine', watch: false })).err).toBe('NoNode');
  });

  it('C2-16: watches on the ephemerals of an expired session fire within a tick', async () => {
    const server = await VirtualServer.start('tickTime=1000');
    const owner = await server.join('10.0.9.1', 4000);
    await owner.create('/mine', '', CreateMode.ephemeral);
    const watcher = await server.join('10.0.9.2', 20_000);
    await watcher.call('exists', { path: '/mine', watch: true });
    await server.pass(3900, 100);
    expect(watcher.events).toEqual([]);
    await server.pass(1200, 100);
    expect(watcher.events.map(({ path, type }) => [path, type])).toEqual([['/mine', 2]]);
  });
});
