/** Whole servers whose observers learn from followers, and an observer that writes nothing to its disk. */
import { CreateMode, openAcl, OpCode, operations, writeConnectRequest, Writer } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { addressOf, type RawEnd } from './ports/peer-rig.ts';
import { clientPort, type EnsembleRuntimeNode, EnsembleRuntimeRig, type EnsembleRuntimeRigOptions } from './ensemble-runtime-rig.ts';

const observerMasterPort = 2191;

const options = { observerMasterPort };

function startRig(setup: EnsembleRuntimeRigOptions = {}): Promise<EnsembleRuntimeRig> {
  return EnsembleRuntimeRig.start({ servers: 4, observers: 1, ...setup, options: { ...options, ...setup.options } });
}

function masterSid(node: EnsembleRuntimeNode): number | undefined {
  return node.runtime!.inspect.ensemble()!.learnerMaster;
}

function handshake(): Buffer {
  const writer = new Writer();
  const start = writer.beginFrame();
  const passwd = Buffer.alloc(16);
  writeConnectRequest(writer, { protocolVersion: 0, lastZxidSeen: 0, timeOut: 20_000, sessionId: 0n, passwd, readOnly: false });
  writer.endFrame(start);
  return Buffer.from(writer.written());
}

function frameOf(write: (writer: Writer) => void, opCode: number = OpCode.reconfig): Buffer {
  const writer = new Writer();
  const start = writer.beginFrame();
  writer.int32(1);
  writer.int32(opCode);
  write(writer);
  writer.endFrame(start);
  return Buffer.from(writer.written());
}

/** A client of this server that creates znodes, one after the other. */
async function creates(rig: EnsembleRuntimeRig, node: EnsembleRuntimeNode, from: number, count: number): Promise<void> {
  const end: RawEnd = rig.dial(node, clientPort);
  end.send(handshake());
  await rig.until(() => end.received.length >= 41, 2000);
  const writer = new Writer();
  for (let each = from; each < from + count; each++) {
    const start = writer.beginFrame();
    writer.int32(each + 1);
    writer.int32(OpCode.create);
    operations.create.request.write(writer, { path: `/z${each}`, data: Buffer.alloc(10), acl: openAcl, flags: CreateMode.persistent });
    writer.endFrame(start);
  }
  end.send(Buffer.from(writer.written()));
  const zxid = rig.leader.runtime!.inspect.lastZxid();
  await rig.until(() => rig.leader.runtime!.inspect.lastZxid() >= zxid + count, 5000);
  await rig.until(() => rig.nodes.every((each) => each.runtime!.inspect.lastZxid() === rig.leader.runtime!.inspect.lastZxid()), 5000);
}

