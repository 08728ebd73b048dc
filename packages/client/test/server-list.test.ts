/**
 * The servers of a client, as a program sees them: changed on an open client, as names, as SRV
 * names, from the ensemble's configuration.
 */
import { digestId, systemPath } from '@tskeeper/protocol';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  anyone,
  type Client,
  connect,
  ConnectStringError,
  type NodeEvent,
  Perms,
  type SessionEvent,
  type Transport,
} from '../src/index.ts';
import { clientAddressesOf } from '../src/ensemble/client-addresses.ts';
import { followConfig } from '../src/ensemble/follow-config.ts';
import { ClientWorld } from './support/client-world.ts';

let world: ClientWorld;

beforeEach(async () => {
  world = await ClientWorld.start({ superDigest: digestId('super:secret') });
});

afterEach(() => world.close());

/** Names that resolve to the running server. */
function name(...names: string[]): void {
  for (const each of names) world.wire.name(each, [world.address]);
}

describe('updateServerList', () => {
  it('C2-24, B36: moves an open client; session, ephemerals and watches move too, and no call is lost', async () => {
    name('one', 'two', 'three');
    const zk = await world.until(connect('one:2181', world.options()));
    const other = await world.connect();
    const states: string[] = [];
    zk.on('state', ({ state }) => states.push(state));
    const events: NodeEvent[] = [];
    await world.until(zk.create('/e', 'x', { mode: 'ephemeral' }));
    await world.until(zk.exists('/w', { watch: (event) => void (event.type === 'None' || events.push(event)) }));
    const { sessionId } = zk;
    const before = zk.setData('/e', 'before');
    expect(zk.updateServerList('two, three:2181')).toBe(true);
    const after = zk.setData('/e', 'after');
    expect((await world.until(before)).version).toBe(1);
    expect((await world.until(after)).version).toBe(2);
    expect(states).toEqual(['Disconnected', 'SyncConnected']);
    expect(zk.connectedServer).toMatch(/^(?:two|three):2181$/);
    expect(zk.servers.toSorted()).toEqual(['three:2181', 'two:2181']);
    expect(zk.sessionId).toBe(sessionId);
    await world.until(other.create('/w'));
    await world.settle();
    expect(events).toMatchObject([{ type: 'NodeCreated', path: '/w' }]);
    expect((await world.until(other.exists('/e')))!.ephemeralOwner).toBe(sessionId);
  });

  it('C2-24: keeps the chroot, and accepts servers in any form', async () => {
    name('one');
    const zk = await world.until(connect('one:2181/app', world.options()));
    await world.until((await world.connect()).create('/app'));
    expect(zk.updateServerList(['one', { host: '::1', port: 99 }, '[::2]:98'])).toBe(zk.connectedServer === undefined);
    expect(zk.servers.toSorted()).toEqual(['[::1]:99', '[::2]:98', 'one:2181']);
    expect((await world.until(zk.create('/x'))).path).toBe('/x');
  });

  it.each([
    [
      'zk1,zk2/app',
      'connect string "zk1,zk2/app": a list of servers cannot have a chroot; write it at the end of a connect string, or call client.chroot(path). Write it as host:port,host:port.',
    ],
    ['srv:_zk._tcp.test', 'a list contains servers; use an SRV name only as a connect string of its own. Write it as host:port,host:port.'],
    ['', 'it has no host. Write it as host:port'],
    [[], 'The list of servers is empty. Give at least one server.'],
    [['zk:0'], 'the port of "zk:0" is not a number from 1 to 65535'],
    [[{ host: '', port: 1 }], '"" in the list of servers is not a host. Give a name or an address; IPv6 without brackets.'],
    [[{ host: '[::1]', port: 1 }], '"[::1]" in the list of servers is not a host.'],
    [[{ host: 'zk', port: 65_536 }], 'The port of "zk" in the list of servers is 65536. Give a number from 1 to 65535.'],
  ])('C2-24: rejects %j with a message, and changes nothing', async (list, complaint) => {
    const zk = await world.connect();
    expect(() => zk.updateServerList(list)).toThrow(ConnectStringError);
    expect(() => zk.updateServerList(list)).toThrow(complaint);
    expect(zk.servers).toEqual(['server:2181']);
  });

  it('C2-24: does nothing on a closed client', async () => {
    const zk = await world.connect();
    await world.until(zk.close());
    expect(zk.updateServerList('elsewhere')).toBe(false);
    expect(zk.state).toBe('closed');
  });
});

