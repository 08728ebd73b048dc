/** A whole server of an ensemble: its ports, which connections it accepts, and what it reports. */
import { parseQuorumConfig, type QuorumConfig, type QuorumServer, type Sid, writeConnectRequest, Writer } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import type { RuntimeOptions } from '../src/index.ts';
import { addressOf, electionPort, quorumPort } from './ports/peer-rig.ts';
import { clientPort, type EnsembleRuntimeNode, EnsembleRuntimeRig } from './ensemble-runtime-rig.ts';

describe('the quorum port', () => {
  it('is open at the server that leads, and at no other', async () => {
    const rig = await EnsembleRuntimeRig.start({ observers: 1, servers: 4 });
    const ends = rig.nodes.map((node) => rig.dial(node, quorumPort));
    await rig.rig.run(20);
    const refused = rig.nodes.filter((_, index) => ends[index]!.closed === 'ECONNREFUSED');
    expect(refused).toEqual(rig.learners);
  });

  it('is closed when the leadership ends, and opened by the next leader', async () => {
    const rig = await EnsembleRuntimeRig.start();
    const old = rig.leader;
    const others = rig.learners;
    for (const { sid } of others) rig.rig.wire.cut(addressOf(old.sid), addressOf(sid));
    await rig.until(() => old.role === 'looking' && others.some(({ role }) => role === 'leader'), 20_000);
    const end = rig.dial(old, quorumPort);
    await rig.rig.run(20);
    expect(end.closed).toBe('ECONNREFUSED');
    for (const { sid } of others) rig.rig.wire.heal(addressOf(old.sid), addressOf(sid));
    await rig.until(() => rig.isWhole, 20_000);
    expect(old.role).toBe('follower');
  });

  it('keeps a server from leading while it cannot be bound', async () => {
    const rig = new EnsembleRuntimeRig({ options: { bindTriesMax: 1 } });
    const best = rig.nodes[2]!;
    const squatter = await rig.rig.wire.stack(addressOf(best.sid)).listen({ address: undefined, port: quorumPort, backlog: undefined });
    await Promise.all([...rig.nodes.map((node) => rig.boot(node)), rig.rig.run(50)]);
    const complaint = /^error The quorum port, 10.0.0.3:2888, could not be bound: .* This server cannot lead without it.$/;
    await rig.until(() => best.lines.some((line) => complaint.test(line)), 10_000);
    expect(best.lines.filter((line) => line.includes('server 3 leads'))).toEqual([]);
    await squatter.close();
    await rig.until(() => rig.isWhole, 20_000);
  });
});

describe('a server whose own name does not resolve yet', () => {
  it('waits for it, answers four letter words meanwhile, and takes part once it resolves', async () => {
    const quorum = parseQuorumConfig(`server.1=zk:${quorumPort}:${electionPort}`);
    const rig = new EnsembleRuntimeRig({ servers: 1, options: { quorum } });
    const only = rig.nodes[0]!;
    const booting = rig.boot(only);
    await rig.rig.run(3000, 50);
    expect(only.runtime).toBeUndefined();
    expect(only.lines).toContainEqual(expect.stringMatching(/^warn The election port waits for its address, zk:3888: /));
    expect(await rig.word(only, 'ruok')).toBe('imok');
    rig.rig.wire.name('zk', [addressOf(1)]);
    await Promise.all([booting, rig.rig.run(1500, 50)]);
    await rig.until(() => only.role === 'leader', 2000);
  });
});