describe('observerMasterPort', () => {
  it('A55: the port is open at followers, and an observer learns from one of them', async () => {
    const rig = await startRig();
    const ends = rig.nodes.map((node) => rig.dial(node, observerMasterPort));
    await rig.rig.run(20);
    const open = rig.nodes.filter((_, index) => ends[index]!.closed !== 'ECONNREFUSED');
    expect(open).toEqual(rig.learners.filter(({ role }) => role === 'follower'));
    const observer = rig.nodes[3]!;
    const master = rig.nodes[masterSid(observer)! - 1]!;
    expect(master.role).toBe('follower');
    expect(await rig.word(observer, 'mntr')).toContain(`zk_observer_master_id\t${master.sid}\n`);
    expect(await rig.word(master, 'mntr')).toContain('zk_synced_observers\t1\n');
    expect(await rig.word(rig.leader, 'mntr')).toContain('zk_synced_observers\t0\n');
    await creates(rig, observer, 0, 20);
    expect(new Set(rig.nodes.map(({ runtime }) => runtime!.inspect.nodeCount())).size).toBe(1);
  });

  it('A55: without the port an observer learns from its leader, and a follower reports no observers', async () => {
    const rig = await EnsembleRuntimeRig.start({ servers: 4, observers: 1 });
    expect(masterSid(rig.nodes[3]!)).toBe(rig.leader.sid);
    const follower = rig.learners.find(({ role }) => role === 'follower')!;
    expect(await rig.word(follower, 'mntr')).not.toContain('zk_synced_observers');
  });

  it('A55: an observer whose follower is lost learns from the other one, or from the next', async () => {
    const rig = await startRig();
    const observer = rig.nodes[3]!;
    const first = rig.nodes[masterSid(observer)! - 1]!;
    await rig.close(first);
    await rig.until(() => observer.role === 'observer' && masterSid(observer) !== first.sid, 20_000);
    expect(rig.nodes[masterSid(observer)! - 1]!.role).toBe('follower');
  });

  it('A55, A58: the port moves with the address of its follower, whose observers come back', async () => {
    const rig = await startRig({ core: { reconfigEnabled: true, skipAcl: true } });
    const observer = rig.nodes[3]!;
    const master = rig.nodes[masterSid(observer)! - 1]!;
    rig.rig.wire.name('zk.new', [addressOf(master.sid)]);
    const network = rig.rig.wire.stack(addressOf(master.sid));
    const [listen, resolve, asked] = [network.listen.bind(network), network.resolve.bind(network), [] as (string | undefined)[]];
    // At its own machine the name has another address.
    network.resolve = (host) => (host === 'zk.new' ? Promise.resolve(['10.0.1.1']) : resolve(host));
    network.listen = (at) => {
      if (at.port === observerMasterPort) asked.push(at.address);
      return listen(at);
    };
    const line = ({ sid }: EnsembleRuntimeNode) =>
      `server.${sid}=${sid === master.sid ? 'zk.new:2889:3889' : `${addressOf(sid)}:2888:3888`}:${sid === 4 ? 'observer' : 'participant'};${addressOf(sid)}:2181`;
    const record = { joiningServers: null, leavingServers: null, newMembers: rig.nodes.map(line).join(','), curConfigId: -1 };
    const end = rig.dial(rig.leader, clientPort);
    end.send(Buffer.concat([handshake(), frameOf((writer) => operations.reconfig.request.write(writer, record))]));
    await rig.until(() => asked.length > 0, 5000);
    expect(asked).toEqual(['10.0.1.1']);
    await rig.until(() => rig.isWhole && masterSid(observer) !== undefined, 20_000);
    await creates(rig, observer, 0, 5);
    expect(rig.nodes.map(({ failure }) => failure)).toEqual([undefined, undefined, undefined, undefined]);
  });

  it('A55: a follower that cannot bind the port says so, and follows', async () => {
    const rig = new EnsembleRuntimeRig({ servers: 3, options: { ...options, bindTriesMax: 1 } });
    for (const { sid } of rig.nodes)
      await rig.rig.wire.stack(addressOf(sid)).listen({ address: undefined, port: observerMasterPort, backlog: undefined });
    await Promise.all([...rig.nodes.map((node) => rig.boot(node)), rig.rig.run(50)]);
    await rig.until(() => rig.isWhole, 10_000);
    await rig.rig.run(1500, 50);
    const complaint =
      /^error The port for observers, 10\.0\.0\.\d:2191, could not be bound: .* This server accepts no observers without it.$/;
    for (const node of rig.learners) expect(node.lines.filter((line) => complaint.test(line))).toHaveLength(1);
    expect(rig.isWhole).toBe(true);
  });

  it('A55: observerMaster.sizeLimit bounds the txns kept in memory, beyond which an observer is sent more than those', async () => {
    const syncedBy = async (observerMasterSizeLimitBytes: number): Promise<string[]> => {
      // Logs are not read, so what is not in memory is sent as a snapshot.
      const rig = await startRig({ options: { observerMasterSizeLimitBytes, snapshotSizeFactor: -1 } });
      const observer = rig.nodes[3]!;
      await creates(rig, observer, 1000, 3);
      await rig.close(observer);
      const others = rig.nodes.slice(0, 3);
      const end = rig.dial(rig.leader, clientPort);
      end.send(handshake());
      await rig.until(() => end.received.length >= 41, 2000);
      const writer = new Writer();
      for (let each = 0; each < 50; each++) {
        const start = writer.beginFrame();
        writer.int32(each + 1);
        writer.int32(OpCode.create);
        operations.create.request.write(writer, { path: `/z${each}`, data: Buffer.alloc(100), acl: openAcl, flags: CreateMode.persistent });
        writer.endFrame(start);
      }
      end.send(Buffer.from(writer.written()));
      await rig.until(() => others.every(({ runtime }) => runtime!.inspect.nodeCount() >= 58), 5000);
      const counts = async (name: string): Promise<number> => {
        let count = 0;
        for (const node of others) count += Number(new RegExp(`zk_${name}\t(\\d+)`).exec(await rig.word(node, 'mntr'))![1]);
        return count;
      };
      const names = ['diff_count', 'snap_count'];
      const before = new Map<string, number>();
      for (const name of names) before.set(name, await counts(name));
      await Promise.all([rig.boot(observer), rig.rig.run(50)]);
      await rig.until(() => observer.role === 'observer' && observer.runtime!.inspect.nodeCount() >= 58, 10_000);
      const more: string[] = [];
      for (const name of names) if ((await counts(name)) > before.get(name)!) more.push(name);
      return more;
    };
    expect(await syncedBy(32 * 1024 * 1024)).toEqual(['diff_count']);
    expect(await syncedBy(1000)).toEqual(['snap_count']);
  });
});

