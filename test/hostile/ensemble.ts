/**
 * The servers of one row: one, or an ensemble of three, ours or Java's, as processes. The links
 * between the servers may pass through the proxies of test/chaos, which accept before the other end
 * listens, delay, and cut; each disk may be made slow.
 */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { reservePort, launchServer, fourLetterWord, type ServerKind, type ServerProcess } from '../../scripts/server-process.js';
import { ProxyNetwork, redirectDialBack } from '../chaos/proxy.ts';
import { FaultyDisk } from '../chaos/disk-faults.ts';
import { eventually } from '../chaos/real-clock.ts';

export type Kind = Extract<ServerKind, 'ours' | 'java-3.9.5'>;
export type Mode = 'leader' | 'follower' | 'observer' | 'standalone';
type Settings = Readonly<Record<string, string | number | boolean>>;

export interface EnsembleOptions {
  readonly kind: Kind;
  readonly folder: string;
  readonly servers: 1 | 3;
  readonly tickMs: number;
  readonly initLimit?: number;
  readonly syncLimit?: number;
  readonly config?: Settings;
  readonly openFilesMax?: number;
  /** Every link between two servers passes through a proxy. */
  readonly hasProxies?: boolean;
  /** The library of test/chaos/disk-faults.c, for slow disks. */
  readonly diskFaults?: string;
}

interface Ports {
  readonly client: number;
  readonly quorum: number;
  readonly election: number;
}

const servingMaxMs = 60_000;
const pollMs = 20;
/** Lines of a server's output in a failure. */
const lastLines = 14;
const lineCharactersMax = 250;
/** Lines of ours that do not concern the ensemble, and Java's stack traces. */
const irrelevantLine = /^\s*$|"event":"(?:session|cnxn)\.|^\s+(?:at |\.\.\. )|Close of session|ZooKeeperServer not running/;

/** The time and the sentence of one of our JSON lines. */
function readable(line: string): string {
  try {
    const { time, msg } = JSON.parse(line) as { time?: string; msg?: string };
    return time === undefined || msg === undefined ? line : `${time.slice(11)} ${msg}`;
  } catch {
    return line;
  }
}

export class EnsemblePeer {
  readonly sid: number;
  readonly ports: Ports;
  readonly folder: string;
  disk: FaultyDisk | undefined;
  process: ServerProcess | undefined;

  constructor(sid: number, ports: Ports, folder: string) {
    this.sid = sid;
    this.ports = ports;
    this.folder = folder;
  }

  get name(): string {
    return `server-${this.sid}`;
  }

  get isUp(): boolean {
    return this.process?.alive === true;
  }

  ask(word: string, timeoutMs = 5000): Promise<string> {
    return this.isUp ? fourLetterWord(this.ports.client, word, timeoutMs).catch(() => '') : Promise.resolve('');
  }

  /** undefined while it does not serve. */
  async status(): Promise<{ readonly mode: Mode; readonly zxid: bigint } | undefined> {
    const text = await this.ask('srvr');
    const mode = /^Mode: (\w+)$/m.exec(text)?.[1] as Mode | undefined;
    return mode === undefined ? undefined : { mode, zxid: BigInt(/^Zxid: (\w+)$/m.exec(text)?.[1] ?? '0') };
  }

  async memoryMb(): Promise<number> {
    const status = await readFile(`/proc/${this.process?.pid}/status`, 'utf8').catch(() => '');
    return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) / 1024;
  }

  async logTail(): Promise<string> {
    const lines = ((await this.process?.log()) ?? '').split('\n').filter((line) => !irrelevantLine.test(line));
    return lines
      .slice(-lastLines)
      .map((line) => readable(line).slice(0, lineCharactersMax))
      .join('\n');
  }
}

export class HostileEnsemble implements AsyncDisposable {
  readonly peers: readonly EnsemblePeer[];
  readonly options: EnsembleOptions;
  readonly network = new ProxyNetwork();

  private constructor(options: EnsembleOptions, members: readonly EnsemblePeer[]) {
    this.options = options;
    this.peers = members;
  }

