/** Whole servers whose configuration changes: their ports follow it. */
import {
  formatQuorumConfig,
  operations,
  parseQuorumConfig,
  type QuorumConfig,
  readReplyHeader,
  Reader,
  writeConnectRequest,
  Writer,
} from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import type { EnsembleOptions } from '../src/index.ts';
import { addressOf, electionPort, quorumPort } from './ports/peer-rig.ts';
import { clientPort, type EnsembleRuntimeNode, EnsembleRuntimeRig } from './ensemble-runtime-rig.ts';

const line = (
  sid: number,
  { host = addressOf(sid), client = clientPort, election = electionPort, role = 'participant', clientHost = addressOf(sid) } = {},
) => `server.${sid}=${host}:${quorumPort}:${election}:${role};${clientHost}:${client}`;

const fourVoters = [1, 2, 3, 4].map((sid) => line(sid));

async function started(): Promise<EnsembleRuntimeRig> {
  return EnsembleRuntimeRig.start({ core: { reconfigEnabled: true, skipAcl: true } });
}

/** A reconfig by a new client at this server; its error code, undefined if the connection closes. */
async function reconfigure(
  rig: EnsembleRuntimeRig,
  node: EnsembleRuntimeNode,
  lines: readonly string[],
  port = clientPort,
): Promise<number | undefined> {
  const end = rig.dial(node, port, '10.0.9.8');
  const writer = new Writer();
  let start = writer.beginFrame();
  writeConnectRequest(writer, {
    protocolVersion: 0,
    lastZxidSeen: 0,
    timeOut: 20_000,
    sessionId: 0n,
    passwd: Buffer.alloc(16),
    readOnly: false,
  });
  writer.endFrame(start);
  start = writer.beginFrame();
  writer.int32(1);
  writer.int32(operations.reconfig.opCode);
  operations.reconfig.request.write(writer, { joiningServers: null, leavingServers: null, newMembers: lines.join(','), curConfigId: -1 });
  writer.endFrame(start);
  end.send(Buffer.from(writer.written()));
  const handshakeBytes = 41;
  await rig.until(() => end.received.length > handshakeBytes || end.closed !== undefined, 5000);
  if (end.received.length <= handshakeBytes) return undefined;
  return readReplyHeader(new Reader(end.received.subarray(handshakeBytes + 4))).err;
}

/** The addresses at which the server starts to listen from now on, at this port. */
function boundAt(rig: EnsembleRuntimeRig, node: EnsembleRuntimeNode, port: number): (string | undefined)[] {
  const bound: (string | undefined)[] = [];
  const network = rig.rig.wire.stack(addressOf(node.sid));
  const listen = network.listen.bind(network);
  network.listen = async (options) => {
    const listener = await listen(options);
    if (options.port === port) bound.push(options.address);
    return listener;
  };
  return bound;
}

const configOf = (node: EnsembleRuntimeNode): QuorumConfig => parseQuorumConfig(node.runtime!.inspect.ensemble()!.configText);

