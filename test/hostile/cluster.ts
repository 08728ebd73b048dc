/**
 * The servers of one row: one, or an ensemble of three, ours or Java's, as processes. The links
 * between the servers may pass through the proxies of test/chaos, which accept before the other end
 * listens, delay, and cut; each disk may be made slow.
 */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { lastingPort, launchServer, fourLetterWord, type ServerKind, type ServerProcess } from '../../scripts/server-process.js';
import { Cables, redirected } from '../chaos/cables.ts';
import { FaultyDisk } from '../chaos/disk-faults.ts';
import { eventually } from '../chaos/real-clock.ts';

export type Kind = Extract<ServerKind, 'ours' | 'java-3.9.5'>;
export type Mode = 'leader' | 'follower' | 'observer' | 'standalone';
type Settings = Readonly<Record<string, string | number | boolean>>;

export interface ClusterOptions {
  readonly kind: Kind;
  readonly folder: string;
  readonly servers: 1 | 3;
  readonly tickMs: number;
  readonly initLimit?: number;
  readonly syncLimit?: number;
  readonly config?: Settings;
  readonly openFilesMax?: number;
  /** Every link between two servers passes through a proxy. */
  readonly isCabled?: boolean;
  /** The library of test/chaos/disk-faults.c, for slow disks. */
  readonly diskFaults?: string;
}

interface Ports {
  readonly client: number;
  readonly quorum: number;
  readonly election: number;
}

const wholeMaxMs = 60_000;
const pollMs = 20;
/** Lines of a server's output in a failure. */
const lastLines = 14;
const lineCharactersMax = 250;
/** Lines of ours that do not concern the ensemble, and Java's stack traces. */
const leftOut = /^\s*$|"event":"(?:session|cnxn)\.|^\s+(?:at |\.\.\. )|Close of session|ZooKeeperServer not running/;

/** The time and the sentence of one of our JSON lines. */
function readable(line: string): string {
  try {
    const { time, msg } = JSON.parse(line) as { time?: string; msg?: string };
    return time === undefined || msg === undefined ? line : `${time.slice(11)} ${msg}`;
  } catch {
    return line;
  }
}

export class Member {
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

  async lastWords(): Promise<string> {
    const lines = ((await this.process?.log()) ?? '').split('\n').filter((line) => !leftOut.test(line));
    return lines
      .slice(-lastLines)
      .map((line) => readable(line).slice(0, lineCharactersMax))
      .join('\n');
  }
}

export class Cluster implements AsyncDisposable {
  readonly members: readonly Member[];
  readonly options: ClusterOptions;
  readonly cables = new Cables();

  private constructor(options: ClusterOptions, members: readonly Member[]) {
    this.options = options;
    this.members = members;
  }

  /** Starts the servers, and waits until each serves. */
  static async start(options: ClusterOptions): Promise<Cluster> {
    const members: Member[] = [];
    for (let sid = 1; sid <= options.servers; sid++) {
      const ports = { client: await lastingPort(), quorum: await lastingPort(), election: await lastingPort() };
      members.push(new Member(sid, ports, path.join(options.folder, `server-${sid}`)));
    }
    const cluster = new Cluster(options, members);
    try {
      await cluster.#prepare();
      for (const member of members) await cluster.launch(member);
      await cluster.untilWhole();
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
    return cluster;
  }

  async #prepare(): Promise<void> {
    const { isCabled, diskFaults } = this.options;
    if (isCabled === true) await this.#layCables();
    for (const member of this.members) {
      await mkdir(path.join(member.folder, 'data'), { recursive: true });
      await writeFile(path.join(member.folder, 'data', 'myid'), `${member.sid}\n`);
      if (diskFaults !== undefined) member.disk = new FaultyDisk(path.join(member.folder, 'disk-faults'), diskFaults);
    }
  }

  async #layCables(): Promise<void> {
    for (const from of this.members) {
      for (const to of this.members) {
        if (from === to) continue;
        await this.cables.lay(from.name, to.name, 'quorum', to.ports.quorum);
        const rewrite = (beginning: Buffer) => redirected(this.cables.find(to.name, from.name, 'election').port)(beginning);
        await this.cables.lay(from.name, to.name, 'election', to.ports.election, { rewrite });
      }
    }
    // They stay open while a server is down: so they accept before the other end listens.
    for (const cable of this.cables.all) await cable.open();
  }

  #line(viewer: Member, { name, ports }: Member): string {
    if (viewer.name === name || this.options.isCabled !== true) return `127.0.0.1:${ports.quorum}:${ports.election}`;
    const port = (purpose: 'quorum' | 'election') => this.cables.find(viewer.name, name, purpose).port;
    return `127.0.0.1:${port('quorum')}:${port('election')}`;
  }

  async launch(member: Member): Promise<void> {
    const { kind, servers, tickMs, initLimit = 10, syncLimit = 5, config, openFilesMax } = this.options;
    const lines = Object.fromEntries(this.members.map((other) => [`server.${other.sid}`, this.#line(member, other)]));
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

  async kill(member: Member): Promise<void> {
    member.process?.resume();
    await member.process?.kill();
  }

  /** Deletes all data of a stopped server. */
  async forget(member: Member): Promise<void> {
    await rm(path.join(member.folder, 'data', 'version-2'), { recursive: true, force: true });
  }

  get ports(): number[] {
    return this.members.map(({ ports }) => ports.client);
  }

  async inMode(mode: Mode): Promise<Member[]> {
    const statuses = await Promise.all(this.members.map((member) => member.status()));
    return this.members.filter((_, index) => statuses[index]?.mode === mode);
  }

  /** The only server, or the leader. */
  async leader(): Promise<Member> {
    const [leader] = [...(await this.inMode('leader')), ...(await this.inMode('standalone'))];
    if (leader === undefined) throw new Error(`no server leads:\n${await this.evidence()}`);
    return leader;
  }

  /** Whether every server serves, and as far as visible they form one ensemble. */
  async isWhole(): Promise<boolean> {
    const statuses = await Promise.all(this.members.map((member) => member.status()));
    const leads = statuses.filter((status) => status?.mode === 'leader' || status?.mode === 'standalone').length;
    return leads === 1 && statuses.every((status) => status !== undefined);
  }

  async untilWhole(): Promise<void> {
    if (!(await eventually(() => this.isWhole(), wholeMaxMs, pollMs))) {
      throw new Error(`the servers did not form an ensemble within ${wholeMaxMs / 1000} s:\n${await this.evidence()}`);
    }
  }

  /** The last relevant lines of each server's output. */
  async evidence(): Promise<string> {
    const each = this.members.map(async (member) => `${member.name}${member.isUp ? '' : ' (down)'}:\n${await member.lastWords()}`);
    return (await Promise.all(each)).join('\n').replaceAll(/^/gm, '      ');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.members.map((member) => this.kill(member)));
    for (const { disk } of this.members) disk?.close();
    this.cables.close();
    await rm(this.options.folder, { recursive: true, force: true });
  }
}
