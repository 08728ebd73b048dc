import { createHash } from 'node:crypto';
/**
 * Every supported key of zoo.cfg takes effect, shown on a whole server: a configuration goes in,
 * and the effect shows at clients, on the disk or in the log. A title begins with the keys it is
 * about; test/behaviour-reference.test.ts checks that none is missing.
 */
import { gunzipSync } from 'node:zlib';
import { CreateMode, digestId, ListFilter, openAcl, Perms } from '@tskeeper/protocol';
import { VirtualDisk } from '@tskeeper/runtime';
import { describe, expect, it, vi } from 'vitest';
import { VirtualServer } from './support/virtual-server.ts';

const KiB = 1024;

/** Writes until so many bytes have been written. */
async function fill(server: VirtualServer, count: number, bytes = 100): Promise<void> {
  const client = await server.join();
  await client.create('/fill');
  for (let n = 0; n < count; n++) client.send('setData', { path: '/fill', data: Buffer.alloc(bytes, 1), version: -1 });
  await server.settle();
}

function snapshotsOf(server: VirtualServer): string[] {
  return server.files().filter((name) => name.startsWith('snapshot.'));
}

function logsOf(server: VirtualServer, folder?: string): string[] {
  return server.files(folder).filter((name) => name.startsWith('log.'));
}

const world = (perms: number) => [{ perms, id: { scheme: 'world', id: 'anyone' } }];

describe('data folders and client addresses', () => {
  it('option dataDir, dataLogDir: snapshots are written to the first, logs to the second', async () => {
    const server = await VirtualServer.start('dataLogDir=/logs');
    await fill(server, 1);
    expect(server.files('/data/version-2')).toEqual(['snapshot.0']);
    expect(logsOf(server, '/logs/version-2')).toEqual(['log.1']);
  });

  it('A46: option clientPort, clientPortAddress, clientPortListenBacklog: the port is opened with these settings', async () => {
    const server = await VirtualServer.start(['clientPortAddress=10.0.0.1', 'clientPortListenBacklog=7']);
    expect(server.listened).toEqual({ address: '10.0.0.1', port: 2181, backlog: 7 });
  });

  it('A84: option server.*, dynamicConfigFile: the client port may be in the line of the server, and that line in a file of its own', async () => {
    const line = 'server.1=10.0.0.1:2888:3888;10.0.0.1:2181';
    const server = await VirtualServer.start(line);
    expect(server.listened!.address).toBe('10.0.0.1');
    const files = { '/conf/dynamic': `${line}\n` };
    const dynamic = await VirtualServer.start('dynamicConfigFile=/conf/dynamic', { files });
    expect(dynamic.listened!.address).toBe('10.0.0.1');
  });

  it('option standaloneEnabled, peerType: one server alone can be an ensemble, and an observer needs an ensemble', async () => {
    const line = 'server.1=10.0.0.1:2888:3888';
    await expect(VirtualServer.start([line, 'standaloneEnabled=false'])).rejects.toThrow('an ensemble needs it');
    await expect(VirtualServer.start('peerType=observer')).rejects.toThrow('an observer needs an ensemble to observe');
    expect((await VirtualServer.start([line, 'peerType=participant', 'standaloneEnabled=true'])).listened!.port).toBe(2181);
  });

  it('option datadir.autocreate: without it a missing folder stops the start', async () => {
    await expect(VirtualServer.start('datadir.autocreate=false')).rejects.toThrow('does not exist and datadir.autocreate is false');
  });

  it('A63: option db.autocreate: without it an empty folder needs a file initialize, which the start deletes', async () => {
    await expect(VirtualServer.start('db.autocreate=false')).rejects.toThrow('/data is empty and db.autocreate is false');
    const disk = new VirtualDisk();
    disk.putFile('/data/initialize', Buffer.alloc(0));
    const server = await VirtualServer.start('db.autocreate=false', { disk });
    expect((await (await server.join()).create('/a')).err).toBe('Ok');
    expect(server.files('/data')).not.toContain('initialize');
  });
});

describe('time and sessions', () => {
  it('A29, C2-10, C3-27: option tickTime: sessions last from 2 to 20 ticks', async () => {
    const server = await VirtualServer.start('tickTime=1000');
    expect((await server.join(undefined, 1)).timeoutMs).toBe(2000);
    expect((await server.join(undefined, 3_600_000)).timeoutMs).toBe(20_000);
  });

  it('A29: option minSessionTimeout, maxSessionTimeout: they override the number of ticks', async () => {
    const server = await VirtualServer.start(['minSessionTimeout=5000', 'maxSessionTimeout=7000']);
    expect((await server.join(undefined, 1)).timeoutMs).toBe(5000);
    expect((await server.join(undefined, 6000)).timeoutMs).toBe(6000);
    expect((await server.join(undefined, 3_600_000)).timeoutMs).toBe(7000);
  });

  it('option nio.sessionlessCnxnTimeout: a connection without a handshake is closed after this time', async () => {
    const server = await VirtualServer.start('nio.sessionlessCnxnTimeout=3000');
    const client = await server.dial();
    await server.pass(2900);
    expect(client.closed).toBe(false);
    await server.pass(3300);
    expect(client.closed).toBe(true);
  });
});