describe('names in the list of servers', () => {
  /** The servers are known by name; a name without an address does not resolve. */
  const named = (runtime: Partial<RuntimeOptions> = {}) => {
    const quorum = (count: number): QuorumConfig => ({
      version: 0,
      servers: new Map(
        Array.from({ length: count }, (_, at): [Sid, QuorumServer] => [
          at + 1,
          { sid: at + 1, addresses: [{ host: `zk-${at}`, quorumPort, electionPort }], role: 'participant' },
        ]),
      ),
      groups: new Map(),
      weights: new Map(),
    });
    const options = { quorum: quorum(3), listensOnAllIps: true };
    return new EnsembleRuntimeRig({ options, runtime });
  };

  it('D15: that do not resolve keep no server from starting: it waits, logs which, and finds them when they appear', async () => {
    const rig = named();
    await Promise.all([...rig.nodes.map((node) => rig.boot(node)), rig.rig.run(50)]);
    await rig.rig.run(5000, 50);
    expect(rig.nodes.map(({ role }) => role)).toEqual(['looking', 'looking', 'looking']);
    for (const node of rig.nodes) {
      expect(await rig.word(node, 'ruok')).toBe('imok');
      const other = node.sid === 1 ? 2 : 1;
      const complaint = `warn Server ${other} cannot be reached: zk-${other - 1}:3888`;
      expect(node.lines.some((line) => line.startsWith(complaint))).toBe(true);
    }
    for (const node of rig.nodes) rig.rig.wire.name(`zk-${node.sid - 1}`, [addressOf(node.sid)]);
    await rig.until(() => rig.isWhole, 60_000);
  });

  it('D15: are resolved anew at each dial, so a server that returns at another address is found at both ports', async () => {
    const rig = named();
    for (const node of rig.nodes) rig.rig.wire.name(`zk-${node.sid - 1}`, [addressOf(node.sid)]);
    await Promise.all([...rig.nodes.map((node) => rig.boot(node)), rig.rig.run(50)]);
    await rig.until(() => rig.isWhole, 10_000);
    // The leader moves: its learners must find its quorum port as well.
    const { leader } = rig;
    await rig.close(leader);
    rig.rig.wire.name(`zk-${leader.sid - 1}`, ['10.0.7.7']);
    await Promise.all([rig.boot(leader, '10.0.7.7'), rig.rig.run(50)]);
    await rig.until(() => rig.isWhole, 60_000);
    const rest = rig.nodes.filter((node) => node !== leader);
    await rig.close(rest[0]!);
    await Promise.all([rig.boot(rest[0]!), rig.rig.run(50)]);
    await rig.until(() => rig.isWhole, 60_000);
    expect(rig.nodes.map(({ role }) => role)).not.toContain('looking');
  });

  it('D15: a server whose name for clients does not resolve yet waits for it, and ends neither', async () => {
    const rig = named({ clientPortAddress: 'zk-client' });
    for (const node of rig.nodes) rig.rig.wire.name(`zk-${node.sid - 1}`, [addressOf(node.sid)]);
    const booting = rig.boot(rig.nodes[0]!);
    await rig.rig.run(3000, 50);
    expect(rig.nodes[0]!.runtime).toBeUndefined();
    expect(rig.nodes[0]!.lines).toContainEqual(expect.stringMatching(/^warn The client port waits for its address, zk-client:2181: /));
    rig.rig.wire.name('zk-client', [addressOf(1)]);
    await Promise.all([booting, rig.rig.run(1500, 50)]);
    expect(await rig.word(rig.nodes[0]!, 'ruok')).toBe('imok');
  });
});