describe('A58: a reconfiguration', () => {
  it('moves the client port of a server, and keeps its connected clients', async () => {
    const rig = await started();
    const node = rig.learners[0]!;
    const others = [1, 2, 3].filter((sid) => sid !== node.sid).map((sid) => line(sid));
    const connected = rig.dial(node, clientPort);
    await rig.rig.run(50);
    expect(await reconfigure(rig, rig.leader, [...others, line(node.sid, { client: 2182 })])).toBe(0);
    await rig.until(() => node.lines.some((each) => /has this server listen for clients on 10\.0\.0\.\d:2182/.test(each)), 5000);
    const [old, moved] = [rig.dial(node, clientPort, '10.0.9.7'), rig.dial(node, 2182, '10.0.9.6')];
    await rig.rig.run(50);
    expect([old.closed, moved.closed, connected.closed]).toEqual(['ECONNREFUSED', undefined, undefined]);
  });

  it('moves the client port to the address of the last of two configurations, if the name of the first resolves late', async () => {
    const rig = await started();
    const node = rig.learners[0]!;
    const others = [1, 2, 3].filter((sid) => sid !== node.sid).map((sid) => line(sid));
    const network = rig.rig.wire.stack(addressOf(node.sid));
    let answer: (addresses: string[]) => void = () => undefined;
    const resolve = network.resolve.bind(network);
    network.resolve = (host) => (host === 'zk.late' ? new Promise((resolved) => (answer = resolved)) : resolve(host));
    expect(await reconfigure(rig, rig.leader, [...others, line(node.sid, { client: 2182, clientHost: 'zk.late' })])).toBe(0);
    expect(await reconfigure(rig, rig.leader, [...others, line(node.sid, { client: 2183 })])).toBe(0);
    await rig.rig.run(500, 5);
    answer([addressOf(node.sid)]);
    await rig.until(() => node.lines.some((each) => /has this server listen for clients on 10\.0\.0\.\d:2183/.test(each)), 5000);
    await rig.rig.run(50);
    const ends = [clientPort, 2182, 2183].map((port, index) => rig.dial(node, port, `10.0.9.${index}`));
    await rig.rig.run(50);
    expect(ends.map(({ closed }) => closed)).toEqual(['ECONNREFUSED', 'ECONNREFUSED', undefined]);
  });

  it('moves the client port when the new one is free at last', async () => {
    const rig = await started();
    const node = rig.learners[0]!;
    const others = [1, 2, 3].filter((sid) => sid !== node.sid).map((sid) => line(sid));
    const other = await rig.rig.wire.stack(addressOf(node.sid)).listen({ address: undefined, port: 2182, backlog: undefined });
    expect(await reconfigure(rig, rig.leader, [...others, line(node.sid, { client: 2182 })])).toBe(0);
    await rig.until(() => node.lines.some((each) => /^error This server does not listen for clients on .*:2182/.test(each)), 5000);
    await other.close();
    await rig.until(() => node.lines.some((each) => /has this server listen for clients on 10\.0\.0\.\d:2182/.test(each)), 5000);
    const [old, moved] = [rig.dial(node, clientPort, '10.0.9.7'), rig.dial(node, 2182, '10.0.9.6')];
    await rig.rig.run(50);
    expect([old.closed, moved.closed]).toEqual(['ECONNREFUSED', undefined]);
    expect(node.lines.filter((each) => each.startsWith('error'))).toHaveLength(1);
  });

  it('lets a server listen for clients at all its addresses, at the port that it has', async () => {
    const rig = await started();
    const node = rig.learners[0]!;
    const others = [1, 2, 3].filter((sid) => sid !== node.sid).map((sid) => line(sid));
    const bound = boundAt(rig, node, clientPort);
    rig.rig.wire.name('zk.here', [addressOf(node.sid)]);
    for (const [at, clientHost] of ['zk.here', '0.0.0.0'].entries()) {
      expect(await reconfigure(rig, rig.leader, [...others, line(node.sid, { clientHost })])).toBe(0);
      await rig.until(() => node.lines.filter((each) => /has this server listen for clients on/.test(each)).length > at, 5000);
    }
    expect(bound).toEqual([addressOf(node.sid), undefined]);
    expect(await rig.word(node, 'ruok')).toBe('imok');
  });

  it('leaves the client port of a server open while its new address, of the same port, is not one of its machine', async () => {
    const rig = await started();
    const node = rig.learners[0]!;
    const others = [1, 2, 3].filter((sid) => sid !== node.sid).map((sid) => line(sid));
    const bound = boundAt(rig, node, clientPort);
    rig.rig.wire.name('zk.later', ['10.0.8.8']);
    expect(await reconfigure(rig, rig.leader, [...others, line(node.sid, { clientHost: 'zk.later' })])).toBe(0);
    await rig.until(() => node.lines.some((each) => each.startsWith('error This server does not listen for clients on zk.later')), 5000);
    await rig.rig.run(10_000, 10);
    expect(bound).toEqual([]);
    rig.rig.wire.name('zk.later', [addressOf(node.sid)]);
    await rig.until(() => node.lines.some((each) => /has this server listen for clients on 10\.0\.0\.\d:2181/.test(each)), 20_000);
    expect(bound).toEqual([addressOf(node.sid)]);
    expect(await rig.word(node, 'ruok')).toBe('imok');
  });

  it('leaves a server where it is if the new client port is in use, and its log says so', async () => {
    const rig = await started();
    const node = rig.learners[0]!;
    const others = [1, 2, 3].filter((sid) => sid !== node.sid).map((sid) => line(sid));
    expect(await reconfigure(rig, rig.leader, [...others, line(node.sid, { client: electionPort })])).toBe(0);
    await rig.until(
      () => node.lines.some((each) => /^error This server does not listen for clients on .* moves when the new one is free/.test(each)),
      5000,
    );
    expect(await rig.word(node, 'ruok')).toBe('imok');
  });

  it('moves the election port of a server', async () => {
    const rig = await started();
    const node = rig.learners[0]!;
    const others = [1, 2, 3].filter((sid) => sid !== node.sid).map((sid) => line(sid));
    expect(await reconfigure(rig, rig.leader, [...others, line(node.sid, { election: 4888 })])).toBe(0);
    await rig.rig.run(1000, 10);
    const [old, moved] = [rig.dial(node, electionPort, '10.0.9.7'), rig.dial(node, 4888, '10.0.9.6')];
    await rig.rig.run(50);
    expect([old.closed, moved.closed]).toEqual(['ECONNREFUSED', undefined]);
    await rig.close(rig.leader);
    await rig.until(() => rig.nodes.some(({ role }) => role === 'leader'), 20_000);
  });

  it('lets a server listen for votes at all its addresses and at one, at the port that it has', async () => {
    const rig = await started();
    const node = rig.learners[0]!;
    const others = [1, 2, 3].filter((sid) => sid !== node.sid).map((sid) => line(sid));
    const bound = boundAt(rig, node, electionPort);
    for (const host of ['0.0.0.0', addressOf(node.sid)]) {
      expect(await reconfigure(rig, rig.leader, [...others, line(node.sid, { host })])).toBe(0);
      await rig.rig.run(5000, 10);
    }
    expect(bound).toEqual([undefined, addressOf(node.sid)]);
    expect(node.lines.filter((each) => /^(?:warn|error)/.test(each))).toEqual([]);
    await rig.close(rig.leader);
    await rig.until(() => rig.nodes.some(({ role }) => role === 'leader'), 20_000);
  });

  it('gives a server another name of the same address: its election port stays open, and nothing is wrong', async () => {
    const rig = await started();
    const node = rig.learners[0]!;
    rig.rig.wire.name('zk.new', [addressOf(node.sid)]);
    const others = [1, 2, 3].filter((sid) => sid !== node.sid).map((sid) => line(sid));
    expect(await reconfigure(rig, rig.leader, [...others, line(node.sid, { host: 'zk.new' })])).toBe(0);
    await rig.rig.run(5000, 10);
    expect(node.lines.filter((each) => /^(?:warn|error)/.test(each))).toEqual([]);
    // Also when it gets the old name back.
    expect(await reconfigure(rig, rig.leader, [...others, line(node.sid)])).toBe(0);
    await rig.rig.run(5000, 10);
    expect(node.lines.filter((each) => /^(?:warn|error)/.test(each))).toEqual([]);
    await rig.close(rig.leader);
    await rig.until(() => rig.nodes.some(({ role }) => role === 'leader'), 20_000);
  });

  it('is in the log of a server that starts with older files: it dials the servers where that has them', async () => {
    const rig = await started();
    const node = rig.learners[0]!;
    const moved = rig.leader;
    const others = [1, 2, 3].filter((sid) => sid !== moved.sid).map((sid) => line(sid));
    expect(await reconfigure(rig, node, [...others, line(moved.sid, { election: 4888 })])).toBe(0);
    await rig.until(() => rig.nodes.every((each) => configOf(each).version > 0), 5000);
    for (const each of rig.nodes) await rig.close(each);
    const dialled = new Set<string>();
    const network = rig.rig.wire.stack(addressOf(node.sid));
    const connect = network.connect.bind(network);
    network.connect = (endpoint) => {
      dialled.add(`${endpoint.address}:${endpoint.port}`);
      return connect(endpoint);
    };
    await Promise.all([rig.boot(node), rig.rig.run(1000, 10)]);
    expect([...dialled]).toContain(`${addressOf(moved.sid)}:4888`);
  });

  it.each([1, 3])(
    'is in the log of a server of %i that starts with older files: it listens for clients where that says',
    async (servers) => {
      const path = '/conf/zoo.cfg';
      const configFile = { path, namesServers: true, edit: (text: string, file: string) => `${text}dynamicConfigFile=${file}\n` };
      const options = { standaloneEnabled: false, configFile };
      const rig = new EnsembleRuntimeRig({ servers, core: { reconfigEnabled: true, skipAcl: true }, options });
      for (const { disk } of rig.nodes) disk.putFile(path, Buffer.from('tickTime=500\n'));
      await Promise.all([...rig.nodes.map((each) => rig.boot(each)), rig.rig.run(50)]);
      await rig.until(() => rig.isWhole, 5000);
      const node = rig.nodes[0]!;
      const others = rig.nodes.slice(1).map(({ sid }) => line(sid));
      // The log alone shows that the first of two is in force.
      const ask = (election: number, port: number) =>
        reconfigure(rig, rig.leader, [...others, line(node.sid, { client: 2182, election })], port);
      expect(await ask(electionPort, clientPort)).toBe(0);
      await rig.until(() => node.lines.some((each) => /has this server listen for clients on 10\.0\.0\.\d:2182/.test(each)), 5000);
      expect(await ask(4888, rig.leader === node ? 2182 : clientPort)).toBe(0);
      await rig.close(node);
      await Promise.all([rig.boot(node), rig.rig.run(1000, 10)]);
      const [old, moved] = [rig.dial(node, clientPort, '10.0.9.7'), rig.dial(node, 2182, '10.0.9.6')];
      await rig.rig.run(50);
      expect([old.closed, moved.closed]).toEqual(['ECONNREFUSED', undefined]);
    },
  );

  it('leaves a removed server its own address, by which others dial back', async () => {
    const rig = await started();
    const removed = rig.learners.find(({ sid }) => sid === Math.min(...rig.learners.map((each) => each.sid)))!;
    const others = rig.nodes.filter((node) => node !== removed);
    expect(
      await reconfigure(
        rig,
        rig.leader,
        others.map(({ sid }) => line(sid)),
      ),
    ).toBe(0);
    await rig.until(() => rig.nodes.every((node) => !configOf(node).servers.has(removed.sid)), 5000);
    // The ensemble restarts, and the removed server has to introduce itself to learn of the leader.
    const leader = rig.leader;
    await rig.close(leader);
    await Promise.all([rig.boot(leader), rig.rig.run(100)]);
    await rig.until(() => rig.isWhole && removed.role === 'follower', 30_000);
    expect(formatQuorumConfig(configOf(removed))).toBe(formatQuorumConfig(configOf(rig.leader)));
  });
});