describe('logs and snapshots', () => {
  it('A69: option snapCount: after this number of txns a snapshot and a new log follow', async () => {
    const server = await VirtualServer.start('snapCount=20');
    for (let n = 0; n < 6; n++) await fill(server, 10);
    expect(snapshotsOf(server).length).toBeGreaterThan(2);
    expect(logsOf(server).length).toBeGreaterThan(2);
  });

  it('A69: option snapSizeLimitInKb: after this number of bytes a snapshot follows', async () => {
    const server = await VirtualServer.start('snapSizeLimitInKb=40');
    await fill(server, 12, 10 * KiB);
    expect(snapshotsOf(server).length).toBeGreaterThan(1);
  });

  it('A69: option txnLogSizeLimitInKb: a log of that size is followed by another, without a snapshot', async () => {
    const server = await VirtualServer.start('txnLogSizeLimitInKb=20');
    const client = await server.join();
    await client.create('/a');
    for (let n = 0; n < 5; n++) await client.call('setData', { path: '/a', data: Buffer.alloc(10 * KiB), version: -1 });
    expect(logsOf(server).length).toBeGreaterThan(1);
    expect(snapshotsOf(server)).toEqual(['snapshot.0']);
  });

  it('A65: option preAllocSize: a log grows in steps of this size', async () => {
    const server = await VirtualServer.start('preAllocSize=128');
    await fill(server, 1);
    expect(server.disk.contents('/data/version-2/log.1')).toHaveLength(128 * KiB + 16);
  });

  it('A71: option forceSync: a write waits for the disk, unless the option is no', async () => {
    for (const forceSync of ['yes', 'no']) {
      const server = await VirtualServer.start(`forceSync=${forceSync}`);
      const client = await server.join();
      server.holdSyncs();
      const xid = client.send('create', { path: '/a', data: null, acl: openAcl, flags: 0 });
      await server.settle();
      expect(client.answer(xid) === undefined, forceSync).toBe(forceSync === 'yes');
      await server.releaseSyncs();
      if (forceSync === 'yes') expect(client.answer(xid)!.err).toBe('Ok');
    }
  });

  it('A83: option fsync.warningthresholdms: a slower sync causes a warning', async () => {
    for (const [threshold, warned] of [
      [500, true],
      [900, false],
    ] as const) {
      const server = await VirtualServer.start(`fsync.warningthresholdms=${threshold}`);
      const client = await server.join();
      server.holdSyncs();
      client.send('create', { path: '/a', data: null, acl: openAcl, flags: 0 });
      await server.pass(700, 50);
      await server.releaseSyncs();
      expect(server.lines.some((line) => line.startsWith('warn') && line.includes('took 700 ms'))).toBe(warned);
    }
  });

  it('A71: option flushDelay: a write waits this long for others before its sync', async () => {
    const server = await VirtualServer.start(['flushDelay=200', 'maxWriteQueuePollTime=200']);
    // The delay counts from the last sync, which was that of the session.
    const client = await server.join();
    const xid = client.send('create', { path: '/a', data: null, acl: openAcl, flags: 0 });
    await server.pass(190, 10);
    expect(client.answer(xid)).toBeUndefined();
    await server.pass(20, 10);
    expect(client.answer(xid)!.err).toBe('Ok');
    const second = client.send('delete', { path: '/a', version: -1 });
    await server.settle();
    const third = client.send('delete', { path: '/a', version: -1 });
    await server.settle();
    expect(client.answer(second)).toBeUndefined();
    await server.pass(200, 10);
    expect([client.answer(second)!.err, client.answer(third)!.err]).toEqual(['Ok', 'NoNode']);
  });

  it('A71: option maxWriteQueuePollTime: a pause ends the wait for other writes', async () => {
    const server = await VirtualServer.start(['flushDelay=10000', 'maxWriteQueuePollTime=30']);
    const client = await server.join();
    for (const path of ['/a', '/b']) {
      const xid = client.send('create', { path, data: null, acl: openAcl, flags: 0 });
      await server.settle();
      expect(client.answered).toBe(0);
      await server.pass(40, 10);
      expect(client.answer(xid)!.err).toBe('Ok');
    }
  });

  it('A71: option maxBatchSize: this number of writes is synced without waiting for more', async () => {
    const server = await VirtualServer.start(['flushDelay=10000', 'maxWriteQueuePollTime=10000', 'maxBatchSize=3']);
    const client = await server.join();
    for (const path of ['/a', '/b']) client.send('create', { path, data: null, acl: openAcl, flags: 0 });
    await server.settle();
    const early = client.answered;
    client.send('create', { path: '/c', data: null, acl: openAcl, flags: 0 });
    await server.settle();
    expect([early, client.answered]).toEqual([0, 3]);
  });

  it('A67: option snapshot.compression.method: snapshots are written in gz or snappy, and read in any form', async () => {
    for (const [method, magic] of [
      ['gz', '1f8b'],
      ['snappy', '8253'],
    ]) {
      const disk = new VirtualDisk();
      const first = await VirtualServer.start(`snapshot.compression.method=${method}`, { disk });
      await (await first.join()).create('/kept', 'x');
      await first.close();
      const second = await VirtualServer.start(`snapshot.compression.method=${method}`, { disk });
      await second.close();
      const name = snapshotsOf(second).at(-1)!;
      const bytes = disk.contents(`/data/version-2/${name}`);
      expect(bytes.toString('hex', 0, 2)).toBe(magic);
      if (method === 'gz') expect(gunzipSync(bytes).toString('latin1', 0, 4)).toBe('ZKSN');
      // Without its logs, only the snapshot can contain it.
      for (const file of second.files().filter((one) => one.startsWith('log.') || one.startsWith('synced.')))
        disk.eraseFile(`/data/version-2/${file}`);
      const third = await VirtualServer.start([], { disk });
      expect((await (await third.join()).call('getData', { path: '/kept', watch: false })).err).toBe('Ok');
    }
  });

  it('A63: option snapshot.trust.empty: logs alone are refused, unless it is on', async () => {
    const disk = new VirtualDisk();
    const first = await VirtualServer.start([], { disk });
    await (await first.join()).create('/kept');
    await first.close();
    for (const name of snapshotsOf(first)) disk.eraseFile(`/data/version-2/${name}`);
    await expect(VirtualServer.start([], { disk })).rejects.toThrow('snapshot');
    const second = await VirtualServer.start('snapshot.trust.empty=true', { disk });
    expect((await (await second.join()).call('exists', { path: '/kept', watch: false })).err).toBe('Ok');
  });

  it('A66: option serializeLastProcessedZxid.enabled: snapshots end with their zxid, unless it is off', async () => {
    const [on, off] = await Promise.all(
      ['true', 'false'].map(async (value) => {
        const server = await VirtualServer.start(`serializeLastProcessedZxid.enabled=${value}`);
        return server.disk.contents('/data/version-2/snapshot.0').length;
      }),
    );
    // A zxid, and the seal after it.
    expect(on! - off!).toBe(8 + 13);
  });

  it('A68: option digest.enabled: txns and snapshots carry a digest of the tree, unless it is off', async () => {
    for (const value of [true, false]) {
      const server = await VirtualServer.start([`digest.enabled=${value}`, '4lw.commands.whitelist=hash', 'snapCount=2000']);
      await fill(server, 130);
      expect(server.txns().every(({ digest }) => (digest !== undefined) === value)).toBe(true);
      expect((await server.word('hash')) !== '').toBe(value);
    }
  });

  it('option closeSessionTxn.enabled: the txn that ends a session names what it deletes, unless it is off', async () => {
    for (const value of [true, false]) {
      const server = await VirtualServer.start(`closeSessionTxn.enabled=${value}`);
      const client = await server.join();
      await client.create('/e', '', CreateMode.ephemeral);
      await client.call('closeSession', undefined);
      const last = server.txns().at(-1)!.txn;
      expect(last).toEqual({ kind: 'closeSession', paths2Delete: value ? ['/e'] : null });
      expect((await (await server.join()).call('exists', { path: '/e', watch: false })).err).toBe('NoNode');
    }
  });

  it('A70, D12, E13, E25: option autopurge.snapRetainCount, autopurge.purgeInterval: old snapshots and their logs are deleted, the newest are kept', async () => {
    const kept: number[] = [];
    for (const lines of [['autopurge.snapRetainCount=4', 'autopurge.purgeInterval=2'], ['autopurge.purgeInterval=0']]) {
      const server = await VirtualServer.start(['snapCount=4', ...lines]);
      for (let n = 0; n < 40; n++) await (await server.join()).create(`/a${n}`);
      await server.pass(61_000, 1000);
      await server.pass(3 * 3_600_000, 60_000);
      kept.push(snapshotsOf(server).length);
    }
    expect(kept[0]).toBe(4);
    expect(kept[1]).toBeGreaterThan(6);
  });
});