describe('names', () => {
  it('C2-6: a client finds the server under any of its names each time the connection is lost', async () => {
    name('one');
    world.wire.name('two', []);
    world.wire.name('three', []);
    const zk = await world.until(connect('one,two,three', world.options()));
    for (const [from, to] of [
      ['one', 'two'],
      ['two', 'three'],
      ['three', 'one'],
    ] as const) {
      world.kill();
      world.wire.name(from, []);
      await world.untilSo(() => zk.state === 'suspended');
      await world.boot();
      name(to);
      await world.untilSo(() => zk.state === 'connected');
      expect(zk.connectedServer).toBe(`${to}:2181`);
    }
  });

  it('B37: a client finds a server with a new address by its name', async () => {
    const zk = await world.connect();
    const { sessionId } = zk;
    const before = world.address;
    world.kill();
    await world.boot();
    expect(world.address).not.toBe(before);
    await world.untilSo(() => zk.state === 'connected');
    expect(zk.sessionId).toBe(sessionId);
  });

  it.each([
    ['without a listener', 'EHOSTUNREACH', 0],
    ['without an answer', 'silence', 7500],
  ])('B37, E10: all addresses of a name are tried within the time of its server, including those %s', async (_where, what, mostMs) => {
    const dead = ['10.9.0.1', '10.9.0.2', '10.9.0.3'];
    world.wire.name('many', [...dead, world.address]);
    const took: number[] = [];
    for (let client = 1; client <= 6; client++) {
      const options = world.options();
      if (what === 'silence') {
        for (const address of dead) {
          world.wire.stack(address);
          world.wire.cut(`10.1.0.${client}`, address);
        }
      }
      const begun = world.clock.now().elapsedMs;
      const zk = await world.until(connect('many:2181', options));
      expect(zk.connectedServer).toBe('many:2181');
      took.push(world.clock.now().elapsedMs - begun);
    }
    // A quarter of 10 s for each silent address; the order is random.
    for (const each of took) expect([0, 2500, 5000, 7500]).toContain(each);
    expect(Math.max(...took)).toBe(mostMs);
  });
});