describe('observer.reconnectDelayMs', () => {
  it('spreads the dials of the observers of a leader over time', async () => {
    const times = async (observerReconnectDelayMs: number): Promise<number[]> => {
      const rig = new EnsembleRuntimeRig({ servers: 7, observers: 4, options: { observerReconnectDelayMs } });
      await Promise.all([...rig.nodes.map((node) => rig.boot(node)), rig.rig.run(50)]);
      const servedMs = new Map<number, number>();
      const startMs = rig.rig.clock.now().elapsedMs;
      await rig.until(() => {
        for (const { sid, role } of rig.nodes.slice(3))
          if (role === 'observer' && !servedMs.has(sid)) servedMs.set(sid, rig.rig.clock.now().elapsedMs - startMs);
        return servedMs.size === 4;
      }, 20_000);
      return [...servedMs.values()];
    };
    const [atOnce, spread] = [await times(0), await times(5000)];
    expect(Math.max(...atOnce)).toBeLessThan(1000);
    expect(Math.max(...spread)).toBeGreaterThan(1500);
    expect(Math.max(...spread) - Math.min(...spread)).toBeGreaterThan(500);
  });
});

describe('syncEnabled=false', () => {
  const filesOf = async ({ disk }: EnsembleRuntimeNode): Promise<readonly string[]> => {
    const attached = disk.attach();
    return (await attached.list('/data/version-2')).toSorted();
  };

  it('A54: an observer writes no txn and no snapshot, serves nevertheless, and fetches everything after a restart', async () => {
    const rig = new EnsembleRuntimeRig({ servers: 4, observers: 1, options: { syncEnabled: false } });
    await Promise.all([...rig.nodes.map((node) => rig.boot(node)), rig.rig.run(50)]);
    await rig.until(() => rig.isWhole, 5000);
    const observer = rig.nodes[3]!;
    await creates(rig, observer, 0, 30);
    expect(observer.runtime!.inspect.nodeCount()).toBe(35);
    await rig.close(observer);
    const files = await filesOf(observer);
    // The snapshot of the empty tree, with which every folder begins, and the epochs.
    expect(files.filter((name) => /^(log|snapshot)\./.test(name))).toEqual(['snapshot.0']);
    await Promise.all([rig.boot(observer), rig.rig.run(50)]);
    await rig.until(() => observer.role === 'observer', 10_000);
    expect(observer.runtime!.inspect.nodeCount()).toBe(35);
    await creates(rig, observer, 30, 5);
    // A follower in the same ensemble does write its log.
    await rig.close(rig.nodes[0]!);
    expect((await filesOf(rig.nodes[0]!)).some((name) => name.startsWith('log.'))).toBe(true);
  });

  it('A54, A58: such an observer stops when a reconfiguration is about to give it a vote', async () => {
    const rig = new EnsembleRuntimeRig({
      servers: 4,
      observers: 1,
      options: { syncEnabled: false },
      core: { reconfigEnabled: true, skipAcl: true },
    });
    await Promise.all([...rig.nodes.map((node) => rig.boot(node)), rig.rig.run(50)]);
    await rig.until(() => rig.isWhole, 5000);
    const observer = rig.nodes[3]!;
    const joiningServers = `server.4=${addressOf(4)}:2888:3888:participant;${addressOf(4)}:2181`;
    const record = { joiningServers, leavingServers: null, newMembers: null, curConfigId: -1 };
    const end = rig.dial(rig.leader, clientPort);
    end.send(Buffer.concat([handshake(), frameOf((writer) => operations.reconfig.request.write(writer, record))]));
    await rig.until(() => observer.failure !== undefined, 5000);
    expect(String(observer.failure)).toMatch(/makes this server a participant, .* restart it, and it keeps one$/);
    // Its own acknowledgement is not needed.
    await rig.until(() => end.received.length > 41, 5000);
    expect(rig.nodes.slice(0, 3).map(({ failure }) => failure)).toEqual([undefined, undefined, undefined]);
  });

  it('A54: the epoch file of such an observer never claims a history that is not on its disk', async () => {
    const rig = new EnsembleRuntimeRig({ servers: 4, observers: 1, options: { syncEnabled: false } });
    await Promise.all([...rig.nodes.map((node) => rig.boot(node)), rig.rig.run(50)]);
    await rig.until(() => rig.isWhole, 5000);
    const observer = rig.nodes[3]!;
    await creates(rig, observer, 0, 3);
    await rig.close(observer);
    const disk = observer.disk.attach();
    const read = async (name: string): Promise<string> => {
      const file = await disk.open(`/data/version-2/${name}`, 'existing');
      return (await file.read(0, 64)).toString('latin1');
    };
    expect([await read('acceptedEpoch'), await read('currentEpoch')]).toEqual(['1', '0']);
  });
});