describe('limits', () => {
  it('A3, C3-14: option jute.maxbuffer: a longer request closes the connection', async () => {
    const server = await VirtualServer.start([], { definitions: ['jute.maxbuffer=2048'] });
    const client = await server.join();
    expect((await client.create('/a', 'x'.repeat(1900))).err).toBe('Ok');
    expect((await client.create('/b', 'x'.repeat(2100))).err).toBe('closed');
  });

  it('A3, C3-14: option jute.maxbuffer: 500 bytes are enough to serve a client whose requests are no longer', async () => {
    const server = await VirtualServer.start([], { definitions: ['jute.maxbuffer=500'] });
    const [client, other] = [await server.join(), await server.join('10.0.9.2')];
    expect((await client.create('/a', 'x'.repeat(400))).err).toBe('Ok');
    const watch = await other.call('getData', { path: '/a', watch: true });
    expect(watch.body.data?.length).toBe(400);
    expect((await client.call('setData', { path: '/a', data: Buffer.from('y'), version: 0 })).err).toBe('Ok');
    expect(other.events).toMatchObject([{ path: '/a' }]);
    for (let n = 0; n < 40; n++) expect((await client.create(`/a/a-long-name-of-a-child-${n}`)).err).toBe('Ok');
    // The limit applies to requests, not to replies.
    expect((await other.call('getChildren', { path: '/a', watch: false })).body.children.length).toBe(40);
    expect((await client.create('/b', 'x'.repeat(500))).err).toBe('closed');
    expect((await other.call('exists', { path: '/b', watch: false })).err).toBe('NoNode');
  });

  it('F31, E19: option jute.maxbuffer.extrasize: a txn may be longer than a request by this much', async () => {
    const errors: string[] = [];
    for (const extra of [1024, 4096]) {
      const server = await VirtualServer.start(`jute.maxbuffer.extrasize=${extra}`, { definitions: ['jute.maxbuffer=2048'] });
      const client = await server.join();
      // One short entry of the request becomes one per identity.
      for (let n = 0; n < 30; n++) await client.call('auth', { type: 0, scheme: 'digest', auth: Buffer.from(`user${n}:secret`) });
      const acl = [{ perms: Perms.all, id: { scheme: 'auth', id: '' } }];
      errors.push((await client.call('create', { path: '/a', data: Buffer.alloc(1900), acl, flags: 0 })).err);
    }
    expect(errors).toEqual(['MarshallingError', 'Ok']);
  });

  it('A46: option maxClientCnxns: one address may have this number of connections', async () => {
    const server = await VirtualServer.start('maxClientCnxns=2');
    const clients = [
      await server.dial('10.0.9.1'),
      await server.dial('10.0.9.1'),
      await server.dial('10.0.9.1'),
      await server.dial('10.0.9.2'),
    ];
    expect(clients.map(({ closed }) => closed)).toEqual([false, false, true, false]);
  });

  it('A46: option maxCnxns: all addresses together may have this number of connections', async () => {
    const server = await VirtualServer.start('maxCnxns=2');
    const clients = [await server.dial('10.0.9.1'), await server.dial('10.0.9.2'), await server.dial('10.0.9.3')];
    expect(clients.map(({ closed }) => closed)).toEqual([false, false, true]);
  });

  it('F34: option tskeeper.memoryLimitInMb: a process that uses more refuses requests that grow, and logs it', async () => {
    // No test process is smaller than 64 MB, and none as large as a terabyte.
    for (const [megabytes, answer] of [
      [64, 'ThrottledOp'],
      [1_000_000, 'Ok'],
    ] as const) {
      const server = await VirtualServer.start(`tskeeper.memoryLimitInMb=${megabytes}`);
      const client = await server.join();
      await server.pass(500);
      expect((await client.create('/a')).err).toBe(answer);
      expect((await client.call('exists', { path: '/', watch: false })).err).toBe('Ok');
      expect(server.lines.some((line) => line.includes('this process uses'))).toBe(megabytes === 64);
    }
  });

  it('A47: option globalOutstandingLimit: above it a connection with an outstanding request is not read', async () => {
    const taken: number[] = [];
    for (const limit of [2, 1000]) {
      const server = await VirtualServer.start(`globalOutstandingLimit=${limit}`);
      const client = await server.join();
      server.holdSyncs();
      for (let n = 0; n < 10; n++) client.send('create', { path: `/a${n}`, data: null, acl: openAcl, flags: 0 });
      await server.settle();
      taken.push(server.runtime.inspect.outstandingRequests());
      await server.releaseSyncs();
      expect(client.answered).toBe(10);
    }
    expect(taken).toEqual([3, 10]);
  });

  it('A47: option request_throttle_max_requests: above it requests wait, and are served later', async () => {
    const server = await VirtualServer.start('request_throttle_max_requests=3');
    const clients = await Promise.all([1, 2, 3, 4, 5].map((n) => server.join(`10.0.9.${n}`)));
    server.holdSyncs();
    for (const [n, client] of clients.entries()) client.send('create', { path: `/a${n}`, data: null, acl: openAcl, flags: 0 });
    await server.settle();
    expect(server.runtime.inspect.outstandingRequests()).toBe(3);
    await server.releaseSyncs();
    expect(clients.map(({ answered }) => answered)).toEqual([1, 1, 1, 1, 1]);
  });

  it('A47: option request_throttle_drop_stale: requests that waited for a client that has left are dropped, unless it is off', async () => {
    const made: string[] = [];
    for (const value of [true, false]) {
      const server = await VirtualServer.start(['request_throttle_max_requests=1', `request_throttle_drop_stale=${value}`]);
      const [first, second] = [await server.join('10.0.9.1'), await server.join('10.0.9.2')];
      server.holdSyncs();
      first.send('create', { path: '/first', data: null, acl: openAcl, flags: 0 });
      await server.settle();
      second.send('create', { path: '/second', data: null, acl: openAcl, flags: 0 });
      await server.settle();
      second.hangUp();
      await server.settle();
      await server.releaseSyncs();
      made.push((await first.call('exists', { path: '/second', watch: false })).err);
    }
    expect(made).toEqual(['NoNode', 'Ok']);
  });

  it('A47: option request_throttle_stall_time: waiting requests are checked at this interval', async () => {
    const server = await VirtualServer.start([
      'request_throttle_max_requests=1',
      'request_throttle_stall_time=70',
      '4lw.commands.whitelist=*',
    ]);
    const client = await server.join();
    server.holdSyncs();
    const waits = vi.spyOn(server.clock, 'after');
    client.send('create', { path: '/a', data: null, acl: openAcl, flags: 0 });
    client.send('create', { path: '/b', data: null, acl: openAcl, flags: 0 });
    await server.settle();
    expect(waits.mock.calls.map(([delayMs]) => delayMs)).toContain(70);
    await server.releaseSyncs();
    expect(client.answered).toBe(2);
  });

  it('A47: option throttled_op_wait_time: a request that waited longer is answered with ThrottledOp', async () => {
    const server = await VirtualServer.start(['request_throttle_max_requests=1', 'throttled_op_wait_time=500']);
    const [first, second] = [await server.join('10.0.9.1'), await server.join('10.0.9.2')];
    server.holdSyncs();
    first.send('create', { path: '/first', data: null, acl: openAcl, flags: 0 });
    await server.settle();
    const xid = second.send('create', { path: '/second', data: null, acl: openAcl, flags: 0 });
    await server.pass(600, 50);
    await server.releaseSyncs();
    expect(second.answer(xid)!.err).toBe('ThrottledOp');
    expect((await first.call('exists', { path: '/second', watch: false })).err).toBe('NoNode');
  });

  it('option largeRequestThreshold, largeRequestMaxBytes: large requests in progress may hold this number of bytes together', async () => {
    const closed: boolean[] = [];
    for (const threshold of [1000, 100_000]) {
      const server = await VirtualServer.start([`largeRequestThreshold=${threshold}`, 'largeRequestMaxBytes=5000']);
      const clients = [await server.join('10.0.9.1'), await server.join('10.0.9.2')];
      server.holdSyncs();
      for (const [n, client] of clients.entries()) {
        client.send('create', { path: `/a${n}`, data: Buffer.alloc(3000), acl: openAcl, flags: 0 });
        await server.settle();
      }
      closed.push(clients[1]!.closed);
      await server.releaseSyncs();
    }
    expect(closed).toEqual([true, false]);
  });
});