describe('A58: a configuration that cannot be written into files', () => {
  const snapshots = (node: EnsembleRuntimeNode) => node.disk.files().filter((path) => /\/snapshot\.[0-9a-f]+$/.test(path));
  const isInOne = (node: EnsembleRuntimeNode) =>
    snapshots(node).some((path) => node.disk.contents(path).includes(`version=${configOf(node).version.toString(16)}`));

  /** Three servers that cannot write beside zoo.cfg; a reconfig leaves these. */
  async function reduced(lines: readonly string[], options: Partial<EnsembleOptions> = {}, observers = 0): Promise<EnsembleRuntimeRig> {
    const configFile = { path: '/conf/zoo.cfg', namesServers: true, edit: (text: string) => text };
    const core = { reconfigEnabled: true, skipAcl: true };
    const rig = new EnsembleRuntimeRig({ servers: 3, observers, core, options: { configFile, ...options } });
    for (const { disk } of rig.nodes) {
      disk.putFile('/conf/zoo.cfg', Buffer.from('tickTime=1000\n'));
      disk.fault = ({ operation, path }) => (operation === 'open' && /zoo\.cfg\./.test(path) ? { code: 'EROFS' } : undefined);
    }
    await Promise.all([...rig.nodes.map((node) => rig.boot(node)), rig.rig.run(400)]);
    await rig.until(() => rig.isWhole, 10_000);
    expect(await reconfigure(rig, rig.leader, lines)).toBe(0);
    await rig.until(() => rig.nodes.every((node) => configOf(node).servers.size === lines.length), 5000);
    return rig;
  }

  it('is in a snapshot once it is committed', async () => {
    const rig = await reduced([1, 2].map((sid) => line(sid)));
    await rig.until(() => rig.nodes.every(isInOne), 5000);
    expect(rig.nodes.every(({ logged }) => logged.some(({ event }) => event === 'config.not-written'))).toBe(true);
  });

  it('is in no snapshot of a server without a log: its logs would not go on after it', async () => {
    const rig = await reduced(
      [1, 2].map((sid) => line(sid)),
      { syncEnabled: false },
      1,
    );
    const [one, two, observer] = rig.nodes as [EnsembleRuntimeNode, EnsembleRuntimeNode, EnsembleRuntimeNode];
    await rig.until(() => isInOne(one) && isInOne(two), 5000);
    await rig.rig.run(500, 10);
    expect(['config.not-written', 'server.no-log'].every((event) => observer.logged.some((each) => each.event === event))).toBe(true);
    expect(snapshots(observer).map((path) => path.split('.').at(-1))).toEqual(['0']);
  });
});