  /** Starts the servers, and waits until each serves. */
  static async start(options: EnsembleOptions): Promise<HostileEnsemble> {
    const members: EnsemblePeer[] = [];
    for (let sid = 1; sid <= options.servers; sid++) {
      const ports = { client: await reservePort(), quorum: await reservePort(), election: await reservePort() };
      members.push(new EnsemblePeer(sid, ports, path.join(options.folder, `server-${sid}`)));
    }
    const cluster = new HostileEnsemble(options, members);
    try {
      await cluster.#prepare();
      for (const member of members) await cluster.launch(member);
      await cluster.untilServing();
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
    return cluster;
  }

  async #prepare(): Promise<void> {
    const { hasProxies, diskFaults } = this.options;
    if (hasProxies === true) await this.#addProxies();
    for (const member of this.peers) {
      await mkdir(path.join(member.folder, 'data'), { recursive: true });
      await writeFile(path.join(member.folder, 'data', 'myid'), `${member.sid}\n`);
      if (diskFaults !== undefined) member.disk = new FaultyDisk(path.join(member.folder, 'disk-faults'), diskFaults);
    }
  }

  async #addProxies(): Promise<void> {
    for (const from of this.peers) {
      for (const to of this.peers) {
        if (from === to) continue;
        await this.network.add(from.name, to.name, 'quorum', to.ports.quorum);
        const rewrite = (firstBytes: Buffer) => redirectDialBack(this.network.find(to.name, from.name, 'election').port)(firstBytes);
        await this.network.add(from.name, to.name, 'election', to.ports.election, { rewrite });
      }
    }
    // They stay open while a server is down: so they accept before the other end listens.
    for (const proxy of this.network.all) await proxy.open();
  }

  #serverLine(viewer: EnsemblePeer, { name, ports }: EnsemblePeer): string {
    if (viewer.name === name || this.options.hasProxies !== true) return `127.0.0.1:${ports.quorum}:${ports.election}`;
    const port = (purpose: 'quorum' | 'election') => this.network.find(viewer.name, name, purpose).port;
    return `127.0.0.1:${port('quorum')}:${port('election')}`;
  }

  async launch(member: EnsemblePeer): Promise<void> {
    const { kind, servers, tickMs, initLimit = 10, syncLimit = 5, config, openFilesMax } = this.options;
    const lines = Object.fromEntries(this.peers.map((other) => [`server.${other.sid}`, this.#serverLine(member, other)]));
    member.process = await launchServer(
      {
        kind,
        folder: member.folder,
        config: {
          tickTime: tickMs,
          maxClientCnxns: 60,
          ...(servers > 1 ? { initLimit, syncLimit, ...lines } : {}),
          ...config,
        },
        ...(openFilesMax === undefined ? {} : { openFilesMax }),
        environment: member.disk?.environment ?? {},
        heap: '1g',
      },
      member.ports.client,
    );
  }

  async kill(member: EnsemblePeer): Promise<void> {
    member.process?.resume();
    await member.process?.kill();
  }

  /** Deletes all data of a stopped server. */
  async wipe(member: EnsemblePeer): Promise<void> {
    await rm(path.join(member.folder, 'data', 'version-2'), { recursive: true, force: true });
  }

  get ports(): number[] {
    return this.peers.map(({ ports }) => ports.client);
  }

  async inMode(mode: Mode): Promise<EnsemblePeer[]> {
    const statuses = await Promise.all(this.peers.map((member) => member.status()));
    return this.peers.filter((_, index) => statuses[index]?.mode === mode);
  }

  /** The only server, or the leader. */
  async leader(): Promise<EnsemblePeer> {
    const [leader] = [...(await this.inMode('leader')), ...(await this.inMode('standalone'))];
    if (leader === undefined) throw new Error(`no server leads:\n${await this.evidence()}`);
    return leader;
  }

  /** Whether every server serves, and as far as visible they form one ensemble. */
  async isServing(): Promise<boolean> {
    const statuses = await Promise.all(this.peers.map((member) => member.status()));
    const leads = statuses.filter((status) => status?.mode === 'leader' || status?.mode === 'standalone').length;
    return leads === 1 && statuses.every((status) => status !== undefined);
  }

  async untilServing(): Promise<void> {
    if (!(await eventually(() => this.isServing(), servingMaxMs, pollMs))) {
      throw new Error(`the servers did not form an ensemble within ${servingMaxMs / 1000} s:\n${await this.evidence()}`);
    }
  }

  /** The last relevant lines of each server's output. */
  async evidence(): Promise<string> {
    const each = this.peers.map(async (member) => `${member.name}${member.isUp ? '' : ' (down)'}:\n${await member.logTail()}`);
    return (await Promise.all(each)).join('\n').replaceAll(/^/gm, '      ');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.peers.map((member) => this.kill(member)));
    for (const { disk } of this.peers) disk?.close();
    this.network.close();
    await rm(this.options.folder, { recursive: true, force: true });
  }
}