describe('the connection throttle', () => {
  /** How many of so many clients that connect at once get a session. */
  async function admitted(lines: readonly string[], count: number, waitMs = 0): Promise<number> {
    const server = await VirtualServer.start(lines);
    await server.pass(waitMs);
    const clients = [];
    for (let n = 0; n < count; n++) clients.push(await server.join(`10.0.9.${n + 1}`));
    return clients.filter(({ timeoutMs }) => timeoutMs !== undefined && timeoutMs > 0).length;
  }
  const throttle = ['connection_throttle_tokens=4', 'connection_throttle_fill_time=60000', 'connection_throttle_fill_count=1'];

  it('A48: option connection_throttle_tokens: this number of clients may connect at once', async () => {
    expect(await admitted(throttle, 8)).toBe(4);
    expect(await admitted([], 8)).toBe(8);
  });

  it('A48: option connection_throttle_fill_time, connection_throttle_fill_count: after each such time this number of further clients may connect', async () => {
    const server = await VirtualServer.start([
      'connection_throttle_tokens=4',
      'connection_throttle_fill_time=1000',
      'connection_throttle_fill_count=2',
    ]);
    const waves: number[] = [];
    for (let wave = 0; wave < 2; wave++) {
      const clients = [];
      for (let n = 0; n < 6; n++) clients.push(await server.join(`10.1.${wave}.${n + 1}`));
      waves.push(clients.filter(({ timeoutMs }) => timeoutMs !== undefined).length);
      await server.pass(1001);
    }
    expect(waves).toEqual([4, 2]);
  });

  it('A48: option connection_throttle_weight_enabled, connection_throttle_global_session_weight, connection_throttle_renew_session_weight: sessions cost tokens by their kind', async () => {
    const weighty = [
      ...throttle,
      'connection_throttle_weight_enabled=true',
      'connection_throttle_global_session_weight=4',
      'connection_throttle_renew_session_weight=2',
    ];
    // The bucket is counted in global sessions: 4 x 4 tokens. Two new ones leave 8, which is enough
    // for four resumed ones.
    const server = await VirtualServer.start(weighty);
    const first = await server.join('10.0.9.1');
    await server.join('10.0.9.2');
    const again = [];
    for (let n = 0; n < 6; n++) {
      const client = await server.dial(`10.0.8.${n + 1}`);
      await client.shakeHands(10_000, first.session, first.password);
      again.push(client.timeoutMs !== undefined);
    }
    expect(again).toEqual([true, true, true, true, false, false]);
  });

  it.each([
    [1, 1],
    [4, 3],
  ])('A48: option connection_throttle_local_session_weight: %i raises the other two weights to it', async (local, resumed) => {
    const server = await VirtualServer.start([
      ...throttle,
      'connection_throttle_weight_enabled=true',
      'connection_throttle_global_session_weight=1',
      `connection_throttle_local_session_weight=${local}`,
      'connection_throttle_renew_session_weight=2',
    ]);
    // With 1 the bucket has 4 x 1 tokens: a new session leaves 3, and one resumed session takes 2.
    // With 4 it has 4 x 4, a new session leaves 12, and three resumed ones take 4 each.
    const first = await server.join('10.0.9.1');
    let resumedSessions = 0;
    for (let n = 0; n < 6; n++) {
      const client = await server.dial(`10.0.8.${n + 1}`);
      await client.shakeHands(10_000, first.session, first.password);
      if (client.timeoutMs !== undefined) resumedSessions++;
    }
    expect(resumedSessions).toBe(resumed);
  });

  it('A48: option connection_throttle_freeze_time, connection_throttle_drop_increase, connection_throttle_drop_decrease, connection_throttle_decrease_ratio: while the bucket is found empty the chance to be dropped rises, and falls again', async () => {
    const server = await VirtualServer.start([
      'connection_throttle_tokens=2',
      'connection_throttle_fill_time=1000',
      'connection_throttle_fill_count=1',
      'connection_throttle_freeze_time=100',
      'connection_throttle_drop_increase=0.5',
      'connection_throttle_drop_decrease=0.25',
      'connection_throttle_decrease_ratio=0.4',
      '4lw.commands.whitelist=mntr',
    ]);
    const chance = async (): Promise<string> => /zk_connection_drop_probability\t(\S+)/.exec(await server.word('mntr'))![1]!;
    expect(await chance()).toBe('0.0');
    for (let n = 0; n < 6; n++) {
      await server.join(`10.0.9.${n + 1}`);
      await server.pass(120, 10);
    }
    const high = Number(await chance());
    expect(high % 0.25).toBe(0);
    expect(high).toBeGreaterThanOrEqual(0.5);
    await server.pass(5000);
    await server.join('10.0.8.1');
    expect(high - Number(await chance())).toBe(0.25);
  });
});

