/** The list of servers of a session: changes, and the names and addresses in it. */
import { SeededRandom } from '@tskeeper/runtime';
import { describe, expect, it } from 'vitest';
import type { ServerAddress, SrvRecord } from '../../src/index.ts';
import { SessionMachine } from '../../src/session/session-machine.ts';
import { HostProvider } from '../../src/session/host-provider.ts';
import { type MachineOutput, MachineRig, type NamedRequest, outputsTo } from '../support/machine-rig.ts';
import { connectResponse, notification, reply } from '../support/server-frames.ts';

const named = (...hosts: string[]): ServerAddress[] => hosts.map((host) => ({ host, port: 2181 }));

function connected(options: ConstructorParameters<typeof MachineRig>[0] = {}, hosts?: string[]): MachineRig {
  const rig = new MachineRig(options, hosts);
  rig.connect();
  return rig;
}

const leaving = 'moving to another server of the new list';

describe('a new list for an open session', () => {
  it('C2-24: keeps session, connection and calls if it contains the server', () => {
    const rig = connected();
    rig.submit('x');
    rig.take();
    expect(rig.machine.updateServers(named('a', 'b'), rig.nowMs)).toBe(false);
    expect(rig.receive(reply(1, 1))).toEqual(['x: ok']);
    rig.drop();
    expect(rig.pass(1000)).toEqual(['dial b']);
    expect(rig.machine.servers.map(({ host }) => host)).toEqual(['a', 'b']);
  });

  it('C2-25: closes the connection if it does not contain the server, and the session continues on one that it contains', () => {
    const rig = connected();
    expect(rig.machine.updateServers(named('x', 'y'), rig.nowMs)).toBe(true);
    expect(rig.take()).toEqual(['hang up', `Disconnected: a:2181: ${leaving}`]);
    expect(rig.pass(1000)).toEqual([expect.stringMatching(/^dial [xy]$/)]);
    rig.machine.cnxnOpened(rig.nowMs);
    expect(rig.take()).toEqual(['send connect zxid=0 timeout=9000 session=0x100 password=0707']);
  });

  it('C2-25: a client that must move waits for pending answers, and sends later requests to the next server', () => {
    const rig = connected();
    rig.submit('x', 'y');
    rig.take();
    expect(rig.machine.updateServers(named('z'), rig.nowMs)).toBe(true);
    rig.submit('later');
    expect(rig.take()).toEqual([]);
    expect(rig.receive(reply(1, 1))).toEqual(['x: ok']);
    // Events after the last answer are delivered: no other server would report those of a
    // persistent watch.
    expect(rig.receive(reply(2, 2), notification(1, '/a', 3))).toEqual([
      'y: ok',
      'event 1 /a zxid=3',
      'hang up',
      `Disconnected: a:2181: ${leaving}`,
    ]);
    expect(rig.connect()).toEqual(['SyncConnected', 'send exists xid=3 {"path":"later","watch":false}']);
  });

  it('C2-25: the client waits at most a second; then no later request is applied after a lost one', () => {
    for (const end of ['silence', 'break'] as const) {
      const rig = connected();
      rig.submit('x');
      rig.machine.updateServers(named('z'), rig.nowMs);
      rig.submit('later');
      rig.take();
      expect(rig.pass(999)).toEqual([]);
      const why = end === 'break' ? 'the connection broke: ECONNRESET' : leaving;
      expect(end === 'break' ? rig.drop('ECONNRESET') : rig.pass(1)).toEqual([
        ...(end === 'break' ? [] : ['hang up']),
        `x: ConnectionLoss, unknown (a:2181: ${why})`,
        `later: ConnectionLoss, notSent (a:2181: ${why})`,
        `Disconnected: a:2181: ${why}`,
      ]);
      expect(rig.connect()).toEqual(['SyncConnected']);
    }
  });

  it('C2-25: a pause of the process is not taken for a server that does not answer', () => {
    const rig = connected();
    rig.submit('x');
    rig.machine.updateServers(named('z'), rig.nowMs);
    rig.take();
    rig.nowMs += 5000;
    rig.machine.wake(rig.nowMs);
    expect(rig.take()).toEqual([]);
    expect(rig.receive(reply(1, 1))).toEqual(['x: ok', 'hang up', `Disconnected: a:2181: ${leaving}`]);
    const silent = connected();
    silent.submit('x');
    silent.machine.updateServers(named('z'), silent.nowMs);
    silent.nowMs += 5000;
    silent.machine.wake(silent.nowMs);
    silent.take();
    expect(silent.pass(500)).toContain('hang up');
  });

  it('C2-28: a client that is leaving uses the newest list, and counts as a client of the server that it would go to', () => {
    const rig = connected();
    rig.submit('x');
    rig.take();
    rig.machine.updateServers(named('m'), rig.nowMs);
    rig.pass(900);
    expect(rig.machine.updateServers(named('a', 'm'), rig.nowMs)).toBe(true);
    expect(rig.machine.servers[0]).toEqual(named('m')[0]);
    expect(rig.machine.updateServers(named('n'), rig.nowMs)).toBe(true);
    // The second started with the first list.
    expect(rig.pass(100).slice(0, 2)).toEqual(['hang up', `x: ConnectionLoss, unknown (a:2181: ${leaving})`]);
    expect(rig.pass(1000)).toEqual(['dial n']);
  });

  it('a client that is about to move closes its session on the old server', () => {
    const rig = connected();
    rig.submit('x');
    rig.machine.updateServers(named('z'), rig.nowMs);
    rig.submit('later');
    rig.take();
    expect(rig.close()).toEqual(['send exists xid=2 {"path":"later","watch":false}', 'send closeSession xid=3']);
    expect(rig.receive(reply(1, 1), reply(2, 2), reply(3, 3))).toEqual(['x: ok', 'later: ok', 'hang up gently', 'Closed']);
    expect(rig.machine.updateServers(named('z'), rig.nowMs)).toBe(false);
  });

  it('C2-29, C2-30: makes the client try new servers first, then old ones, then round robin; calls fail after all have failed', () => {
    const rig = new MachineRig({}, ['a'], 0);
    rig.connect();
    expect(rig.machine.updateServers(named('a', 'm', 'n'), rig.nowMs)).toBe(true);
    rig.take();
    rig.submit('x');
    const said: string[] = [];
    for (let attempt = 0; attempt < 9; attempt++) {
      said.push(...rig.pass(1000), ...rig.drop('ECONNREFUSED'));
    }
    const dialled = said.filter((line) => line.startsWith('dial')).map((line) => line.slice(-1));
    expect(dialled.slice(0, 2).toSorted()).toEqual(['m', 'n']);
    expect(dialled[2]).toBe('a');
    expect(dialled.slice(3, 6).toSorted()).toEqual(['a', 'm', 'n']);
    expect(dialled.slice(6)).toEqual(dialled.slice(3, 6));
    expect(said[3]).toMatch(/^x: ConnectionLoss, notSent/);
  });

  it('C2-26: the client pauses randomly before it moves, as all clients get the list at one moment', () => {
    const rig = connected();
    rig.pass(5000);
    rig.machine.updateServers(named('x'), rig.nowMs);
    expect(rig.machine.deadline()! - rig.nowMs).toBe(125);
    // A move is not a failure: the pause does not grow.
    rig.connect();
    rig.machine.updateServers(named('y'), rig.nowMs);
    expect(rig.machine.deadline()! - rig.nowMs).toBe(125);
  });

  it('a client that moves often does not yield its session', () => {
    const rig = connected({ yieldSession: true });
    for (let round = 0; round < 20; round++) {
      rig.machine.updateServers(named(`x${round}`), rig.nowMs);
      rig.take();
      rig.connect();
    }
    expect(rig.machine.isConnected).toBe(true);
  });

  it('C2-24: during the search for a server, cancels an attempt at a server that is not in the list, and no other', () => {
    for (const isOpen of [false, true]) {
      const rig = new MachineRig();
      rig.pass(0);
      if (isOpen) rig.machine.cnxnOpened(rig.nowMs);
      rig.submit('x');
      rig.take();
      expect(rig.machine.updateServers(named('a', 'b', 'c'), rig.nowMs)).toBe(false);
      expect(rig.take()).toEqual([]);
      expect(rig.machine.updateServers(named('z'), rig.nowMs)).toBe(false);
      expect(rig.take()).toEqual(['hang up']);
      expect(rig.connect()).toEqual(['SyncConnected', 'send exists xid=1 {"path":"x","watch":false}']);
    }
    const rig = connected();
    rig.drop();
    expect(rig.machine.updateServers(named('z'), rig.nowMs)).toBe(false);
    expect(rig.pass(1000)).toEqual(['dial z']);
  });

  it('a client on a read-only server does not move to a server that was removed from the list', () => {
    const rig = new MachineRig({ readOnly: true });
    rig.connect({ readOnly: true });
    expect(rig.pass(100)).toEqual(['probe b']);
    rig.machine.updateServers(named('a', 'c'), rig.nowMs);
    rig.machine.probed(true, undefined, rig.nowMs);
    expect(rig.take()).toEqual([]);
    expect(rig.machine.isReadOnly).toBe(true);
  });
});

