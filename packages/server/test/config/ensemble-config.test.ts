import { readFileSync } from 'node:fs';
import type { QuorumConfig, QuorumServer } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../src/config/config-error.ts';
import { configKeys } from '../../src/config/config-keys.ts';
import type { EnsembleConfig } from '../../src/config/ensemble-config.ts';
import { ensembleOptionsOf } from '../../src/config/ensemble-options.ts';
import type { ConfigSources } from '../../src/config/config-sources.ts';
import { resolveConfig, type ServerConfig } from '../../src/config/server-config.ts';

const three = 'server.1=a:2888:3888\nserver.2=b:2888:3888\nserver.3=c:2888:3888\n';
const limits = 'initLimit=10\nsyncLimit=5\n';
const base = `dataDir=/d\nclientPort=2181\n`;

interface World {
  readonly files?: Readonly<Record<string, string>>;
  readonly definitions?: readonly string[];
}

function sources(text: string, { files = {}, definitions = [] }: World): ConfigSources {
  const all: Record<string, string> = { '/d/myid': '1\n', ...files };
  const readFile = (path: string): string => {
    if (all[path] === undefined) throw Object.assign(new Error('no such file'), { code: 'ENOENT' });
    if (all[path] === 'EACCES') throw Object.assign(new Error('not yours'), { code: 'EACCES' });
    return all[path];
  };
  return { file: { name: 'zoo.cfg', text }, definitions, readFile };
}

/** `lines` begin at line 5. */
function read(lines: string, world: World = {}): ServerConfig {
  return resolveConfig(sources(base + limits + lines, world));
}

function ensembleOf(lines: string, world: World = {}): EnsembleConfig {
  const { ensemble } = read(three + lines, world);
  if (ensemble === undefined) throw new Error('it is not an ensemble');
  return ensemble;
}