describe('znodes', () => {
  it('A9, C3-24: option extendedTypesEnabled: TTL znodes can be created, unless it is off', async () => {
    for (const [value, err] of [
      [true, 'Ok'],
      [false, 'Unimplemented'],
    ] as const) {
      const client = await (await VirtualServer.start(`extendedTypesEnabled=${value}`)).join();
      expect(
        (await client.call('createTTL', { path: '/t', data: null, acl: openAcl, flags: CreateMode.persistentWithTtl, ttl: 5000 })).err,
      ).toBe(err);
    }
  });

  it('option emulate353TTLNodes: old and new TTL znodes expire', async () => {
    const server = await VirtualServer.start(['extendedTypesEnabled=true', 'emulate353TTLNodes=true']);
    const client = await server.join(undefined, 60_000);
    await client.call('createTTL', { path: '/t', data: null, acl: openAcl, flags: CreateMode.persistentWithTtl, ttl: 5000 });
    await server.pass(125_000, 5000);
    expect((await (await server.join()).call('exists', { path: '/t', watch: false })).err).toBe('NoNode');
  });

  it('A45: option enforceQuota: a write beyond a hard quota is refused, unless it is off', async () => {
    for (const [value, err] of [
      [true, 'QuotaExceeded'],
      [false, 'Ok'],
    ] as const) {
      const client = await (await VirtualServer.start(`enforceQuota=${value}`)).join();
      await client.create('/q');
      await client.create('/zookeeper/quota/q');
      await client.create('/zookeeper/quota/q/zookeeper_limits', 'count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=2');
      await client.create('/zookeeper/quota/q/zookeeper_stats', 'count=1,bytes=0');
      expect([(await client.create('/q/a')).err, (await client.create('/q/b')).err]).toEqual(['Ok', err]);
    }
  });

  it('A20: option tskeeper.keeperExtensions: clients of ClickHouse Keeper find what they may use, and can filter a list', async () => {
    const answers = async (value: boolean) => {
      const client = await (await VirtualServer.start(`tskeeper.keeperExtensions=${value}`)).join();
      await client.create('/p');
      const { err, body } = await client.call('getData', { path: '/keeper/feature_flags', watch: false });
      const list = await client.call('filteredList', { path: '/', watch: false, filter: ListFilter.notEphemeral });
      return [err, (body as typeof body | undefined)?.data?.toString('hex'), list.err];
    };
    expect(await answers(true)).toEqual(['Ok', 'ba60', 'Ok']);
    expect(await answers(false)).toEqual(['NoNode', undefined, 'Unimplemented']);
  });

  it('A8, C3-21: option znode.container.checkIntervalMs: empty containers are deleted at this interval', async () => {
    const server = await VirtualServer.start([], { definitions: ['znode.container.checkIntervalMs=2000'] });
    const client = await server.join(undefined, 60_000);
    await client.call('createContainer', { path: '/c', data: null, acl: openAcl, flags: CreateMode.container });
    await client.create('/c/x');
    await client.call('delete', { path: '/c/x', version: -1 });
    expect((await client.call('exists', { path: '/c', watch: false })).err).toBe('Ok');
    await server.pass(2100);
    expect((await client.call('exists', { path: '/c', watch: false })).err).toBe('NoNode');
  });

  it('option znode.container.maxPerMinute: empty containers are deleted at no more than this rate', async () => {
    const server = await VirtualServer.start([], {
      definitions: ['znode.container.checkIntervalMs=1000', 'znode.container.maxPerMinute=60', 'znode.container.maxNeverUsedIntervalMs=1'],
    });
    const client = await server.join(undefined, 60_000);
    for (let n = 0; n < 6; n++)
      await client.call('createContainer', { path: `/c${n}`, data: null, acl: openAcl, flags: CreateMode.container });
    const before = server.runtime.inspect.nodeCount();
    await server.pass(4000, 100);
    const gone = before - server.runtime.inspect.nodeCount();
    expect(gone).toBeGreaterThan(1);
    expect(gone).toBeLessThan(6);
  });

  it('E13: option znode.container.maxNeverUsedIntervalMs: a container that never had a child is deleted after this time', async () => {
    const server = await VirtualServer.start([], {
      definitions: ['znode.container.checkIntervalMs=1000', 'znode.container.maxNeverUsedIntervalMs=5000'],
    });
    const client = await server.join(undefined, 60_000);
    await client.call('createContainer', { path: '/c', data: null, acl: openAcl, flags: CreateMode.container });
    await server.pass(4000);
    expect((await client.call('exists', { path: '/c', watch: false })).err).toBe('Ok');
    await server.pass(3000);
    expect((await client.call('exists', { path: '/c', watch: false })).err).toBe('NoNode');
  });

  it('option reconfigEnabled: a standalone server refuses reconfig with Unimplemented, or with ReconfigDisabled if it is off', async () => {
    for (const [value, err] of [
      [true, 'Unimplemented'],
      [false, 'ReconfigDisabled'],
    ] as const) {
      const client = await (await VirtualServer.start(`reconfigEnabled=${value}`)).join();
      const nothing = { joiningServers: null, leavingServers: null, newMembers: null, curConfigId: -1 };
      expect((await client.call('reconfig', nothing)).err).toBe(err);
    }
  });
});