describe('B37: the addresses of a name', () => {
  it('are resolved again at each attempt, and all tried before the next server, without a pause after an unreachable one', () => {
    const rig = new MachineRig({ resolvesNames: true }, ['a', 'b']);
    rig.submit('x');
    expect(rig.pass(0)).toEqual(['resolve a']);
    rig.machine.addressesResolved(['10.0.0.1', '10.0.0.2', '10.0.0.1'], rig.nowMs);
    const said = [...rig.take(), ...rig.drop('ECONNREFUSED'), ...rig.pass(0)];
    expect(said.toSorted()).toEqual(['dial 10.0.0.1', 'dial 10.0.0.2']);
    // No address of this server is left, and there is a pause after each server.
    expect(rig.drop('ECONNREFUSED')).toEqual([]);
    expect(rig.pass(124)).toEqual([]);
    expect(rig.pass(1)).toEqual(['resolve b']);
    rig.machine.addressesResolved(['10.0.0.3', '10.0.0.4'], rig.nowMs);
    rig.take();
    expect(rig.drop('ECONNREFUSED')).toEqual([]);
    const [dialled] = rig.pass(0);
    const address = dialled!.slice('dial '.length);
    // Each address of each server has failed.
    expect(rig.drop('ECONNREFUSED')).toEqual([`x: ConnectionLoss, notSent (b:2181 at ${address}: connection failed: ECONNREFUSED)`]);
    expect(rig.pass(1000)).toEqual(['resolve a']);
  });

  it('C2-6: that were not needed are skipped after the connection is lost, and the next server is tried', () => {
    const rig = new MachineRig({ resolvesNames: true }, ['a', 'b']);
    rig.pass(0);
    rig.machine.addressesResolved(['10.0.0.1', '10.0.0.2'], rig.nowMs);
    rig.machine.cnxnOpened(rig.nowMs);
    rig.receive(connectResponse());
    rig.drop('ECONNRESET');
    expect(rig.pass(1000)).toEqual(['resolve b']);
  });

  it('share the time of their server', () => {
    const rig = new MachineRig({ resolvesNames: true });
    rig.pass(0);
    // A third of 9 s, for the look-up too.
    expect(rig.pass(2999)).toEqual([]);
    expect(rig.pass(1)).toEqual(['hang up']);
    rig.pass(125);
    rig.take();
    rig.machine.addressesResolved(['10.0.0.1', '10.0.0.2', '10.0.0.3'], rig.nowMs);
    expect(rig.take()).toHaveLength(1);
    expect(rig.pass(999)).toEqual([]);
    expect(rig.pass(1)).toEqual(['hang up', expect.stringMatching(/^dial/)]);
    rig.pass(500);
    rig.machine.cnxnOpened(rig.nowMs);
    rig.take();
    // An address that accepts the connection and sends nothing gets as much time as one that does
    // not; then there is a pause.
    expect(rig.pass(500)).toEqual(['hang up']);
    expect(rig.pass(1000)).toEqual([expect.stringMatching(/^dial/)]);
  });

  it('are tried in random order, and the lost one last', () => {
    const firsts = new Set<string>();
    for (let seed = 0; seed < 60; seed++) {
      const { machine, dialled } = bare(['a'], new SeededRandom(seed), { resolvesNames: true });
      machine.wake(0);
      machine.addressesResolved(['1', '2', '3'], 0);
      const first = dialled.at(-1)!;
      firsts.add(first);
      machine.cnxnOpened(0);
      machine.received(connectResponse(), 0);
      machine.cnxnClosed('ECONNRESET', 10);
      machine.wake(machine.deadline()!);
      machine.addressesResolved(['1', '2', '3'], 5000);
      for (let attempt = 0; attempt < 2; attempt++) {
        expect(dialled.at(-1)).not.toBe(first);
        machine.cnxnClosed('ECONNREFUSED', 5000);
        machine.wake(5000);
      }
      expect(dialled.at(-1)).toBe(first);
    }
    expect(firsts.size).toBe(3);
  });

  it('are reported if they cannot be resolved or there are none, and the next server is tried', () => {
    const rig = new MachineRig({ resolvesNames: true }, ['a']);
    rig.submit('x');
    rig.pass(0);
    expect(rig.drop('ENOTFOUND')).toEqual(['x: ConnectionLoss, notSent (a:2181: address lookup failed: ENOTFOUND)']);
    rig.submit('y');
    expect(rig.pass(1000)).toEqual(['resolve a']);
    rig.machine.addressesResolved([], rig.nowMs);
    expect(rig.take()).toEqual(['y: ConnectionLoss, notSent (a:2181: the name a has no address)']);
  });

  it('that arrive too late are not dialled', () => {
    const rig = new MachineRig({ resolvesNames: true }, ['a']);
    rig.pass(0);
    rig.close();
    rig.machine.addressesResolved(['10.0.0.1'], rig.nowMs);
    expect(rig.take()).toEqual([]);
  });
});