describe('an operator', () => {
  const info = (node: EnsembleRuntimeNode) =>
    node.lines.filter((line) => /^info (server|election)/.test(line)).map((line) => line.slice(5).replace(/\d+ ms/, 'N ms'));

  it('reads in the log which server of which ensemble this is, and each change of its role in one line', async () => {
    const rig = await EnsembleRuntimeRig.start({ servers: 4, observers: 1 });
    const [old] = [rig.leader];
    const delivered = (node: EnsembleRuntimeNode, role: string) => [
      `server ${node.sid} looks for a leader`,
      `server ${node.sid} of 3 voters and 1 observer, listening for clients on [::]:2181 and for votes on 10.0.0.${node.sid}:3888, from zxid 0x0 (0 txns replayed, loaded in N ms)`,
      `election finished in N ms: ${node === old ? 'leading' : `following server ${old.sid}`}`,
      `server ${node.sid} ${role} in epoch 1, from zxid 0x100000000`,
    ];
    for (const node of rig.nodes) {
      const role = node === old ? 'leads' : `${node.sid === 4 ? 'observes' : 'follows'} server ${old.sid}`;
      expect(info(node).toSorted()).toEqual(delivered(node, role).toSorted());
    }
    for (const node of rig.nodes) node.lines.length = 0;
    await rig.close(old);
    await rig.until(() => rig.nodes.some(({ role }) => role === 'leader') && rig.nodes.every(({ role }) => role !== 'looking'), 10_000);
    for (const node of rig.nodes.filter((one) => one !== old)) {
      const lines = info(node);
      expect(lines[0]).toBe(`server ${node.sid} looks for a leader: the connection to the leader is closed`);
      expect(lines.at(-1)).toMatch(/^server \d (leads|follows server \d|observes server \d) in epoch 2, from zxid 0x200000000$/);
    }
  });

  it('reads in four letter words the role of each server, and what it knows of the others', async () => {
    const rig = await EnsembleRuntimeRig.start({ servers: 4, observers: 1 });
    const metricsOf = async (node: EnsembleRuntimeNode) =>
      new Map((await rig.word(node, 'mntr')).split('\n').map((line) => line.split('\t') as [string, string]));
    const client = rig.dial(rig.nodes[3]!, clientPort);
    client.send(handshake());
    await rig.until(() => client.received.length > 0, 1000);
    await rig.rig.run(1000, 5);
    for (const node of rig.nodes) {
      const metrics = await metricsOf(node);
      expect([node.sid, metrics.get('zk_server_state')]).toEqual([node.sid, node.role]);
      expect(metrics.get('zk_quorum_size')).toBe('3');
      expect(metrics.get('zk_looking_count')).toBe('1');
      for (const key of ['election_time', 'unavailable_time']) expect(metrics.get(`zk_cnt_${key}`)).toBe('1');
      expect(await rig.word(node, 'srvr')).toContain(`Mode: ${node.role}\nNode count: 5\n`);
      expect(await rig.word(node, 'conf')).toContain(`serverId=${node.sid}\ninitLimit=10\nsyncLimit=5\nelectionAlg=3\nelectionPort=3888\n`);
    }
    expect(await rig.word(rig.leader, 'srvr')).toContain('\nProposal sizes last/min/max: 48/48/48\n');
    const leader = await metricsOf(rig.leader);
    const keys = ['peer_state', 'learners', 'synced_followers', 'synced_observers', 'proposal_count', 'commit_count'];
    expect(keys.map((key) => leader.get(`zk_${key}`))).toEqual(['leading - broadcast', '3', '2', '1', '1', '1']);
    expect(Number(leader.get('zk_diff_count')) + Number(leader.get('zk_snap_count'))).toBe(3);
    expect([leader.get('zk_cnt_proposal_ack_creation_latency'), leader.get('zk_cnt_quorum_ack_latency')]).toEqual(['1', '1']);
    const observer = await metricsOf(rig.nodes[3]!);
    const names = ['peer_state', 'observer_master_id', 'learner_commit_received_count', 'cnt_observer_sync_time', 'learners'];
    expect(names.map((name) => observer.get(`zk_${name}`))).toEqual(['observing - broadcast', `${rig.leader.sid}`, '1', '1', undefined]);
    const follower = await metricsOf(rig.learners[0]!);
    const counts = ['learner_proposal_received_count', 'learner_commit_received_count', 'cnt_proposal_latency', 'cnt_follower_sync_time'];
    expect(counts.map((name) => follower.get(`zk_${name}`))).toEqual(['1', '1', '1', '1']);
    expect(await rig.word(rig.learners[0]!, 'dump')).toMatch(
      /^SessionTracker dump:\nGlobal Sessions\(1\):\n0x4[0-9a-f]{14}\t20000ms\nephemeral/,
    );
  });
});

