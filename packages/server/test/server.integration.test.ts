import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Inspector } from '@tskeeper/core';
import {
  type LogFields,
  type Logger,
  type EnsembleOptions,
  type RuntimeHooks,
  type RuntimeOptions,
  silentLogger,
  type World,
} from '@tskeeper/runtime';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ConfigError } from '../src/config/config-error.ts';
import { startServerWith } from '../src/server.ts';

/** The arguments for a runtime, kept for the test, with a listener on the real network. */
class RuntimeProbe {
  world!: World;
  options!: RuntimeOptions;
  hooks!: RuntimeHooks;
  member: EnsembleOptions | undefined;
  closed = 0;
  closeFails: Error | undefined;
  onAccepted: () => void = () => undefined;
  readonly start: Parameters<typeof startServerWith>[0] = async (world, _core, options, hooks, member) => {
    Object.assign(this, { world, options, hooks, member });
    world.network.start({ accepted: () => this.onAccepted(), connected() {}, received() {}, drained() {}, ended() {}, closed() {} });
    const listener = await world.network.listen({
      address: options.clientPortAddress,
      port: options.clientPort,
      backlog: options.clientPortListenBacklog,
    });
    return {
      clientEndpoint: listener.endpoint,
      inspect: {} as Inspector,
      expireSession: () => Promise.resolve(false),
      transferLeadership: () => Promise.reject(new Error('not asked for')),
      authenticated: () => undefined,
      shedConnections: () => Promise.resolve(0),
      close: async () => {
        this.closed++;
        await listener.close();
        if (this.closeFails !== undefined) throw this.closeFails;
      },
    };
  };
}

let folder: string;
let probe: RuntimeProbe;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tskeeper-server-'));
  probe = new RuntimeProbe();
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