describe('B37: an SRV name', () => {
  const records: SrvRecord[] = [
    { host: 'late', port: 3, priority: 20, weight: 0 },
    { host: 'soon', port: 2, priority: 10, weight: 0 },
  ];
  const srvName = '_zookeeper._tcp.example.com';

  it('is resolved before the first attempt, and again after all its servers have failed', () => {
    const rig = new MachineRig({ srvName }, []);
    expect(rig.pass(0)).toEqual([`resolve srv:${srvName}`]);
    rig.submit('x');
    rig.machine.srvResolved(records, rig.nowMs);
    expect(rig.take()).toEqual(['dial soon']);
    rig.drop('ECONNREFUSED');
    expect(rig.pass(1000)).toEqual(['dial late']);
    expect(rig.drop('ECONNREFUSED')).toEqual(['x: ConnectionLoss, notSent (late:3: connection failed: ECONNREFUSED)']);
    expect(rig.pass(1000)).toEqual([`resolve srv:${srvName}`]);
    rig.machine.srvResolved([{ host: 'other', port: 4, priority: 0, weight: 0 }], rig.nowMs);
    expect(rig.take()).toEqual(['dial other']);
  });

  it('is not resolved again while one of its servers answers', () => {
    const rig = new MachineRig({ srvName }, []);
    rig.pass(0);
    rig.machine.srvResolved(records, rig.nowMs);
    for (let round = 0; round < 6; round++) {
      rig.connect();
      rig.drop();
      expect(rig.pass(1000)).toEqual([expect.stringMatching(/^dial/)]);
      rig.drop('ECONNREFUSED');
      rig.pass(1000);
    }
  });

  it.each([
    ['fails', (rig: MachineRig) => rig.drop('ESERVFAIL'), 'SRV lookup failed: ESERVFAIL'],
    ['finds none', (rig: MachineRig) => (rig.machine.srvResolved([], rig.nowMs), rig.take()), 'SRV lookup found no servers'],
    ['takes too long', (rig: MachineRig) => rig.pass(9000).slice(1, 2), 'SRV lookup timed out after 9000 ms'],
  ])('that %s for the first time fails waiting requests, and is resolved again', (_what, fail, reason) => {
    const rig = new MachineRig({ srvName }, []);
    rig.submit('x');
    rig.pass(0);
    expect(fail(rig)).toEqual([`x: ConnectionLoss, notSent (srv:${srvName}: ${reason})`]);
    expect(rig.pass(1000)[0]).toBe(`resolve srv:${srvName}`);
  });

  it.each([
    ['fails', (rig: MachineRig) => rig.drop('ESERVFAIL')],
    ['finds none', (rig: MachineRig) => (rig.machine.srvResolved([], rig.nowMs), rig.take())],
    ['takes too long', (rig: MachineRig) => rig.pass(4500).slice(1)],
  ])('that %s later keeps the known servers', (_what, fail) => {
    const rig = new MachineRig({ srvName }, []);
    rig.pass(0);
    rig.machine.srvResolved(records, rig.nowMs);
    rig.drop('ECONNREFUSED');
    rig.pass(1000);
    rig.drop('ECONNREFUSED');
    expect(rig.pass(1000)).toEqual([`resolve srv:${srvName}`]);
    expect(fail(rig)).toEqual(['dial soon']);
  });

  it('is replaced by a list, also during its look-up', () => {
    const rig = new MachineRig({ srvName }, []);
    rig.pass(0);
    rig.machine.updateServers(named('z'), rig.nowMs);
    expect(rig.take()).toEqual(['hang up']);
    for (let round = 0; round < 3; round++) {
      expect(rig.pass(1000)).toEqual(['dial z']);
      rig.drop('ECONNREFUSED');
    }
  });
});