describe('the logs of an ensemble', () => {
  it('report a session at info at the server of its client, and at the leader when it expires; at other servers its end at debug', async () => {
    const rig = await EnsembleRuntimeRig.start();
    const [here, there] = rig.learners as [EnsembleRuntimeNode, EnsembleRuntimeNode];
    const linesOf = (node: EnsembleRuntimeNode) =>
      node.logged.flatMap((fields, at) =>
        fields.event.startsWith('session.') ? [`${node.lines[at]!.split(' ')[0]} ${fields.event}`] : [],
      );
    const end = rig.dial(here, clientPort);
    end.send(handshake());
    await rig.until(() => end.received.length >= 41, 1000);
    const session = end.received.readBigInt64BE(12);
    const moved = rig.dial(there, clientPort);
    moved.send(handshake(session, end.received.subarray(24, 40)));
    await rig.until(() => moved.received.length >= 41, 1000);
    // A delete, which the leader refuses with SessionMoved.
    end.send(frame('0000000100000002000000022f61ffffffff'));
    await rig.until(() => end.closed !== undefined, 5000);
    moved.reset();
    await rig.until(() => !rig.leader.runtime!.inspect.hasSession(session), 60_000);
    await rig.rig.run(100);
    expect(linesOf(here)).toEqual(['info session.opened', 'info session.moved', 'debug session.ended-elsewhere']);
    expect(linesOf(there)).toEqual(['info session.resumed', 'debug session.disconnected', 'debug session.ended-elsewhere']);
    expect(linesOf(rig.leader)).toEqual(['info session.expired']);
  });

  it('A33: report the life of a local session at its own server only, and its upgrade or the ephemeral that it was refused', async () => {
    for (const localSessions of ['enabled', 'upgradable'] as const) {
      const rig = await EnsembleRuntimeRig.start({ core: { localSessions } });
      const [here] = rig.learners as [EnsembleRuntimeNode];
      const eventsOf = (node: EnsembleRuntimeNode) => node.logged.flatMap(({ event }) => (event.startsWith('session.') ? [event] : []));
      const end = rig.dial(here, clientPort);
      end.send(handshake());
      await rig.until(() => end.received.length >= 41, 1000);
      const session = end.received.readBigInt64BE(12);
      // A create of the ephemeral /e with an open ACL.
      end.send(frame('0000000100000001000000022f65ffffffff000000010000001f00000005776f726c6400000006616e796f6e6500000001'));
      await rig.until(() => end.received.length > 41, 5000);
      const created = localSessions === 'enabled' ? 'session.ephemeral-refused' : 'session.upgraded';
      expect(eventsOf(here)).toEqual(['session.opened', created]);
      expect(here.lines.at(-1)).toContain(localSessions === 'enabled' ? 'localSessionsUpgradingEnabled is false' : 'becomes global');
      end.reset();
      await rig.until(() => !here.runtime!.inspect.hasSession(session), 60_000);
      await rig.rig.run(100);
      const ended = localSessions === 'enabled' ? 'session.expired' : 'session.ended-elsewhere';
      expect(eventsOf(here).slice(2)).toEqual(['session.disconnected', ended]);
      expect(eventsOf(rig.leader)).toEqual(localSessions === 'enabled' ? [] : ['session.expired']);
    }
  });

  it('name the role, the leader, the epoch and the zxid of each change of role', async () => {
    const rig = await EnsembleRuntimeRig.start();
    const follower = rig.learners[0]!;
    expect(follower.logged.filter(({ event }) => /^(role|leader)\./.test(event))).toEqual([
      { event: 'role.looking', reason: undefined },
      { event: 'leader.elected', leader: rig.leader.sid, durationMs: expect.any(Number) as number },
      { event: 'role.serving', role: 'follower', leader: rig.leader.sid, epoch: 1, zxid: '0x100000000' },
    ]);
  });
});

describe('an oracle', () => {
  it('A57: lets one of two servers serve without the other when it says yes, until the other returns', async () => {
    const rig = await EnsembleRuntimeRig.start({ servers: 2, oracle: true });
    const [leader, follower] = [rig.leader, rig.learners[0]!];
    leader.oracle = '1';
    // While both servers run, the oracle has no effect.
    await rig.rig.run(500, 5);
    expect([leader.role, follower.role]).toEqual(['leader', 'follower']);
    await rig.close(follower);
    const client = rig.dial(leader, clientPort);
    client.send(handshake());
    await rig.until(() => client.received.length > 0, 2000);
    await rig.rig.run(15_000, 50);
    expect([leader.role, leader.lines.filter((line) => line.includes('looks for a leader')).length]).toEqual(['leader', 1]);
    await Promise.all([rig.boot(follower), rig.rig.run(50)]);
    await rig.until(() => rig.isWhole, 20_000);
    expect(follower.runtime!.inspect.lastZxid()).toBe(leader.runtime!.inspect.lastZxid());
  });

  it('lets no server serve alone when it says no, or does not answer', async () => {
    const rig = await EnsembleRuntimeRig.start({ servers: 2, oracle: true });
    const leader = rig.leader;
    await rig.close(rig.learners[0]!);
    await rig.until(() => leader.role === 'looking', 20_000);
    await rig.rig.run(5000, 50);
    expect(leader.role).toBe('looking');
    leader.oracle = '1';
    await rig.until(() => leader.role === 'leader', 2000);
    leader.oracle = '0';
    await rig.until(() => leader.role === 'looking', 5000);
  });

  it('is asked again when the other server is lost: an earlier answer does not count', async () => {
    const rig = await EnsembleRuntimeRig.start({ servers: 2, oracle: true });
    const leader = rig.leader;
    leader.oracle = '1';
    await rig.rig.run(500, 5);
    // The answer changes just before, and the server has not asked again.
    leader.oracle = '0';
    const client = rig.dial(leader, clientPort);
    void rig.learners[0]!.runtime!.close();
    for (let waited = 0; leader.runtime!.inspect.ensemble()!.leading?.syncedFollowers === 1; waited++) {
      if (waited > 50) throw new Error('the other is still there');
      await rig.rig.run(1);
    }
    client.send(handshake());
    await rig.until(() => leader.role === 'looking', 20_000);
    expect(client.received).toHaveLength(0);
  });
});