describe('unsafe settings', () => {
  it('cause a warning at the start and are shown by srvr and mntr as long as the server runs', async () => {
    const server = await VirtualServer.start(['forceSync=no', 'skipACL=yes', '4lw.commands.whitelist=*']);
    expect(server.lines.at(-1)).toBe(
      'warn serving UNSAFELY, with forceSync=no, skipACL=yes; srvr and mntr show it for as long as this server runs',
    );
    expect((await server.word('srvr')).endsWith('\nUnsafe settings: forceSync=no, skipACL=yes\n')).toBe(true);
    expect((await server.word('mntr')).endsWith('\nzk_unsafe_settings\t2\n')).toBe(true);
  });

  it('are not reported when there are none', async () => {
    const server = await VirtualServer.start('4lw.commands.whitelist=*');
    expect([...server.lines, await server.word('srvr'), await server.word('mntr')].filter((text) => /unsafe/i.test(text))).toEqual([]);
  });
});

describe('access control', () => {
  it('option skipACL: every client may do everything', async () => {
    for (const [value, err] of [
      ['yes', 'Ok'],
      ['no', 'NoAuth'],
    ]) {
      const client = await (await VirtualServer.start(`skipACL=${value}`)).join();
      await client.call('create', { path: '/a', data: null, acl: world(Perms.delete), flags: 0 });
      expect((await client.call('getData', { path: '/a', watch: false })).err).toBe(err);
      expect((await client.call('setData', { path: '/a', data: null, version: -1 })).err).toBe(err);
    }
  });

  it('A35: option DigestAuthenticationProvider.enabled: the scheme digest authenticates clients, unless it is off', async () => {
    for (const [value, err] of [
      [true, 'Ok'],
      [false, 'AuthFailed'],
    ] as const) {
      const client = await (await VirtualServer.start(`DigestAuthenticationProvider.enabled=${value}`)).join();
      expect((await client.call('auth', { type: 0, scheme: 'digest', auth: Buffer.from('bob:secret') })).err).toBe(err);
    }
  });

  it.each([
    ['SHA-256', ['DigestAuthenticationProvider.digestAlg=SHA-256'], digestId('super:secret', 'SHA-256')],
    ['SHA-1 by default', [], 'super:' + createHash('sha1').update('super:secret').digest('base64')],
  ])(
    'A35, A36: option DigestAuthenticationProvider.superDigest, DigestAuthenticationProvider.digestAlg: that user passes every ACL, by %s',
    async (_by, lines, superDigest) => {
      const server = await VirtualServer.start([...lines, `DigestAuthenticationProvider.superDigest=${superDigest}`]);
      const client = await server.join();
      await client.call('create', { path: '/a', data: null, acl: world(Perms.delete), flags: 0 });
      expect((await client.call('getData', { path: '/a', watch: false })).err).toBe('NoAuth');
      await client.call('auth', { type: 0, scheme: 'digest', auth: Buffer.from('super:secret') });
      expect((await client.call('getData', { path: '/a', watch: false })).err).toBe('Ok');
    },
  );

  it('A38: option enforce.auth.enabled, enforce.auth.schemes: a client without such an authentication is refused', async () => {
    const server = await VirtualServer.start(['enforce.auth.enabled=true', 'enforce.auth.schemes=digest']);
    const [stranger, known] = [await server.join(), await server.join()];
    expect((await stranger.create('/a')).err).toBe('SessionClosedRequireSaslAuth');
    expect(stranger.closed).toBe(true);
    await known.call('auth', { type: 0, scheme: 'digest', auth: Buffer.from('bob:secret') });
    expect((await known.create('/a')).err).toBe('Ok');
  });

  it('A34, A76, E24: option 4lw.commands.whitelist, readonlymode.enabled: listed words are answered, and isro in read-only mode', async () => {
    const server = await VirtualServer.start('4lw.commands.whitelist=ruok');
    expect(await server.word('ruok')).toBe('imok');
    expect(await server.word('isro')).toContain('not in the whitelist');
    const readOnly = await VirtualServer.start([], { definitions: ['readonlymode.enabled=true'] });
    expect(await readOnly.word('isro')).toBe('rw');
    const all = await VirtualServer.start('4lw.commands.whitelist=*');
    expect(await all.word('gtmk')).toBe('306');
  });
});