describe('a server without a log (syncEnabled=false) that gets a vote', () => {
  const zooCfg = '/conf/zoo.cfg';
  const allVote = (version: number): QuorumConfig => ({
    ...parseQuorumConfig(fourVoters.join('\n')),
    version,
  });
  /** Three voters and an observer, each with files of its configuration on a disk that takes its time. */
  const setUp = (options: Partial<EnsembleOptions> = {}): EnsembleRuntimeRig => {
    const configFile = { path: zooCfg, namesServers: true, edit: (text: string, file: string) => `${text}dynamicConfigFile=${file}\n` };
    const rig = new EnsembleRuntimeRig({
      servers: 4,
      observers: 1,
      core: { reconfigEnabled: true, skipAcl: true },
      options: { syncEnabled: false, configFile, ...options },
    });
    for (const { disk } of rig.nodes) {
      disk.putFile(zooCfg, Buffer.from('tickTime=1000\n'));
      disk.schedule = (_call, complete) => void rig.rig.clock.after(3, complete);
    }
    return rig;
  };
  const boot = async (rig: EnsembleRuntimeRig): Promise<void> => {
    await Promise.all([...rig.nodes.map((node) => rig.boot(node)), rig.rig.run(400)]);
  };

  it('P32: ends before it acknowledges anything, and only after the configuration is in its files', async () => {
    const rig = setUp();
    await boot(rig);
    await rig.until(() => rig.isWhole, 10_000);
    const observer = rig.nodes[3]!;
    const failures: { readonly text: string; readonly isStored: boolean }[] = [];
    const isStored = () =>
      observer.disk
        .files()
        .some((path) => /zoo\.cfg\.dynamic/.test(path) && /server\.4=.*participant/.test(observer.disk.contents(path).toString('latin1')));
    Object.defineProperty(observer, 'failure', {
      set: (error) => {
        failures.push({ text: String(error), isStored: isStored() });
      },
    });
    void reconfigure(rig, rig.leader, fourVoters).catch(() => undefined);
    await rig.until(() => failures.length > 0, 5000);
    expect(failures[0]!.text).toMatch(/makes this server a participant, or is about to, .* restart it, and it keeps one/);
    expect(failures[0]!.isStored).toBe(true);
  });

  it('P32: loses its connections with other servers at once, although the disk takes its time', async () => {
    const rig = setUp();
    await boot(rig);
    await rig.until(() => rig.isWhole, 10_000);
    const observer = rig.nodes[3]!;
    const withOthers = () =>
      rig.rig.cnxns.filter(({ dialer, listener }) => dialer.address === observer.address && listener.port === quorumPort).length;
    expect(withOthers()).toBe(1);
    let complete: (() => void) | undefined;
    observer.disk.schedule = ({ path }, done) => {
      if (path.includes('zoo.cfg')) complete = done;
      else void rig.rig.clock.after(3, done);
    };
    void reconfigure(rig, rig.leader, fourVoters);
    await rig.until(() => complete !== undefined, 5000);
    await rig.rig.run(20);
    expect([withOthers(), observer.failure]).toEqual([0, undefined]);
  });

  it('P32: keeps a log where only its log makes it a voter, and its files are older', async () => {
    const options = { syncEnabled: true };
    const rig = new EnsembleRuntimeRig({ servers: 4, observers: 1, core: { reconfigEnabled: true, skipAcl: true }, options });
    await boot(rig);
    await rig.until(() => rig.isWhole, 10_000);
    const observer = rig.nodes[3]!;
    expect(await reconfigure(rig, rig.leader, fourVoters)).toBe(0);
    await rig.until(() => observer.role === 'follower', 10_000);
    await rig.close(observer);
    options.syncEnabled = false;
    await Promise.all([rig.boot(observer), rig.rig.run(400)]);
    await rig.until(() => observer.role === 'follower' || observer.failure !== undefined, 10_000);
    expect(observer.failure).toBeUndefined();
    expect(observer.logged.some(({ event }) => event === 'server.no-log')).toBe(false);
  });

  it('P32: keeps a log from its next start on, though the configuration is not committed yet', async () => {
    const rig = setUp({ lastSeen: allVote(7) });
    await boot(rig);
    await rig.until(() => rig.isWhole, 10_000);
    expect(await reconfigure(rig, rig.leader, fourVoters)).toBe(0);
    await rig.until(() => rig.nodes[3]!.role === 'follower', 10_000);
    await rig.rig.run(500, 10);
    expect(rig.nodes[3]!.failure).toBeUndefined();
    expect(rig.nodes[3]!.disk.files().some((path) => path.startsWith('/data/version-2/log.'))).toBe(true);
  });
});