describe('many clients', () => {
  it('C2-5: 1,000 start equally often at each server, whatever the order in the list', () => {
    const first = new Map<string, number>();
    for (let seed = 0; seed < 1000; seed++) {
      const { machine, dialled } = bare(['a', 'b', 'c', 'd'], new SeededRandom(seed));
      machine.wake(0);
      first.set(dialled[0]!, (first.get(dialled[0]!) ?? 0) + 1);
    }
    expect([...first.keys()].toSorted()).toEqual(['a', 'b', 'c', 'd']);
    for (const count of first.values()) expect(Math.abs(count - 250)).toBeLessThan(60);
  });

  it('C2-13, B35: 1,000 that lose one server at one moment reconnect spread over a quarter of a second, later over a second', () => {
    for (const [failures, mostMs] of [
      [0, 250],
      [1, 500],
      [2, 1000],
      [5, 1000],
    ] as const) {
      const pauses: number[] = [];
      for (let seed = 0; seed < 1000; seed++) {
        const { machine } = bare(['a', 'b', 'c'], new SeededRandom(seed));
        machine.wake(0);
        machine.cnxnOpened(0);
        machine.received(connectResponse(), 0);
        let nowMs = 2000;
        machine.cnxnClosed('ECONNRESET', nowMs);
        for (let failure = 0; failure < failures; failure++) {
          nowMs = machine.deadline()!;
          machine.wake(nowMs);
          machine.cnxnClosed('ECONNREFUSED', nowMs);
        }
        pauses.push(machine.deadline()! - nowMs);
      }
      // Ten slots of equal length; each must have a tenth of the clients.
      const slots = Array<number>(10).fill(0);
      for (const pause of pauses) slots[Math.floor((pause / mostMs) * 10)]!++;
      expect(slots).toHaveLength(10);
      for (const count of slots) expect(Math.abs(count - 100)).toBeLessThan(45);
    }
  });
});