describe('B37: an SRV name', () => {
  function withService(lookUp: () => Promise<readonly { host: string; port: number }[]>): { transport: Transport; asked: string[] } {
    const asked: string[] = [];
    const wire = world.options().transport!;
    const transport: Transport = {
      resolve: (host) => wire.resolve!(host),
      resolveSrv: async (service) => {
        asked.push(service);
        return (await lookUp()).map((server) => ({ ...server, priority: 0, weight: 0 }));
      },
      connect: (address, sink) => wire.connect(address, sink),
    };
    return { transport, asked };
  }

  it('names the servers, with their ports, and the chroot applies to all of them', async () => {
    name('one', 'two');
    const { transport, asked } = withService(() =>
      Promise.resolve([
        { host: 'one', port: 2181 },
        { host: 'two', port: 2181 },
      ]),
    );
    await world.until((await world.connect()).create('/app'));
    const zk = await world.until(connect('srv:_zookeeper._tcp.example.com/app', world.options({ transport })));
    expect(asked).toEqual(['_zookeeper._tcp.example.com']);
    expect(zk.servers.toSorted()).toEqual(['one:2181', 'two:2181']);
    expect((await world.until(zk.create('/x'))).path).toBe('/x');
  });

  it('is resolved again after all its servers have failed, and a failed look-up is not final', async () => {
    let servers = [{ host: 'one', port: 2181 }];
    name('one');
    let fails = true;
    const { transport, asked } = withService(() => {
      fails = !fails;
      return fails ? Promise.reject(new Error('the domain is not there')) : Promise.resolve(servers);
    });
    const zk = await world.until(connect('srv:zk.service.consul', world.options({ transport })));
    world.kill();
    world.wire.name('one', []);
    await world.boot();
    name('two');
    servers = [{ host: 'two', port: 2181 }];
    await world.untilSo(() => zk.connectedServer === 'two:2181');
    expect(asked.length).toBeGreaterThanOrEqual(3);
    expect(zk.servers).toEqual(['two:2181']);
  });

  it('is rejected if the transport cannot resolve it', async () => {
    const { transport } = withService(() => Promise.resolve([]));
    delete (transport as { resolveSrv?: unknown }).resolveSrv;
    await expect(connect('srv:_zookeeper._tcp.example.com', world.options({ transport }))).rejects.toThrow(
      'connect string "srv:_zookeeper._tcp.example.com": the transport does not support SRV names, as it has no resolveSrv. List the servers one by one.',
    );
  });

  it('is named in the error after the timeout', async () => {
    const { transport } = withService(() => Promise.resolve([]));
    await expect(
      world.until(connect('srv:_zookeeper._tcp.example.com', world.options({ transport, connectTimeoutMs: 3000 }))),
    ).rejects.toThrow('no session within 3000 ms; srv:_zookeeper._tcp.example.com: SRV lookup found no servers (9 attempts)');
  });
});

