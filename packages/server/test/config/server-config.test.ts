import { coreDefaults } from '@tskeeper/core';
import { runtimeDefaults } from '@tskeeper/runtime';
import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../src/config/config-error.ts';
import type { ConfigSources } from '../../src/config/config-sources.ts';
import { resolveConfig, type ServerConfig } from '../../src/config/server-config.ts';

const base = 'dataDir=/d\nclientPort=2181\n';

/** Lines after `base` are numbered from 3. */
function read(lines: string, more: Partial<ConfigSources> = {}): ServerConfig {
  return resolveConfig({ file: { name: 'zoo.cfg', text: base + lines }, ...more });
}

function refusal(lines: string, more: Partial<ConfigSources> = {}): string {
  try {
    read(lines, more);
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  return 'accepted';
}

describe('a minimal configuration', () => {
  it('A84a: gives the defaults of core and runtime', () => {
    const config = read('');
    expect(config.core).toEqual(coreDefaults);
    expect(config.runtime).toEqual({ ...runtimeDefaults, dataDir: '/d', dataLogDir: '/d', clientPort: 2181 });
    expect([config.clientTcpKeepAlive, config.warnings, config.notices]).toEqual([false, [], []]);
  });

  it('must contain dataDir and clientPort', () => {
    const text = (lines: string) => () => resolveConfig({ file: { name: 'zoo.cfg', text: lines } });
    expect(text('clientPort=1')).toThrow('zoo.cfg: dataDir is not set. Add a line such as dataDir=/var/lib/zookeeper, or pass --data-dir.');
    expect(text('dataDir=/d')).toThrow('zoo.cfg: clientPort is not set. Add the line clientPort=2181, or pass --client-port.');
  });
});

describe('a supported key', () => {
  it.each<[string, (config: ServerConfig) => unknown, unknown]>([
    ['tickTime=2000', ({ core }) => [core.tickTimeMs, core.minSessionTimeoutMs, core.maxSessionTimeoutMs], [2000, 4000, 40_000]],
    ['minSessionTimeout=100\nmaxSessionTimeout=200', ({ core }) => [core.minSessionTimeoutMs, core.maxSessionTimeoutMs], [100, 200]],
    ['maxSessionTimeout=-1', ({ core }) => core.maxSessionTimeoutMs, 60_000],
    ['dataLogDir=/l', ({ runtime }) => [runtime.dataDir, runtime.dataLogDir], ['/d', '/l']],
    ['clientPortAddress=10.0.0.1', ({ runtime }) => runtime.clientPortAddress, '10.0.0.1'],
    ['clientPortAddress=0.0.0.0', ({ runtime }) => runtime.clientPortAddress, undefined],
    ['clientPortAddress=[::1]', ({ runtime }) => runtime.clientPortAddress, '::1'],
    ['clientPortListenBacklog=7', ({ runtime }) => runtime.clientPortListenBacklog, 7],
    ['clientTcpKeepAlive=true', ({ clientTcpKeepAlive }) => clientTcpKeepAlive, true],
    ['snapCount=0x10', ({ runtime }) => runtime.snapCount, 16],
    ['snapCount=010', ({ runtime }) => runtime.snapCount, 8],
    ['tickTime=010', ({ core }) => core.tickTimeMs, 10],
    ['snapSizeLimitInKb=1', ({ runtime }) => runtime.snapSizeLimitBytes, 1024],
    ['snapSizeLimitInKb=-1', ({ runtime }) => runtime.snapSizeLimitBytes, 0],
    ['txnLogSizeLimitInKb=2', ({ runtime }) => runtime.txnLogSizeLimitBytes, 2048],
    ['preAllocSize=64', ({ runtime }) => runtime.preAllocSizeBytes, 65_536],
    ['fsync.warningthresholdms=5', ({ runtime }) => runtime.fsyncWarningThresholdMs, 5],
    ['flushDelay=9', ({ runtime }) => [runtime.flushDelayMs, runtime.maxWriteQueuePollMs], [9, 3]],
    ['flushDelay=9\nmaxWriteQueuePollTime=1', ({ runtime }) => runtime.maxWriteQueuePollMs, 1],
    ['maxBatchSize=2', ({ runtime }) => runtime.maxBatchSize, 2],
    ['snapshot.compression.method=GZ', ({ runtime }) => runtime.snapshotCompression, 'gz'],
    ['snapshot.compression.method=', ({ runtime }) => runtime.snapshotCompression, 'none'],
    ['serializeLastProcessedZxid.enabled=FALSE', ({ runtime }) => runtime.serializeLastProcessedZxid, false],
    ['autopurge.purgeInterval=0', ({ runtime }) => runtime.purgeIntervalMs, 0],
    ['autopurge.purgeInterval=24', ({ runtime }) => runtime.purgeIntervalMs, 86_400_000],
    ['autopurge.snapRetainCount=5', ({ runtime }) => runtime.snapRetainCount, 5],
    ['maxClientCnxns=0', ({ runtime }) => runtime.maxClientCnxns, 0],
    ['tskeeper.memoryLimitInMb=512', ({ memoryLimitBytes }) => memoryLimitBytes, 512 * 1024 ** 2],
    ['maxCnxns=9', ({ runtime }) => runtime.maxCnxns, 9],
    ['globalOutstandingLimit=9', ({ core }) => core.globalOutstandingLimit, 9],
    ['nio.sessionlessCnxnTimeout=9', ({ runtime }) => runtime.sessionlessTimeoutMs, 9],
    ['largeRequestThreshold=9', ({ runtime }) => runtime.largeRequestThreshold, 9],
    ['connection_throttle_tokens=9', ({ runtime }) => runtime.connectionThrottle.tokens, 9],
    ['connection_throttle_drop_increase=0.5', ({ runtime }) => runtime.connectionThrottle.dropIncrease, 0.5],
    [
      'connection_throttle_local_session_weight=5',
      ({ runtime }) => [runtime.connectionThrottle.globalSessionWeight, runtime.connectionThrottle.renewSessionWeight],
      [5, 5],
    ],
    ['extendedTypesEnabled=true', ({ core }) => core.extendedTypesEnabled, true],
    ['emulate353TTLNodes=true', ({ core }) => core.emulate353TtlNodes, true],
    ['tskeeper.keeperExtensions=true', ({ core }) => core.keeperExtensions, true],
    ['enforceQuota=true', ({ core }) => core.enforceQuota, true],
    ['reconfigEnabled=true', ({ core }) => core.reconfigEnabled, true],
    ['digest.enabled=false', ({ core }) => core.treeDigestEnabled, false],
    ['closeSessionTxn.enabled=false', ({ core }) => core.closeSessionTxnEnabled, false],
    ['jute.maxbuffer.extrasize=5', ({ core }) => core.juteMaxBufferExtra, 1024],
    ['request_throttle_max_requests=5', ({ core }) => core.requestThrottleLimit, 5],
    ['request_throttle_drop_stale=false', ({ core }) => core.requestThrottleDropStale, false],
    ['throttled_op_wait_time=5', ({ core }) => core.throttledOpWaitMs, 5],
    ['DigestAuthenticationProvider.enabled=false', ({ core }) => core.digestAuthEnabled, false],
    [
      'DigestAuthenticationProvider.superDigest=super:g9oN2HttPfn8MMWJZ2r45Np/LIA=',
      ({ core }) => core.superDigest,
      'super:g9oN2HttPfn8MMWJZ2r45Np/LIA=',
    ],
    ['DigestAuthenticationProvider.digestAlg=SHA-256', ({ core }) => core.digestAlgorithm, 'SHA-256'],
    ['DigestAuthenticationProvider.digestAlg=sha3-512', ({ core }) => core.digestAlgorithm, 'SHA3-512'],
    ['enforce.auth.enabled=true\nenforce.auth.schemes=digest, ip', ({ core }) => core.enforcedAuthSchemes, ['digest', 'ip']],
    ['enforce.auth.schemes=digest', ({ core }) => core.enforcedAuthSchemes, []],
    ['4lw.commands.whitelist=ruok, mntr', ({ runtime }) => runtime.fourLetterWords, ['mntr', 'ruok', 'srvr']],
    ['4lw.commands.whitelist=*', ({ runtime }) => runtime.fourLetterWords.length, 18],
    ['server.1=h:2888:3888;2181', ({ runtime }) => [runtime.clientPort, runtime.clientPortAddress], [2181, undefined]],
    ['server.1=h:2888:3888:participant;10.0.0.1:2181', ({ runtime }) => runtime.clientPortAddress, '10.0.0.1'],
    ['server.1=h:2888:3888;[::1]:2181', ({ runtime }) => runtime.clientPortAddress, '::1'],
    ['server.1=h:2888:3888', ({ runtime }) => runtime.clientPort, 2181],
  ])('%s takes effect', (lines, pick, expected) => {
    const config = read(lines);
    expect(pick(config)).toEqual(expected);
    expect(config.warnings).toEqual([]);
  });

  it.each([
    ['tickTime=fast', 'zoo.cfg:3: tickTime must be a whole number from 1 to 2147483647, not "fast".'],
    ['tickTime=0', 'zoo.cfg:3: tickTime must be a whole number from 1 to 2147483647, not "0".'],
    ['tickTime=0x10', 'zoo.cfg:3: tickTime must be a whole number from 1 to 2147483647, not "0x10".'],
    ['tickTime=1e3', 'zoo.cfg:3: tickTime must be a whole number from 1 to 2147483647, not "1e3".'],
    ['snapCount=08', 'zoo.cfg:3: snapCount must be a whole number from 2 to 2147483647, not "08".'],
    ['\nclientPort=65536', 'zoo.cfg:4: clientPort must be a whole number from 0 to 65535, not "65536".'],
    ['electionAlg=0', 'zoo.cfg:3: electionAlg must be 3, not "0".'],
    [
      'dataDir="/var/lib/zookeeper"',
      'zoo.cfg:3: the value of dataDir is in quotes, which would be part of the name of the folder. Write dataDir=/var/lib/zookeeper.',
    ],
    [
      "dataLogDir='/l'",
      'zoo.cfg:3: the value of dataLogDir is in quotes, which would be part of the name of the folder. Write dataLogDir=/l.',
    ],
    [
      'dynamicConfigFile="/x"',
      'zoo.cfg:3: the value of dynamicConfigFile is in quotes, which would be part of the name of the file. Write dynamicConfigFile=/x.',
    ],
    ['reconfigEnabled=yes', 'zoo.cfg:3: reconfigEnabled must be true or false, not "yes".'],
    ['forceSync=false', 'zoo.cfg:3: forceSync must be yes or no, not "false".'],
    ['connection_throttle_drop_increase=-1', 'zoo.cfg:3: connection_throttle_drop_increase must be a number of at least 0, not "-1".'],
    [
      'minSessionTimeout=70000',
      'zoo.cfg:3: minSessionTimeout (70000 ms) must not be larger than maxSessionTimeout (60000 ms). Change one of them.',
    ],
    ['snapshot.compression.method=zip', 'zoo.cfg:3: snapshot.compression.method must be gz, snappy or empty, not "zip".'],
    [
      'DigestAuthenticationProvider.superDigest=hunter2',
      'zoo.cfg:3: DigestAuthenticationProvider.superDigest must be super:<base64 of the digest of "super:password">, not a plain-text password.',
    ],
    [
      'DigestAuthenticationProvider.digestAlg=rot13',
      'zoo.cfg:3: DigestAuthenticationProvider.digestAlg names an unknown digest, "rot13". Choose SHA1, SHA-256 or SHA-512, the same on all servers.',
    ],
    ['enforce.auth.enabled=true', 'zoo.cfg:3: enforce.auth.enabled needs enforce.auth.schemes, such as enforce.auth.schemes=digest.'],
    [
      'enforce.auth.enabled=true\nenforce.auth.schemes=digest,sasl',
      'zoo.cfg:4: enforce.auth.schemes asks for sasl, which this server does not offer. Add authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider.',
    ],
    [
      'enforce.auth.enabled=true\nenforce.auth.schemes=digest\nDigestAuthenticationProvider.enabled=false',
      'zoo.cfg:4: enforce.auth.schemes names digest, which this server does not offer. Name some of: ip.',
    ],
  ])('%s is refused', (lines, message) => {
    expect(refusal(lines)).toBe(message);
  });
});

describe('a key of an unsupported protection', () => {
  const sentence = (key: string, what: string) =>
    `zoo.cfg:3: ${key} asks for ${what}, which this version does not support yet, and the server does not start with less protection than configured. Remove the setting to run without it.`;

  it.each([
    ['secureClientPort=2281', 'a TLS client port'],
    ['ssl.keyStore.location=/k', 'TLS'],
    ['ssl.quorum.keyStore.location=/k', 'TLS'],
    ['sslQuorum=true', 'TLS between servers'],
    ['quorum.auth.enableSasl=true', 'SASL between servers'],
    ['audit.enable=true', 'an audit log'],
    ['client.portUnification=true', 'TLS on the client port'],
  ])('%s stops the start', (line, what) => {
    expect(refusal(line)).toBe(sentence(line.slice(0, line.indexOf('=')), what));
  });

  it.each(['sslQuorum=false', 'quorum.auth.enableSasl=False', 'audit.enable=false', 'portUnification=false'])(
    '%s disables the protection and is accepted',
    (line) => {
      expect(read(line).warnings).toEqual([]);
    },
  );

  it('stops the start when it is set in the environment as well', () => {
    expect(refusal('', { environment: { SERVER_JVMFLAGS: '-Dzookeeper.ssl.clientAuth=need' } })).toContain(
      '-Dzookeeper.ssl.clientAuth in SERVER_JVMFLAGS: ssl.clientAuth asks for TLS',
    );
  });
});

describe('a key without effect', () => {
  it.each([
    [
      'admin.serverPort=8080',
      'zoo.cfg:3: admin.serverPort asks for the admin port, which this version does not support yet; it has no effect.',
    ],
    [
      'metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider',
      'zoo.cfg:3: metricsProvider.className asks for a metrics provider, which this version does not support yet; it has no effect.',
    ],
    [
      'metricsProvider.httpPort=7000',
      'zoo.cfg:3: metricsProvider.httpPort asks for a metrics provider, which this version does not support yet; it has no effect.',
    ],
    ['tickTim=1', 'zoo.cfg:3: tickTim is not a known key; it has no effect. Did you mean tickTime?'],
    ['clientport=1', 'zoo.cfg:3: clientport is not a known key; it has no effect. Did you mean clientPort?'],
    ['zookeeper.snapCount=5', 'zoo.cfg:3: zookeeper.snapCount is not a known key; it has no effect. Did you mean snapCount?'],
    ['completely.different=1', 'zoo.cfg:3: completely.different is not a known key; it has no effect.'],
    [
      'jute.maxbuffer=5000000',
      'zoo.cfg:3: jute.maxbuffer cannot be set in zoo.cfg, as in ZooKeeper; pass -Djute.maxbuffer=5000000. This line has no effect.',
    ],
    ['tickTime=1\ntickTime=2', 'zoo.cfg:3: tickTime is set again at zoo.cfg:4; the last one applies.'],
    ['autopurge.snapRetainCount=1', 'zoo.cfg:3: autopurge.snapRetainCount is raised to 3, the minimum.'],
    [
      '4lw.commands.whitelist=rouk',
      'zoo.cfg:3: 4lw.commands.whitelist names rouk, which is not a four letter word; known are conf, cons, crst, dirs, dump, envi, gtmk, hash, isro, mntr, ruok, srst, srvr, stat, stmk, wchc, wchp, wchs.',
    ],
  ])('%s causes a warning', (line, warning) => {
    expect(read(line).warnings).toEqual([warning]);
  });

  it.each([
    ['initLimit=10', 'zoo.cfg:3: initLimit is accepted and has no effect: it matters in an ensemble only.'],
    ['nio.numWorkerThreads=4', 'zoo.cfg:3: nio.numWorkerThreads is accepted and has no effect: it tunes internals of the Java server.'],
    ['4lw.commands.whitelist=telnet close', 'zoo.cfg:3: telnet close is accepted and has no effect: it is for the Java server.'],
  ])('%s causes a notice', (line, notice) => {
    const { warnings, notices } = read(line);
    expect([warnings, notices]).toEqual([[], [notice]]);
  });

  it.each(['admin.enableServer=false', 'metricsProvider.className=org.apache.zookeeper.metrics.impl.NullMetricsProvider'])(
    '%s disables the feature and causes no message',
    (line) => {
      const { warnings, notices } = read(line);
      expect([warnings, notices]).toEqual([[], []]);
    },
  );
});

describe('an unsafe setting', () => {
  it('takes effect, causes a warning, and is listed as unsafe', () => {
    const { core, runtime, warnings } = read('forceSync=no\nskipACL=yes\nsnapshot.trust.empty=true');
    expect([core.skipAcl, runtime.forceSync, runtime.snapshotTrustEmpty]).toEqual([true, false, true]);
    expect(runtime.unsafe).toEqual(['forceSync=no', 'skipACL=yes', 'snapshot.trust.empty=true']);
    expect(warnings).toEqual([
      'zoo.cfg:3: UNSAFE: forceSync=no: writes are acknowledged before the disk has them, and a loss of power loses them. Do not run it where data matters.',
      'zoo.cfg:4: UNSAFE: skipACL=yes: every client may read and change every znode. Do not run it where data matters.',
      'zoo.cfg:5: UNSAFE: snapshot.trust.empty=true: missing snapshots go unnoticed. Do not run it where data matters.',
    ]);
  });
});

describe('settings of the command line', () => {
  it('A84: set keys with the prefix, and the few keys without one', () => {
    const { core, runtime } = read('', {
      definitions: ['zookeeper.snapCount=5', 'jute.maxbuffer=0x100000', 'znode.container.maxPerMinute=7', 'fsync.warningthresholdms=8'],
    });
    expect([runtime.snapCount, core.juteMaxBuffer, core.juteMaxBufferExtra]).toEqual([5, 0x100000, 0x100000]);
    expect([core.containerMaxPerMinute, runtime.fsyncWarningThresholdMs]).toEqual([7, 8]);
  });

  it('are read from SERVER_JVMFLAGS, JVMFLAGS and -D, each overriding the earlier ones', () => {
    const environment = { SERVER_JVMFLAGS: '-Dzookeeper.snapCount=5 -Xmx1g', JVMFLAGS: '-Dzookeeper.snapCount=6' };
    const fromEnvironment = read('', { environment });
    expect(fromEnvironment.runtime.snapCount).toBe(6);
    expect(fromEnvironment.notices).toEqual(['SERVER_JVMFLAGS: -Xmx1g is accepted and has no effect: it is for the Java virtual machine.']);
    expect(read('', { environment, definitions: ['zookeeper.snapCount=7'] }).runtime.snapCount).toBe(7);
  });

  it('are overridden by zoo.cfg, as in ZooKeeper, with a warning', () => {
    const { runtime, warnings } = read('snapCount=9', { definitions: ['zookeeper.snapCount=5'] });
    expect(runtime.snapCount).toBe(9);
    expect(warnings).toEqual(['-Dzookeeper.snapCount: overridden by zoo.cfg:3.']);
  });

  it.each([
    ['snapCount=5', '-DsnapCount: snapCount is read with a prefix; write -Dzookeeper.snapCount. This setting has no effect.'],
    ['zookeeper.clientPort=5', '-Dzookeeper.clientPort: clientPort can be set in zoo.cfg only; this setting has no effect.'],
    ['tickTime=5', '-DtickTime: tickTime can be set in zoo.cfg only; this setting has no effect.'],
    [
      'zookeeper.jute.maxbuffer=5',
      '-Dzookeeper.jute.maxbuffer: jute.maxbuffer is read without the prefix; write -Djute.maxbuffer. This setting has no effect.',
    ],
    ['zookeeper.snapCout=5', '-Dzookeeper.snapCout: zookeeper.snapCout is not a known key; it has no effect. Did you mean snapCount?'],
  ])('%s causes a warning', (definition, warning) => {
    expect(read('', { definitions: [definition] }).warnings).toEqual([warning]);
  });

  it('of the Java virtual machine cause a notice', () => {
    const { warnings, notices } = read('', { definitions: ['com.sun.management.jmxremote'] });
    expect(warnings).toEqual([]);
    expect(notices).toEqual([
      '-Dcom.sun.management.jmxremote: com.sun.management.jmxremote is accepted and has no effect: it is for the Java virtual machine.',
    ]);
  });

  it('jute.maxbuffer below 1024 is accepted with a warning, and 0 is refused', () => {
    const { core, warnings } = read('', { definitions: ['jute.maxbuffer=100'] });
    expect(core.juteMaxBuffer).toBe(100);
    expect(warnings).toEqual([
      '-Djute.maxbuffer: jute.maxbuffer is 100 bytes: the server closes the connection of a client that sends a longer request, and most requests are longer. Remove the setting to use the default of 1048575.',
    ]);
    expect(read('', { definitions: ['jute.maxbuffer=1024'] }).warnings).toEqual([]);
    expect(refusal('', { definitions: ['jute.maxbuffer=0'] })).toBe(
      '-Djute.maxbuffer: jute.maxbuffer must be a whole number from 1 to 1073741824, not "0".',
    );
  });

  it('--data-dir, --client-port and --client-address override zoo.cfg', () => {
    const { runtime } = read('dataLogDir=/l\nclientPortAddress=10.0.0.1', { dataDir: '/e', clientPort: 0, clientAddress: '127.0.0.1' });
    expect([runtime.dataDir, runtime.dataLogDir, runtime.clientPort, runtime.clientPortAddress]).toEqual(['/e', '/e', 0, '127.0.0.1']);
  });

  it('add isro to the four letter words with readonlymode.enabled', () => {
    expect(read('', { definitions: ['readonlymode.enabled=true'] }).runtime.fourLetterWords).toEqual(['isro', 'srvr']);
  });
});

describe('a data folder', () => {
  const isFile = (path: string): boolean => path === '/d' || path === '/e/file';

  it.each<[string, Partial<ConfigSources>, string]>([
    ['', {}, 'zoo.cfg:1: dataDir is /d, which is a file. Name a folder; the server makes it if it is missing.'],
    [
      'dataDir=/e/file/below\n',
      {},
      'zoo.cfg:3: dataDir is /e/file/below, and /e/file is a file. Name a folder; the server makes it if it is missing.',
    ],
    ['dataDir=/f\ndataLogDir=/d', {}, 'zoo.cfg:4: dataLogDir is /d, which is a file. Name a folder; the server makes it if it is missing.'],
    ['', { dataDir: '/e/file' }, '--data-dir: dataDir is /e/file, which is a file. Name a folder; the server makes it if it is missing.'],
  ])('is refused when it is a file: %j %j', (lines, more, message) => {
    expect(refusal(lines, { isFile, ...more })).toBe(message);
  });

  it('is accepted when it is a folder or is missing', () => {
    expect(read('dataDir=/e\ndataLogDir=/missing/folder', { isFile }).runtime.dataLogDir).toBe('/missing/folder');
  });
});

describe('server lines', () => {
  it.each([
    ['server.1=a:1:2\nserver.1=b:1:2', 'server.1', 'zoo.cfg:3', 'zoo.cfg:4'],
    ['server.1=a:1:2\nserver.2=b:1:2\nserver.1=c:1:2', 'server.1', 'zoo.cfg:3', 'zoo.cfg:5'],
    ['group.1=1\ngroup.1=2', 'group.1', 'zoo.cfg:3', 'zoo.cfg:4'],
    ['weight.1=1\nweight.1=2', 'weight.1', 'zoo.cfg:3', 'zoo.cfg:4'],
  ])('of one server that differ are refused: %j', (lines, name, first, second) => {
    expect(refusal(lines)).toBe(
      `${second}: ${name} has another value at ${first}. Keep one of the lines; each server has a number of its own.`,
    );
  });

  it('of one server that are equal cause a warning', () => {
    expect(read('server.1=a:1:2\nserver.1=a:1:2').warnings).toEqual([
      'zoo.cfg:3: server.1 is set again at zoo.cfg:4; the last one applies.',
    ]);
  });

  it.each([
    [
      'server.1=a:2888:3888:observer',
      'zoo.cfg:3: every server is an observer, and an observer needs participants to observe. Make one or three of them participants.',
    ],
    [
      'peerType=observer',
      'zoo.cfg:3: an observer needs an ensemble to observe, and no other server is named. Add the lines of the servers, or remove peerType.',
    ],
    [
      'server.1=a:2888',
      'zoo.cfg:3: server.1 must be host:quorumPort:electionPort[:participant|observer][;[clientHost:]clientPort], not "a:2888".',
    ],
    ['server.1=a:2888:3888;2182', 'zoo.cfg:2: clientPort is 2181 and zoo.cfg:3 says 2182. Keep one of them.'],
  ])('%s is refused', (lines, message) => {
    expect(refusal(lines)).toBe(message);
  });

  it('may be in a dynamic file', () => {
    const readFile = (path: string) => (path === '/x.dynamic' ? 'server.1=a:2888:3888;[::1]:2181\n' : '');
    expect(read('dynamicConfigFile=/x.dynamic', { readFile }).runtime.clientPortAddress).toBe('::1');
  });

  it.each<[string, (path: string) => string, string]>([
    [
      'server.1=a:2888:3888\ndynamicConfigFile=/x.dynamic',
      () => '',
      'zoo.cfg:3: server.1 must be in the dynamic file /x.dynamic. Move the line there.',
    ],
    [
      'dynamicConfigFile=/x.dynamic',
      () => 'server.1=a:1:2\ntickTime=5',
      '/x.dynamic:2: a dynamic file holds server, group and weight lines only. Move tickTime to zoo.cfg or remove it.',
    ],
    [
      'dynamicConfigFile=/x.dynamic',
      () => {
        throw Object.assign(new Error('no'), { code: 'ENOENT' });
      },
      'zoo.cfg:3: the dynamic file /x.dynamic cannot be read (ENOENT).',
    ],
  ])('of an invalid dynamic file are refused: %s', (lines, readFile, message) => {
    expect(refusal(lines, { readFile })).toBe(message);
  });
});