describe('startServer', () => {
  it('D12, E24: without a zoo.cfg listens on 127.0.0.1 and keeps its data in ./data', async () => {
    await using server = await startServerWith(probe.start, { clientPort: 0 });
    expect(server.connectString).toMatch(/^127\.0\.0\.1:\d+$/);
    expect(server.dataDir).toBe(join(process.cwd(), 'data'));
    expect(probe.options).toMatchObject({ clientPortAddress: '127.0.0.1', dataDir: server.dataDir, dataLogDir: server.dataDir });
  });

  it('A86: with a zoo.cfg applies it, and warns of what is odd in it', async () => {
    const path = join(folder, 'zoo.cfg');
    writeFileSync(path, `dataDir=${folder}\nclientPort=0\ntickTim=1\ninitLimit=5\n`);
    const lines: string[] = [];
    const logger: Logger = { ...silentLogger, warn: (line) => lines.push(`warn ${line}`), info: (line) => lines.push(`info ${line}`) };
    await using server = await startServerWith(probe.start, { configFile: path, logger });
    expect(server.connectString).toMatch(/^127\.0\.0\.1:\d+$/);
    expect(lines.slice(1)).toEqual([
      `warn ${path}:3: tickTim is not a known key; it has no effect. Did you mean tickTime?`,
      `info ${path}:4: initLimit is accepted and has no effect: it matters in an ensemble only.`,
    ]);
  });

  it('logs first what starts: versions, role, addresses, folders and the settings that differ from their defaults, without secrets', async () => {
    const path = join(folder, 'zoo.cfg');
    writeFileSync(path, `dataDir=${folder}\ndataLogDir=${folder}/logs\nclientPort=0\ntickTime=3000\nmaxClientCnxns=5\ninitLimit=5\n`);
    const lines: { message: string; fields: LogFields }[] = [];
    const logger: Logger = { ...silentLogger, info: (message, fields) => lines.push({ message, fields }) };
    const definitions = ['zookeeper.DigestAuthenticationProvider.superDigest=super:xyz'];
    await using server = await startServerWith(probe.start, { configFile: path, definitions, logger });
    const settings = {
      'DigestAuthenticationProvider.superDigest': '(masked)',
      dataDir: folder,
      dataLogDir: `${folder}/logs`,
      clientPort: '0',
      maxClientCnxns: '5',
    };
    const version = expect.stringMatching(/^\d+\.\d+\.\d+$/) as string;
    expect(lines[0]!.fields).toEqual({
      event: 'server.starting',
      version,
      zookeeperVersion: version,
      nodeVersion: process.version,
      role: 'standalone',
      dataDir: folder,
      dataLogDir: `${folder}/logs`,
      clientAddress: '0.0.0.0:0',
      electionAddresses: undefined,
      configFile: path,
      settings,
    });
    expect(lines[0]!.message).toBe(
      `tskeeper ${(lines[0]!.fields as { version?: string }).version} (as ZooKeeper 3.9.5) on Node ${process.version}, process ${process.pid}: standalone; ` +
        `clients at 0.0.0.0:0; data in ${folder}, transaction logs in ${folder}/logs; settings that differ from their defaults: ` +
        Object.entries(settings)
          .map(([name, value]) => `${name}=${value}`)
          .join(', '),
    );
    expect(server.dataDir).toBe(folder);
  });

  it('logs the number of a server of an ensemble in each line, and its role and addresses in the first', async () => {
    writeFileSync(join(folder, 'myid'), '2\n');
    const path = join(folder, 'zoo.cfg');
    const servers = [1, 2, 3].map((sid) => `server.${sid}=127.0.0.1:${2880 + sid}:${3880 + sid}`);
    writeFileSync(path, [`dataDir=${folder}`, 'clientPort=0', 'initLimit=5', 'syncLimit=2', 'tickTim=1', ...servers, ''].join('\n'));
    const lines: LogFields[] = [];
    const note = (_: string, fields: LogFields) => void lines.push(fields);
    await using server = await startServerWith(probe.start, { configFile: path, logger: { ...silentLogger, warn: note, info: note } });
    expect(lines[0]).toMatchObject({ sid: 2, event: 'server.starting', role: 'participant', electionAddresses: ['127.0.0.1:3882'] });
    expect(lines[0]).toMatchObject({ settings: { initLimit: '5', 'server.3': '127.0.0.1:2883:3883' } });
    expect(lines[1]).toMatchObject({ sid: 2, event: 'config.warning' });
    expect(server.dataDir).toBe(folder);
  });

  it.runIf(process.platform === 'linux')('option clientTcpKeepAlive: the kernel probes silent clients, unless it is off', async () => {
    const path = join(folder, 'zoo.cfg');
    for (const value of [true, false]) {
      writeFileSync(path, `dataDir=${folder}\nclientPort=0\nclientPortAddress=127.0.0.1\nclientTcpKeepAlive=${value}\n`);
      await using server = await startServerWith(probe.start, { configFile: path });
      const port = Number(server.connectString.split(':')[1]);
      const accepted = new Promise<void>((resolve) => {
        probe.onAccepted = resolve;
      });
      const client = connect({ host: '127.0.0.1', port });
      await accepted;
      // The kernel's list: local address, remote address, state (01: established), queues, timer
      // (02: keep-alive).
      const local = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
      const lines = readFileSync('/proc/self/net/tcp', 'utf8')
        .split('\n')
        .map((line) => line.trim().split(/\s+/));
      const timers = lines.filter((fields) => fields[1] === local && fields[3] === '01').map((fields) => fields[5]!.slice(0, 2));
      client.destroy();
      expect(timers).toEqual([value ? '02' : '00']);
    }
  });

  it('reads zoo.cfg as Latin-1, so that the same bytes name the same folder as under Java', async () => {
    const path = join(folder, 'zoo.cfg');
    writeFileSync(path, Buffer.from(`dataDir=${folder}/d\xe4ten\nclientPort=0\n`, 'latin1'));
    await using server = await startServerWith(probe.start, { configFile: path });
    expect(server.dataDir).toBe(join(folder, 'däten'));
  });

  it('is refused when its configuration file is missing', async () => {
    await expect(startServerWith(probe.start, { configFile: join(folder, 'none.cfg') })).rejects.toThrow(
      `${join(folder, 'none.cfg')}: the configuration cannot be read (ENOENT). Give the path of an existing zoo.cfg.`,
    );
  });

  it('with lines of servers passes the options of a server of an ensemble to the runtime', async () => {
    const path = join(folder, 'zoo.cfg');
    const limits = 'initLimit=5\nsyncLimit=2\n';
    writeFileSync(path, `dataDir=${folder}\nclientPort=0\ntickTime=1000\n${limits}server.1=a:1:2\nserver.2=b:3:4\n`);
    const warnings: string[] = [];
    const logger: Logger = { ...silentLogger, warn: (line) => warnings.push(line) };
    const start = () => startServerWith(probe.start, { configFile: path, logger });
    await expect(start()).rejects.toThrow(`${join(folder, 'myid')}: the file is missing`);
    expect(probe.options).toBeUndefined();
    writeFileSync(join(folder, 'myid'), '2\n');
    await using _server = await start();
    expect(warnings).toEqual([
      `${path}:6: an ensemble of two participants stops serving when one server fails. Use at least three.`,
      expect.stringMatching(/^The ports for other servers \(b:3, b:4\) are open/),
    ]);
    expect(probe.member).toMatchObject({
      zab: { sid: 2, tickTimeMs: 1000, initLimitTicks: 5, syncLimitTicks: 2 },
      quorumCnxnTimeoutMs: 2000,
      connectToLeaderMs: 5000,
    });
    expect([...probe.member!.quorum.servers.keys()]).toEqual([1, 2]);
  });

  it('refuses a data folder that is a file, as a mistake in the configuration', async () => {
    const [path, dataDir] = [join(folder, 'zoo.cfg'), join(folder, 'file')];
    writeFileSync(dataDir, '');
    writeFileSync(path, `clientPort=0\ndataDir=${dataDir}\n`);
    await expect(startServerWith(probe.start, { configFile: path })).rejects.toThrow(
      new ConfigError(`${path}:2: dataDir is ${dataDir}, which is a file. Name a folder; the server makes it if it is missing.`),
    );
    await expect(startServerWith(probe.start, { dataDir: join(dataDir, 'below') })).rejects.toThrow(
      new ConfigError(
        `--data-dir: dataDir is ${dataDir}/below, and ${dataDir} is a file. Name a folder; the server makes it if it is missing.`,
      ),
    );
    expect(probe.options).toBeUndefined();
  });

  it('writes IPv6 addresses in brackets', async () => {
    await using server = await startServerWith(probe.start, { clientPort: 0, clientAddress: '::1', dataDir: folder });
    expect(server.connectString).toMatch(/^\[::1\]:\d+$/);
  });
});

describe('a server', () => {
  it('A86: closes once, however often close is called, and has ended then', async () => {
    const server = await startServerWith(probe.start, { clientPort: 0, dataDir: folder });
    await Promise.all([server.close(), server.close()]);
    await server.close();
    await server.ended;
    expect(probe.closed).toBe(1);
  });

  it('ends with the error that its runtime reports', async () => {
    const server = await startServerWith(probe.start, { clientPort: 0, dataDir: folder });
    probe.hooks.failed(new Error('the disk is gone'));
    await expect(server.ended).rejects.toThrow('the disk is gone');
    await server.close();
  });

  it('rejects both calls of close when it cannot close', async () => {
    probe.closeFails = new Error('the last sync failed');
    const server = await startServerWith(probe.start, { clientPort: 0, dataDir: folder });
    await expect(server.close()).rejects.toThrow('the last sync failed');
    await expect(server.ended).rejects.toThrow('the last sync failed');
  });
});