describe('followConfig', () => {
  const server = (sid: number, host: string, client = `;${host}:2181`) => `server.${sid}=${host}:2888:3888:participant${client}`;

  /** A client that may change the ensemble's configuration. */
  async function operator(): Promise<Client> {
    return world.connect({ auth: [{ scheme: 'digest', auth: 'super:secret' }] });
  }

  async function publish(zk: Client, ...lines: string[]): Promise<void> {
    await world.until(zk.setData(systemPath.config, lines.join('\n')));
    await world.settle();
  }

  it('B36, D19: a client uses the servers of the configuration, at first and after each change', async () => {
    name('one', 'two', 'three');
    const admin = await operator();
    await publish(admin, server(1, 'one'), server(2, 'two'), 'version=1');
    const zk = await world.until(connect('one', world.options({ followConfig: true })));
    expect(zk.servers.toSorted()).toEqual(['one:2181', 'two:2181']);
    const follows = (...listed: string[]) =>
      world.untilSo(() => zk.servers.toSorted().join() === listed.join() && listed.includes(zk.connectedServer ?? ''));
    await publish(admin, server(2, 'two', ';2181'), server(3, 'three', ';0.0.0.0:2181'), 'version=2');
    await follows('three:2181', 'two:2181');
    // The same servers again, in another order and with other roles: no client moves.
    const states: string[] = [];
    zk.on('state', ({ state }) => states.push(state));
    await publish(admin, server(3, 'three', ';three:2181').replace('participant', 'observer'), server(2, 'two'), 'version=3');
    await world.pass(3000);
    expect(states).toEqual([]);
    await publish(admin, server(1, 'one'), 'version=4');
    await follows('one:2181');
    expect(states).toEqual(['Disconnected', 'SyncConnected']);
  });

  it('B36: a client connected to a server that is not listed moves to a listed one, and no call is lost', async () => {
    name('front', 'one');
    await publish(await operator(), server(1, 'one'), 'version=1');
    const zk = await world.until(connect('front', world.options({ followConfig: true })));
    expect((await world.until(zk.create('/x'))).path).toBe('/x');
    expect(zk.connectedServer).toBe('one:2181');
  });

  it('B36: a configuration that changes during a lost connection is applied after the reconnect', async () => {
    name('one', 'two');
    const admin = await operator();
    await publish(admin, server(1, 'one'), 'version=1');
    const zk = await world.until(connect('one', world.options({ followConfig: true })));
    const link = world.cnxn;
    world.wire.name('one', []);
    world.break(link);
    await publish(admin, server(1, 'one'), server(2, 'two'), 'version=2');
    expect(zk.servers).toEqual(['one:2181']);
    name('one');
    await world.untilSo(() => zk.servers.length === 2);
  });

  it.each([
    ['is empty, as on a standalone server', []],
    ['has a server without an address for clients', [server(1, 'one'), server(2, 'two', ''), 'version=1']],
    ['has an invalid port', [server(1, 'one', ';one:0'), 'version=1']],
    ['cannot be read', ['server.1=nonsense']],
  ])('B36: a client whose configuration %s keeps its list', async (_what, lines) => {
    if (lines.length > 0) await publish(await operator(), ...lines);
    const zk = await world.connect({ followConfig: true });
    expect(zk.servers).toEqual(['server:2181']);
    expect(zk.connectedServer).toBe('server:2181');
  });

  it('B36: rejects if the session ends before the configuration has been read: no later state event says so', async () => {
    name('one');
    const zk = await world.until(connect('one', world.options()));
    world.wire.name('one', []);
    world.break();
    await world.untilSo(() => zk.state === 'suspended');
    await world.pass(60_000);
    name('one');
    const following = followConfig(zk);
    await expect(world.until(following)).rejects.toMatchObject({ code: 'SessionExpired' });
    expect(zk.endReason).toBe('expired');
  });

  it('B36: a client that may not read the configuration keeps its list, until it may', async () => {
    const admin = await operator();
    await publish(admin, server(1, 'one'), 'version=1');
    await world.until(admin.setACL(systemPath.config, [{ perms: Perms.read, id: { scheme: 'digest', id: digestId('reader:x') } }]));
    const zk = await world.connect({ followConfig: true });
    await world.settle();
    expect(zk.servers).toEqual(['server:2181']);
    await world.until(admin.setACL(systemPath.config, [{ perms: Perms.read, id: anyone }]));
    world.break();
    name('one');
    await world.untilSo(() => zk.servers[0] === 'one:2181');
  });

  it('B36: is off by default', async () => {
    await publish(await operator(), server(1, 'one'), 'version=1');
    const zk = await world.connect();
    await world.pass(1000);
    expect(zk.servers).toEqual(['server:2181']);
  });

  it('B36: lets connect still reject by its signal and its time-out', async () => {
    const events: SessionEvent[] = [];
    const controller = new AbortController();
    const options = world.options({ followConfig: true, signal: controller.signal });
    const joining = connect('server:2181', options).then(
      (zk) => zk.on('state', (event) => events.push(event)),
      (error: unknown) => error,
    );
    world.wire.conditionsOf = () => ({ delayMs: 300 });
    await world.pass(1000);
    controller.abort(new Error('never mind'));
    expect(await world.until(joining)).toMatchObject({ message: 'never mind' });
  });
});

describe('the client addresses in a configuration', () => {
  it.each([
    ['server.1=a:1:2:participant;c:3\nserver.2=b:1:2:observer;[::1]:4\nversion=1', ['c:3', '::1:4']],
    ['server.1=a:1:2:participant;0.0.0.0:3', ['a:3']],
    ['server.1=a:1:2:participant;[::]:3', ['a:3']],
    ['server.1=a:1:2|b:3:4:participant;3', ['a:3']],
    ['server.1=a:1:2:participant;3\nserver.2=b:1:2:participant', undefined],
    ['server.1=a:1:2:participant;c d:3', undefined],
    ['version=0', undefined],
    ['', undefined],
    ['server.1=', undefined],
  ])('are complete or undefined: %j', (text, addresses) => {
    expect(clientAddressesOf(text)?.map(({ host, port }) => `${host}:${port}`)).toEqual(addresses);
  });
});