describe('observer.election.DelayMs', () => {
  it('spreads the elections of the observers of a lost leader over time, and of no other server', async () => {
    const delays = async (observerElectionDelayMs: number) => {
      const rig = await EnsembleRuntimeRig.start({ servers: 7, observers: 4, options: { observerElectionDelayMs } });
      const old = rig.leader;
      await rig.close(old);
      await rig.until(() => rig.nodes.every((node) => node === old || (node.role !== 'looking' && node.role !== undefined)), 10_000);
      const foundAfterMs = (node: EnsembleRuntimeNode) =>
        Number(/finished in (\d+) ms/.exec(node.lines.findLast((line) => line.includes('election finished')) ?? '')![1]);
      const of = (role: string) => rig.nodes.filter((node) => node.role === role).map(foundAfterMs);
      return { voters: Math.max(...of('follower'), ...of('leader')), observers: of('observer') };
    };
    const at = { once: await delays(0), spread: await delays(4000) };
    expect(Math.max(at.once.voters, at.spread.voters, ...at.once.observers)).toBeLessThan(500);
    expect(Math.max(...at.spread.observers)).toBeGreaterThan(1000);
    expect(Math.max(...at.spread.observers) - Math.min(...at.spread.observers)).toBeGreaterThan(500);
  });
});

describe('standaloneEnabled=false', () => {
  it('A59: a single server is an ensemble: it elects itself and serves', async () => {
    const rig = await EnsembleRuntimeRig.start({ servers: 1 });
    const only = rig.nodes[0]!;
    const client = rig.dial(only, clientPort);
    client.send(handshake());
    await rig.until(() => client.received.length > 0, 1000);
    expect(await rig.word(only, 'srvr')).toContain('Mode: leader\n');
    expect(rig.dial(only, quorumPort).closed).toBeUndefined();
  });
});

describe('leaderServes=no', () => {
  it('A61: the leader refuses clients, and reports that it does not serve', async () => {
    const rig = new EnsembleRuntimeRig({ options: { leaderServes: false } });
    await Promise.all([...rig.nodes.map((node) => rig.boot(node)), rig.rig.run(50)]);
    await rig.until(() => rig.nodes.filter(({ role }) => role === 'follower').length === 2, 5000);
    const leader = rig.nodes.find(({ role }) => role !== 'follower')!;
    expect(await rig.word(leader, 'srvr')).toBe('This ZooKeeper instance is not currently serving requests\n');
    expect(
      await rig.word(
        rig.nodes.find((node) => node !== leader)!,
        'srvr',
      ),
    ).toContain('Mode: follower\n');
    const [refused, served] = [leader, rig.nodes.find((node) => node !== leader)!].map((node) => {
      const end = rig.dial(node, clientPort);
      end.send(handshake());
      return end;
    });
    await rig.until(() => refused!.closed !== undefined && served!.received.length > 0, 1000);
    expect(refused!.received).toHaveLength(0);
    // The length of the reply, and the protocol version that it begins with.
    expect(served!.received.subarray(0, 8)).toEqual(Buffer.from('0000002500000000', 'hex'));
  });
});