/** A machine alone, with a given source of randomness; records only what it dials. */
function bare(
  hosts: string[],
  random: SeededRandom,
  options: { readonly resolvesNames?: boolean } = {},
): { readonly machine: SessionMachine<NamedRequest>; readonly dialled: string[] } {
  const dialled: string[] = [];
  const nothing = () => undefined;
  const out: MachineOutput = {
    resolve: nothing,
    resolveSrv: nothing,
    dial: ({ host }) => void dialled.push(host),
    probe: nothing,
    send: nothing,
    closeCnxn: nothing,
    answered: nothing,
    failed: nothing,
    authenticated: nothing,
    authFailed: nothing,
    event: nothing,
    connectionFailed: nothing,
    state: nothing,
    startSasl: nothing,
    continueSasl: nothing,
    restoreWatches: () => [],
  };
  const machine = new SessionMachine<NamedRequest>(
    {
      sessionTimeoutMs: 9000,
      readOnly: false,
      packetBytesMax: 1000,
      session: undefined,
      auth: [],
      expireLocally: false,
      yieldSession: false,
      srvName: undefined,
      resolvesNames: false,
      sasl: false,
      waitForFirstConnection: false,
      requestTimeoutMs: undefined,
      ...options,
    },
    new HostProvider(named(...hosts), random),
    random,
    outputsTo(out),
    0,
  );
  return { machine, dialled };
}