function refusal(text: string, world: World = {}): string {
  try {
    resolveConfig(sources(text, world));
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  return 'accepted';
}

function sids({ servers }: QuorumConfig): number[] {
  return [...servers.keys()];
}

describe('an ensemble', () => {
  it('of three servers, as in the manual, has the defaults of ZooKeeper', () => {
    const config = read(`tickTime=2000\n${three}`);
    const server = (sid: number, host: string): QuorumServer => ({
      sid,
      role: 'participant',
      addresses: [{ host, quorumPort: 2888, electionPort: 3888 }],
    });
    expect(config.ensemble).toEqual({
      myid: 1,
      role: 'participant',
      quorum: {
        version: 0,
        servers: new Map([
          [1, server(1, 'a')],
          [2, server(2, 'b')],
          [3, server(3, 'c')],
        ]),
        groups: new Map(),
        weights: new Map(),
      },
      lastSeen: undefined,
      configFile: 'zoo.cfg',
      dynamicConfigFile: undefined,
      standaloneEnabled: true,
      reconfigEnabled: false,
      readOnlyMode: false,
      initLimitTicks: 10,
      syncLimitTicks: 5,
      connectToLearnerMasterTicks: 10,
      maxTimeToWaitForEpochMs: undefined,
      leaderConnectDelayDuringRetryMs: 100,
      maxUnknownObservers: 16,
      leaderPriority: 1,
      cnxTimeoutMs: 5000,
      quorumCnxnTimeoutMs: 10_000,
      electionPortBindRetry: 3,
      minNotificationIntervalMs: 200,
      maxNotificationIntervalMs: 60_000,
      quorumListenOnAllIps: false,
      tcpKeepAlive: false,
      multiAddressEnabled: false,
      reachabilityCheckTimeoutMs: undefined,
      leaderServes: true,
      commitLogCount: 500,
      forceSnapshotSync: false,
      snapSyncsMax: 10,
      diffSyncsMax: 100,
      snapshotSizeFactor: 0.33,
      syncEnabled: true,
      observerElectionDelayMs: 200,
      observerReconnectDelayMs: 0,
      observerMasterPort: undefined,
      observerMasterSizeLimitBytes: 33_554_432,
      localSessions: 'disabled',
      oraclePath: undefined,
    } satisfies EnsembleConfig);
    expect(config.core.serverId).toBe(1);
    expect([config.warnings, config.notices]).toEqual([[], []]);
  });

  it.each<[string, Partial<EnsembleConfig>]>([
    ['connectToLearnerMasterLimit=3', { connectToLearnerMasterTicks: 3 }],
    ['leader.maxTimeToWaitForEpoch=77', { maxTimeToWaitForEpochMs: 77 }],
    ['leaderConnectDelayDuringRetryMs=7', { leaderConnectDelayDuringRetryMs: 7 }],
    ['tskeeper.maxUnknownObservers=0', { maxUnknownObservers: 0 }],
    ['tskeeper.leaderPriority=0', { leaderPriority: 0 }],
    ['cnxTimeout=7', { cnxTimeoutMs: 7 }],
    ['quorumCnxnTimeoutMs=7', { quorumCnxnTimeoutMs: 7 }],
    ['quorumCnxnTimeoutMs=0', { quorumCnxnTimeoutMs: 15_000 }],
    ['electionPortBindRetry=0', { electionPortBindRetry: 0 }],
    ['fastleader.minNotificationInterval=7', { minNotificationIntervalMs: 7 }],
    ['fastleader.maxNotificationInterval=7', { maxNotificationIntervalMs: 7 }],
    ['electionAlg=3', {}],
    ['quorumListenOnAllIPs=true', { quorumListenOnAllIps: true }],
    ['tcpKeepAlive=true', { tcpKeepAlive: true }],
    ['multiAddress.enabled=true', { multiAddressEnabled: true, reachabilityCheckTimeoutMs: 1000 }],
    ['multiAddress.enabled=true\nmultiAddress.reachabilityCheckTimeoutMs=7', { multiAddressEnabled: true, reachabilityCheckTimeoutMs: 7 }],
    [
      'multiAddress.enabled=true\nmultiAddress.reachabilityCheckEnabled=false',
      { multiAddressEnabled: true, reachabilityCheckTimeoutMs: undefined },
    ],
    ['multiAddress.reachabilityCheckTimeoutMs=7', {}],
    ['multiAddress.reachabilityCheckEnabled=true', {}],
    ['leaderServes=no', { leaderServes: false }],
    ['-Dzookeeper.leaderServes=no', { leaderServes: false }],
    ['commitLogCount=700', { commitLogCount: 700 }],
    ['forceSnapshotSync=true', { forceSnapshotSync: true }],
    ['leader.maxConcurrentSnapSyncs=3', { snapSyncsMax: 3 }],
    ['leader.maxConcurrentDiffSyncs=7', { diffSyncsMax: 7 }],
    ['snapshotSizeFactor=0.5', { snapshotSizeFactor: 0.5 }],
    ['snapshotSizeFactor=-1', { snapshotSizeFactor: -1 }],
    ['syncEnabled=false', { syncEnabled: false }],
    ['syncEnabled=false\nobserver.syncEnabled=true', { syncEnabled: true }],
    ['observer.syncEnabled=false', { syncEnabled: false }],
    ['observer.election.DelayMs=7', { observerElectionDelayMs: 7 }],
    ['observer.reconnectDelayMs=7', { observerReconnectDelayMs: 7 }],
    ['observerMasterPort=2191', { observerMasterPort: 2191 }],
    ['observerMaster.sizeLimit=7', { observerMasterSizeLimitBytes: 7 }],
    ['localSessionsEnabled=true', { localSessions: 'enabled' }],
    ['localSessionsUpgradingEnabled=true', {}],
    ['localSessionsEnabled=true\nlocalSessionsUpgradingEnabled=true', { localSessions: 'upgradable' }],
    ['oraclePath=/o', { oraclePath: '/o' }],
    ['standaloneEnabled=false', { standaloneEnabled: false }],
    ['reconfigEnabled=true', { reconfigEnabled: true }],
    ['-Dreadonlymode.enabled=true', { readOnlyMode: true }],
  ])('applies the setting %s', (setting, expected) => {
    const usual = ensembleOf('');
    const changed = setting.startsWith('-D') ? ensembleOf('', { definitions: [setting.slice(2)] }) : ensembleOf(setting);
    expect(changed).toEqual({ ...usual, ...expected });
  });

  it('starts with reconfigEnabled=true', () => {
    const { ensemble, core, warnings } = read(`${three}reconfigEnabled=true`);
    expect([ensemble!.reconfigEnabled, core.reconfigEnabled, warnings]).toEqual([true, true, []]);
  });

  it('A55: warns of observers that could find no follower', () => {
    const lines = `${base}${limits}standaloneEnabled=false\nserver.1=a:2888:3888\nserver.4=d:2888:3888:observer\n`;
    expect(read(`${lines}observerMasterPort=2191`).warnings).toContainEqual(
      expect.stringMatching(/observerMasterPort observers learn from followers, and one participant alone has none/),
    );
    expect(read(`${three}server.4=d:2888:3888:observer\nobserverMasterPort=2191`).warnings).toEqual([]);
  });

  it('A54: takes syncEnabled=false from an observer, and warns a participant that it has no effect', () => {
    const observer = `${three}server.4=d:2888:3888:observer\n`;
    const warnings = (setting: string, myid: number) => read(`${observer}${setting}`, { files: { '/d/myid': `${myid}` } }).warnings;
    expect(warnings('syncEnabled=false', 4)).toEqual([]);
    expect(warnings('syncEnabled=false', 1)).toEqual([
      'zoo.cfg:9: syncEnabled=false has no effect on server.1, which is a participant: only an observer can do without a log.',
    ]);
    expect(warnings('observer.syncEnabled=false', 1)[0]).toMatch(/^zoo.cfg:9: observer.syncEnabled=false has no effect/);
  });

  it('has a test above for each key that the reference marks as for ensembles', () => {
    const source = readFileSync(new URL(import.meta.url), 'utf8');
    const elsewhere = ['group.*', 'weight.*', 'initLimit', 'syncLimit'];
    const keys = configKeys.filter(({ status }) => status === 'ensemble').map(({ name }) => name);
    expect(keys.length).toBeGreaterThan(20);
    expect(keys.filter((name) => !elsewhere.includes(name) && !source.includes(`${name}=`))).toEqual([]);
  });

  it('applies initLimit and syncLimit, in ticks', () => {
    const { ensemble } = resolveConfig(sources(`${base}initLimit=7\nsyncLimit=3\ntickTime=1000\n${three}`, {}));
    expect([ensemble?.initLimitTicks, ensemble?.syncLimitTicks]).toEqual([7, 3]);
    expect(ensemble?.quorumCnxnTimeoutMs).toBe(3000);
  });

  it('may be a single server with standaloneEnabled=false', () => {
    const config = read('standaloneEnabled=false\nserver.1=a:2888:3888\n');
    expect(sids(config.ensemble!.quorum)).toEqual([1]);
    expect(config.warnings).toEqual(['zoo.cfg:6: an ensemble of one participant stops serving when one server fails. Use at least three.']);
  });

  it('may have groups and weights', () => {
    const { groups, weights } = ensembleOf('group.1=1\ngroup.2=2:3\nweight.2=3').quorum;
    expect([...groups]).toEqual([
      [1, [1]],
      [2, [2, 3]],
    ]);
    expect([...weights]).toEqual([
      [1, 1],
      [2, 3],
      [3, 1],
    ]);
  });

  it('A60: may have servers with several addresses, with multiAddress.enabled', () => {
    const line = 'server.2=b:2888:3888|b2:2888:3888\n';
    const { ensemble } = read(`server.1=a:2888:3888\n${line}multiAddress.enabled=true`);
    expect(ensemble!.quorum.servers.get(2)!.addresses.map(({ host }) => host)).toEqual(['b', 'b2']);
  });

  it('may be observed by this server, with or without peerType', () => {
    const lines = `${three}server.4=d:1:2:observer\n`;
    for (const peerType of ['', 'peerType=observer', 'peerType=OBSERVER']) {
      const { ensemble, warnings } = read(lines + peerType, { files: { '/d/myid': '4' } });
      expect([ensemble!.role, warnings]).toEqual(['observer', []]);
    }
  });

  it('takes the client port of this server from its line', () => {
    const lines = three.replace('b:2888:3888', 'b:2888:3888:observer;10.0.0.2:2182');
    const text = `dataDir=/d\n${limits}${lines}server.4=d:2888:3888\n`;
    const config = resolveConfig(sources(text, { files: { '/d/myid': '2' } }));
    expect([config.runtime.clientPort, config.runtime.clientPortAddress]).toEqual([2182, '10.0.0.2']);
    expect([config.ensemble!.role, config.core.serverId]).toEqual(['observer', 2]);
  });

  it.each(['2', ' 2 \n', '2\r\nwhatever', '+2', '002'])('finds its number in a myid that contains %j', (myid) => {
    expect(ensembleOf('', { files: { '/d/myid': myid } }).myid).toBe(2);
  });

  it('has keys that have no effect on a standalone server and cause a notice for each', () => {
    const { ensemble, notices } = resolveConfig(sources(`${base}${limits}syncEnabled=true\nserver.1=a:2888:3888\n`, {}));
    expect(ensemble).toBeUndefined();
    expect(notices).toEqual(
      ['zoo.cfg:3: initLimit', 'zoo.cfg:4: syncLimit', 'zoo.cfg:5: syncEnabled'].map(
        (key) => `${key} is accepted and has no effect: it matters in an ensemble only.`,
      ),
    );
  });

  it('is not configured by the myid of a standalone server', () => {
    expect(read('server.1=a:2888:3888', { files: { '/d/myid': 'nonsense' } }).core.serverId).toBe(1);
  });
});

describe('a dynamic file', () => {
  const dynamic = 'dynamicConfigFile=/conf/zoo.cfg.dynamic.100000003\nreconfigEnabled=true\n';
  const files = { '/conf/zoo.cfg.dynamic.100000003': three };

  it('contains the servers, and has its version at the end of its name', () => {
    const { ensemble } = read(dynamic, { files });
    expect(sids(ensemble!.quorum)).toEqual([1, 2, 3]);
    expect([ensemble!.quorum.version, ensemble!.dynamicConfigFile]).toEqual([0x1_00000003, '/conf/zoo.cfg.dynamic.100000003']);
    expect(ensemble!.lastSeen).toBeUndefined();
  });

  it.each([
    ['/conf/zoo.cfg.dynamic', 0],
    ['/conf/servers', 0],
    ['/conf.d/servers', 0],
    ['/conf/x.ff', 255],
  ])('named %s is of version %i', (path, version) => {
    const { ensemble } = read(`dynamicConfigFile=${path}`, { files: { [path]: three } });
    expect(ensemble!.quorum.version).toBe(version);
  });

  it('need not name the server if its successor does: the change may need this server', () => {
    const next = `${three}server.4=d:2888:3888:participant;2182\nversion=100000009\n`;
    const settings = { files: { ...files, 'zoo.cfg.dynamic.next': next, '/d/myid': '4' } };
    const { ensemble, runtime } = read(dynamic, settings);
    expect([ensemble!.myid, ensemble!.role, sids(ensemble!.quorum)]).toEqual([4, 'participant', [1, 2, 3]]);
    expect(runtime.clientPort).toBe(2181);
    expect(resolveConfig(sources(`dataDir=/d\n${limits}${dynamic}`, settings)).runtime.clientPort).toBe(2182);
    expect(() => read(dynamic, { files: { ...files, '/d/myid': '4' } })).toThrow('there is no line server.4 in ');
  });

  it('may have a successor that was received but not activated', () => {
    const next = `${three}server.4=d:2888:3888:observer\nversion=100000009\n`;
    const { ensemble } = read(dynamic, { files: { ...files, 'zoo.cfg.dynamic.next': next } });
    expect(sids(ensemble!.lastSeen!)).toEqual([1, 2, 3, 4]);
    expect(ensemble!.lastSeen!.version).toBe(0x1_00000009);
    expect(ensembleOptionsOf(ensemble!, 2000).lastSeen).toBe(ensemble!.lastSeen);
    expect(() => read(dynamic.replace('true', 'false'), { files: { ...files, 'zoo.cfg.dynamic.next': next } })).toThrow(
      'zoo.cfg.dynamic.next: a change of the ensemble was under way when this server last stopped. Set reconfigEnabled=true, as on the other servers, so that it can be finished.',
    );
  });

  it.each([
    [{ 'zoo.cfg.dynamic.next': 'EACCES' }, 'zoo.cfg.dynamic.next: the file cannot be read (EACCES). Let this user read it.'],
    [
      { '/conf/zoo.cfg.dynamic.100000003': `${three}version=1` },
      '/conf/zoo.cfg.dynamic.100000003:4: the version of a dynamic file is the end of its name. Remove the line.',
    ],
  ])('with invalid lines is refused: %j', (more, message) => {
    expect(refusal(base + limits + dynamic, { files: { ...files, ...more } })).toBe(message);
  });

  it('has no successor if that is cut short: a warning says so', () => {
    const { ensemble, warnings } = read(dynamic, { files: { ...files, 'zoo.cfg.dynamic.next': 'server.1=a' } });
    expect(ensemble!.lastSeen).toBeUndefined();
    expect(warnings).toEqual([
      'zoo.cfg.dynamic.next: server.1 must be host:quorumPort:electionPort[:participant|observer][;[clientHost:]clientPort], not "a". The file is ignored: remove it once this server follows a leader.',
    ]);
  });

  it('of a version larger than any zxid is refused', () => {
    const path = '/x.20000000000000';
    expect(refusal(`${base}${limits}dynamicConfigFile=${path}`, { files: { [path]: three } })).toBe(
      'zoo.cfg:5: dynamicConfigFile ends in a version of 20000000000000, and versions are below 2^53. Give the file another name.',
    );
  });

  it('with two lines for one server is refused', () => {
    const twice = { '/x': `server.1=x:2888:3888\n${three}` };
    expect(refusal(`${base}${limits}dynamicConfigFile=/x`, { files: twice })).toBe(
      '/x:2: server.1 has another value at /x:1. Keep one of the lines; each server has a number of its own.',
    );
  });
});

describe('a configuration of an ensemble is refused', () => {
  it.each<[string, string, string, World?]>([
    [
      'without initLimit',
      `${base}syncLimit=5\n${three}`,
      'zoo.cfg: initLimit is not set, and an ensemble needs it. Add a line such as initLimit=10, in ticks.',
    ],
    [
      'with a syncLimit of 0',
      `${base}initLimit=5\nsyncLimit=0\n${three}`,
      'zoo.cfg:4: syncLimit is not set, and an ensemble needs it. Add a line such as syncLimit=5, in ticks.',
    ],
    ['with another election algorithm', `${base}${limits}electionAlg=0\n${three}`, 'zoo.cfg:5: electionAlg must be 3, not "0".'],
    [
      'with an invalid peerType',
      `${base}${limits}peerType=voter\n${three}`,
      'zoo.cfg:5: peerType must be participant or observer, not "voter".',
    ],
    [
      'of observers only',
      `${base}${limits}server.1=a:1:2:observer\nserver.2=b:1:2:observer`,
      'zoo.cfg:5: every server is an observer, and an observer needs participants to observe. Make one or three of them participants.',
    ],
    [
      'of one participant with an observer',
      `${base}${limits}server.1=a:1:2\nserver.2=b:1:2:observer`,
      'zoo.cfg:5: one participant alone runs standalone, and the observer has nothing to observe. Add participants, or set standaloneEnabled=false.',
    ],
    [
      'without a participant',
      `${base}${limits}standaloneEnabled=false`,
      'zoo.cfg:5: standaloneEnabled=false asks for an ensemble, but no server is a participant. Add a line such as server.1=host:2888:3888.',
    ],
    [
      'with an invalid server number',
      `${base}${limits}${three}server.x=d:1:2`,
      'zoo.cfg:8: server.x: the number after the dot must be in decimal digits, not "x".',
    ],
    [
      'with a participant in no group',
      `${base}${limits}${three}group.1=1:2`,
      'zoo.cfg:7: server 3 is in no group: with groups or weights, list every participant in one.',
    ],
    [
      'with several addresses of a server, unless they are enabled',
      `${base}${limits}server.1=a:1:2|b:1:2\nserver.2=c:1:2`,
      'zoo.cfg:5: server.1 has 2 addresses, and multiAddress.enabled is false. Keep one address, or set multiAddress.enabled=true on all servers.',
    ],
    [
      'with two servers on one port',
      `${base}${limits}server.1=a:2888:3888\nserver.2=A:2889:2888`,
      'zoo.cfg:6: the election port of server.2 is A:2888, which is the quorum port of server.1 already. Give one of them another port.',
    ],
    [
      'with two servers on one port of this machine',
      `${base}${limits}server.1=[::1]:2888:3888\nserver.2=[::1]:2888:3889`,
      'zoo.cfg:6: the quorum port of server.2 is [::1]:2888, which is the quorum port of server.1 already. Give one of them another port.',
    ],
    [
      'with one port for clients and servers',
      `${base}${limits}server.1=a:2181:3888;2181\nserver.2=b:2181:3888`,
      'zoo.cfg:5: server.1 uses port 2181 for clients and for other servers. Give one of them another port.',
    ],
    [
      'with two servers whose clients dial the same port',
      `${base}${limits}server.1=a:1:2;c:2181\nserver.2=b:1:2;c:2181`,
      'zoo.cfg:6: the client port of server.2 is c:2181, which is the client port of server.1 already. Give one of them another port.',
    ],
    [
      'with observers on a port that is in use',
      `${base}${limits}observerMasterPort=3888\n${three}`,
      'zoo.cfg:5: observerMasterPort is 3888, which the line of server.1 uses already. Give one of them another port.',
    ],
    [
      'with another client port in the line of this server',
      `${base}${limits}server.1=a:1:2;2182\nserver.2=b:1:2`,
      'zoo.cfg:2: clientPort is 2181 and zoo.cfg:5 says 2182. Keep one of them.',
    ],
    [
      'with another client address in the line of this server',
      `${base}${limits}clientPortAddress=10.0.0.1\nserver.1=a:1:2;10.0.0.2:2181\nserver.2=b:1:2`,
      'zoo.cfg:5: clientPortAddress is 10.0.0.1 and zoo.cfg:6 says 10.0.0.2. Keep one of them.',
    ],
    [
      'without a client port',
      `dataDir=/d\n${limits}${three}`,
      'zoo.cfg: clientPort is not set. Add the line clientPort=2181, or pass --client-port.',
    ],
    [
      'with a myid that is not a number',
      `${base}${limits}${three}`,
      `/d/myid: the first line must be this server's number in decimal digits, one of 1, 2, 3, not "0x1".`,
      { files: { '/d/myid': '0x1\n' } },
    ],
    [
      'with an empty myid',
      `${base}${limits}${three}`,
      `/d/myid: the first line must be this server's number in decimal digits, one of 1, 2, 3, not "".`,
      { files: { '/d/myid': '' } },
    ],
    [
      'with a myid that cannot be read',
      `${base}${limits}${three}`,
      '/d/myid: the file cannot be read (EACCES). Let this user read it.',
      { files: { '/d/myid': 'EACCES' } },
    ],
    [
      'with a myid that no server line has',
      `${base}${limits}${three}`,
      '/d/myid: this server is number 7, and there is no line server.7 in zoo.cfg. Add the line, or write one of 1, 2, 3 into the file.',
      { files: { '/d/myid': '7' } },
    ],
    [
      'with a myid that is too large for TTL znodes',
      `${base}${limits}extendedTypesEnabled=true\n${three}server.255=d:1:2`,
      '/d/myid: with extendedTypesEnabled=true the number of a server is at most 254, not 255. Choose another number.',
      { files: { '/d/myid': '255' } },
    ],
    [
      'with leader.maxConcurrentSnapSyncs=0',
      `${base}${limits}leader.maxConcurrentSnapSyncs=0\n${three}`,
      'zoo.cfg:5: leader.maxConcurrentSnapSyncs must be a whole number from 1 to 2147483647, not "0".',
    ],
    [
      'with a snapshotSizeFactor that is not a number',
      `${base}${limits}snapshotSizeFactor=x\n${three}`,
      'zoo.cfg:5: snapshotSizeFactor must be a number, not "x".',
    ],
  ])('%s', (_what, text, message, world) => {
    expect(refusal(text, world)).toBe(message);
  });

  it('without a myid', () => {
    const { readFile: _files, ...rest } = sources(base + limits + three, {});
    const nothing = (): string => {
      throw Object.assign(new Error('no such file'), { code: 'ENOENT' });
    };
    expect(() => resolveConfig({ ...rest, readFile: nothing })).toThrow(
      "/d/myid: the file is missing, and a server of an ensemble needs it to know its number. Write this server's number into it: one of 1, 2, 3.",
    );
  });
});

describe('a configuration of an ensemble is accepted', () => {
  it.each([
    ['where each server listens for clients on all its addresses', 'server.1=a:1:2;2181\nserver.2=b:1:2;2181'],
    ['where each server listens for clients on its own loopback', 'server.1=a:1:2;127.0.0.1:2181\nserver.2=b:1:2;127.0.0.1:2181'],
    ['where this server is written as every address', 'server.1=0.0.0.0:2888:3888\nserver.2=b:2888:3888\nserver.3=0.0.0.0:2888:3888'],
    ['where two servers share a machine, on ports of their own', 'server.1=a:2888:3888\nserver.2=a:2889:3889'],
    ['where a name and an address may mean the same', 'clientPortAddress=localhost\nserver.1=a:1:2;127.0.0.1:2181\nserver.2=b:1:2'],
  ])('%s', (_what, lines) => {
    expect(refusal(base + limits + lines)).toBe('accepted');
  });
});

describe('a configuration of an ensemble is accepted with a warning', () => {
  it.each([
    [
      'server.1=a:1:2\nserver.2=b:1:2',
      'zoo.cfg:5: an ensemble of two participants stops serving when one server fails. Use at least three.',
    ],
    [`${three}server.4=d:1:2`, 'zoo.cfg:5: 4 participants tolerate no more failures than 3. Use an odd number.'],
    [`peerType=observer\n${three}`, 'zoo.cfg:5: peerType is observer, and the line of server.1 makes it a participant; the line applies.'],
    [
      `peerType=Participant\n${three.replace('a:2888:3888', 'a:2888:3888:observer')}server.4=d:1:2`,
      'zoo.cfg:5: peerType is participant, and the line of server.1 makes it an observer; the line applies.',
    ],
    [`commitLogCount=3\n${three}`, 'zoo.cfg:5: commitLogCount must be at least 500; using 500.'],
    [`electionPortBindRetry=-1\n${three}`, 'zoo.cfg:5: electionPortBindRetry must be at least 0; using 3.'],
    [`oraclePath=/o\n${three}group.1=1:2:3`, 'zoo.cfg:5: with oraclePath majorities decide: groups and weights have no effect.'],
  ])('%s', (lines, warning) => {
    expect(read(lines).warnings).toEqual([warning]);
  });
});