describe('readonlymode.enabled', () => {
  it('A34, A76: option readonlymode.enabled: a server without the others serves read-only clients, says so, and logs when it begins and ends', async () => {
    const rig = new EnsembleRuntimeRig({ options: { readOnlyMode: true } });
    const [alone, ...others] = rig.nodes as [EnsembleRuntimeNode, ...EnsembleRuntimeNode[]];
    await Promise.all([rig.boot(alone), rig.rig.run(50)]);
    expect(await rig.word(alone, 'srvr')).toBe('This ZooKeeper instance is not currently serving requests\n');
    await rig.until(() => alone.role === 'read-only', 5000);
    expect(await rig.word(alone, 'srvr')).toMatch(
      /^Zookeeper version: .*\nREAD-ONLY mode; serving only read-only clients\n[^]*\nMode: read-only\n/,
    );
    const [usual, readOnly] = [false, true].map((isReadOnly) => {
      const end = rig.dial(alone, clientPort);
      end.send(handshake(0n, undefined, isReadOnly));
      return end;
    });
    await rig.until(() => usual!.closed !== undefined && readOnly!.received.length > 0, 1000);
    expect(usual!.received).toHaveLength(0);
    // Without local sessions it opens none: a header with NotReadOnly.
    expect(readOnly!.received).toEqual(Buffer.from('00000010000000000000000000000000ffffff89', 'hex'));
    await Promise.all([...others.map((node) => rig.boot(node)), rig.rig.run(50)]);
    await rig.until(() => rig.isWhole, 20_000);
    const said = alone.lines.filter((line) => line.includes('read-only')).map((line) => line.replace(/\d+ ms/, 'N ms'));
    expect(said).toEqual([
      'warn server 1 has no leader for N ms: it serves stale reads to read-only clients',
      'info server 1 leaves read-only mode, and closes the connections of its clients',
    ]);
  });
});

describe('expireSession', () => {
  it('ends a session of any server, whichever server is asked, and resolves to false for an unknown one', async () => {
    const rig = await EnsembleRuntimeRig.start({ observers: 1, servers: 4 });
    for (const asked of rig.nodes) {
      for (const node of rig.nodes) {
        const end = rig.dial(node, clientPort);
        end.send(handshake());
        await rig.until(() => end.received.length >= 41, 1000);
        const session = end.received.readBigInt64BE(12);
        await rig.until(() => asked.runtime!.inspect.hasSession(session), 1000);
        const ended = asked.runtime!.expireSession(session);
        await rig.until(() => end.closed !== undefined, 1000);
        await rig.rig.run(20);
        expect(await ended).toBe(true);
        expect(await asked.runtime!.expireSession(session)).toBe(false);
      }
    }
  });

  it('repeats its request when the role that received it ends', async () => {
    const rig = await EnsembleRuntimeRig.start();
    const asked = rig.learners[0]!;
    const end = rig.dial(asked, clientPort);
    end.send(handshake());
    await rig.until(() => end.received.length >= 41, 1000);
    const session = end.received.readBigInt64BE(12);
    const leader = rig.leader;
    rig.rig.wire.cut(addressOf(asked.sid), addressOf(leader.sid));
    const ended = asked.runtime!.expireSession(session);
    await rig.until(() => asked.role === 'looking', 10_000);
    await expect(asked.runtime!.expireSession(session)).rejects.toThrow('cannot expire a session: this server does not serve clients now');
    const other = rig.learners.find((node) => node !== asked)!;
    rig.rig.wire.cut(addressOf(other.sid), addressOf(leader.sid));
    await rig.until(() => [asked, other].some(({ role }) => role === 'leader'), 20_000);
    await rig.until(() => !asked.runtime!.inspect.hasSession(session), 2000);
    expect(await ended).toBe(true);
  });
});

/** A frame with these bytes, in hexadecimal. */
function frame(hex: string): Buffer {
  const bytes = Buffer.from(hex, 'hex');
  const length = Buffer.alloc(4);
  length.writeInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

function handshake(sessionId = 0n, passwd: Uint8Array = Buffer.alloc(16), readOnly = false): Buffer {
  const writer = new Writer();
  const start = writer.beginFrame();
  writeConnectRequest(writer, { protocolVersion: 0, lastZxidSeen: 0, timeOut: 20_000, sessionId, passwd, readOnly });
  writer.endFrame(start);
  return Buffer.from(writer.written());
}
