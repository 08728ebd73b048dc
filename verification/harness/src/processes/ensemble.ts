/**
 * Ensembles of real processes on this machine, each server of its own kind: ours beside Apache's.
 *
 * A server keeps its sid, its ports and its data folder in each life; its kind may change, so one
 * can replace another. Each life has its own folder for zoo.cfg and the output of the process. The
 * links between the servers may pass through proxies, which accept before the other end listens,
 * delay, and cut; each disk may be made slow or fail.
 */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Sid } from '@tskeeper/protocol';
import { FaultyDisk } from './disk-faults.ts';
import { reservePort } from './ports.ts';
import { type PeerPorts, ProxyNetwork } from './proxy.ts';
import {
  launchServer,
  type ServerKind,
  type ServerMode,
  type ServerProcess,
  type ServerSettings,
  type Settings,
} from './server-process.ts';
import { eventually, until } from './until.ts';

export interface PeerSpec {
  readonly sid: Sid;
  readonly kind: ServerKind;
  readonly role: 'participant' | 'observer';
}

export interface EnsembleOptions extends ServerSettings {
  /** Deleted at the end. Default: a new one. */
  readonly folder?: string;
  /** The server lines are in their own file. */
  readonly hasDynamicFile?: boolean;
  /**
   * The servers that the others know at first; the rest know these and themselves, as servers that
   * are about to join. Each keeps its zoo.cfg, which reconfigurations rewrite, over its lives.
   */
  readonly firstMembers?: readonly Sid[];
  /**
   * Each server listens for others at a loopback address of its own, for a port that is the same on
   * all of them.
   */
  readonly hasOwnHosts?: boolean;
  /** Every link between two servers passes through a proxy. */
  readonly hasProxies?: boolean;
  /** The library of disk-faults.c: each server gets a disk that can fail. */
  readonly diskFaults?: string;
}

/** Of one life of a server, in addition to the options of the ensemble. */
export interface LaunchOptions {
  /** Its kind from now on. */
  readonly kind?: ServerKind;
  readonly properties?: Settings;
  /** Keys of zoo.cfg, the lines of servers among them. */
  readonly config?: Settings;
}

/** Specs of `voters` participants and then `observers` observers of one kind, with sids from 1. */
export function peersOf(kind: ServerKind, voters: number, observers = 0): PeerSpec[] {
  return Array.from({ length: voters + observers }, (_, index) => ({
    sid: index + 1,
    kind,
    role: index < voters ? ('participant' as const) : ('observer' as const),
  }));
}

/** Time limit for a server to find its role. A JVM on a busy machine takes seconds to start. */
export const roleTimeoutMs = 60_000;
const firstOwnHost = 10;
/** Lines of a server's output in a failure. */
const evidenceLines = 15;
const lineCharactersMax = 250;
/** Lines that do not concern the ensemble: stack traces, and messages about single sessions. */
const irrelevantLine =
  /^\s*$|"event":"(?:session|cnxn)\.|^\s+(?:at |\.\.\. )|[Cc]lose of session|Committing global session|Submitting global closeSession|ZooKeeperServer not running/;

/** Where a server of an ensemble listens. */
export interface EnsemblePorts extends PeerPorts {
  readonly client: number;
}

export class EnsemblePeer {
  readonly sid: Sid;
  readonly role: PeerSpec['role'];
  ports: EnsemblePorts;
  readonly folder: string;
  readonly disk: FaultyDisk | undefined;
  kind: ServerKind;
  startCount = 0;
  process: ServerProcess | undefined;

  constructor(spec: PeerSpec, ports: EnsemblePorts, folder: string, disk: FaultyDisk | undefined) {
    this.sid = spec.sid;
    this.kind = spec.kind;
    this.role = spec.role;
    this.ports = ports;
    this.folder = folder;
    this.disk = disk;
  }

  get name(): string {
    return `server-${this.sid}`;
  }

  get dataDir(): string {
    return path.join(this.folder, 'data');
  }

  /** Of the current life. */
  get lifeFolder(): string {
    return path.join(this.folder, `life-${this.startCount}`);
  }

  get port(): number {
    return this.ports.client;
  }

  get connectString(): string {
    return `127.0.0.1:${this.port}`;
  }

  get isUp(): boolean {
    return this.process?.alive === true;
  }

  /** A reconfiguration has moved the server to these ports, now and in its later lives. */
  movedTo(ports: EnsemblePorts): void {
    this.ports = ports;
    this.process?.movedTo(ports.client);
  }

  ask(word: string): Promise<string> {
    if (!this.isUp) throw new Error(`${this.name} does not run`);
    return this.process!.fourLetterWord(word);
  }

  /** undefined while it does not serve. */
  async status(): Promise<{ readonly mode: ServerMode; readonly zxid: string } | undefined> {
    return this.isUp ? this.process!.status() : undefined;
  }

  async mode(): Promise<ServerMode | undefined> {
    return (await this.status())?.mode;
  }

  async memoryMb(): Promise<number> {
    return (await this.process?.memory())?.rssMb ?? 0;
  }

  /** The lines of its output in this life, without Java's about each four letter word. */
  async log(): Promise<string[]> {
    const text = (await this.process?.log()) ?? '';
    return text.split('\n').filter((line) => line !== '' && !line.includes(' Processing '));
  }

  /** The last lines that concern the ensemble. */
  async logTail(): Promise<string[]> {
    const lines = (await this.log()).filter((line) => !irrelevantLine.test(line));
    return lines.slice(-evidenceLines).map((line) => readable(line).slice(0, lineCharactersMax));
  }
}

/** Ports for a server of an ensemble, as `reservePort` chooses them. */
export async function reservePorts(): Promise<EnsemblePorts> {
  return { client: await reservePort(), quorum: await reservePort(), election: await reservePort() };
}

/** The time and the sentence of one of our JSON lines. */
function readable(line: string): string {
  try {
    const { time, msg } = JSON.parse(line) as { time?: string; msg?: string };
    return time === undefined || msg === undefined ? line : `${time.slice(11)} ${msg}`;
  } catch {
    return line;
  }
}

export class ProcessEnsemble implements AsyncDisposable {
  /** The proxies between the servers; none without `hasProxies`. */
  readonly network = new ProxyNetwork();
  readonly peers: readonly EnsemblePeer[];
  readonly #folder: string;
  readonly #options: EnsembleOptions;

  private constructor(folder: string, peers: readonly EnsemblePeer[], options: EnsembleOptions) {
    this.#folder = folder;
    this.peers = peers;
    this.#options = options;
  }

  /** Writes the folders. Does not start any server. */
  static async create(specs: readonly PeerSpec[], options: EnsembleOptions = {}): Promise<ProcessEnsemble> {
    const { diskFaults } = options;
    const folder = options.folder ?? (await mkdtemp(path.join(tmpdir(), 'tskeeper-ensemble-')));
    const peers: EnsemblePeer[] = [];
    for (const spec of specs) {
      const ports = await reservePorts();
      const own = path.join(folder, `server-${spec.sid}`);
      await mkdir(path.join(own, 'data'), { recursive: true });
      await writeFile(path.join(own, 'data', 'myid'), `${spec.sid}\n`);
      const disk = diskFaults === undefined ? undefined : new FaultyDisk(path.join(own, 'disk-faults'), diskFaults);
      peers.push(new EnsemblePeer(spec, ports, own, disk));
    }
    const ensemble = new ProcessEnsemble(folder, peers, options);
    if (options.hasProxies === true) {
      await ensemble.network.addServers(peers);
      // They stay open while a server is down: so they accept before the other end listens.
      for (const proxy of ensemble.network.all) await proxy.open();
    }
    return ensemble;
  }

  /** Starts all servers, and waits until each serves. */
  static async start(specs: readonly PeerSpec[], options: EnsembleOptions = {}): Promise<ProcessEnsemble> {
    const ensemble = await ProcessEnsemble.create(specs, options);
    try {
      await ensemble.start(specs.map(({ sid }) => sid));
    } catch (error) {
      await ensemble[Symbol.asyncDispose]();
      throw error;
    }
    return ensemble;
  }

  get running(): readonly EnsemblePeer[] {
    return this.peers.filter((peer) => peer.isUp);
  }

  peer(sid: Sid): EnsemblePeer {
    const peer = this.peers.find((each) => each.sid === sid);
    if (peer === undefined) throw new Error(`there is no server ${sid}`);
    return peer;
  }

  /** `host:port` of each, for a client. */
  get connectString(): string {
    return this.peers.map(({ connectString }) => connectString).join(',');
  }

  get clientPorts(): number[] {
    return this.peers.map(({ port }) => port);
  }

  /** The lines `server.N` of zoo.cfg, as this server sees the others. */
  serverLines(viewer?: EnsemblePeer): Record<string, string> {
    const { firstMembers } = this.#options;
    const known = this.peers.filter((peer) => peer === viewer || firstMembers === undefined || firstMembers.includes(peer.sid));
    const lines = known.map((peer) => {
      const { quorum, election } = this.#portsSeenBy(viewer, peer);
      const host = this.#options.hasOwnHosts === true ? `127.0.0.${firstOwnHost + peer.sid}` : '127.0.0.1';
      return [`server.${peer.sid}`, `${host}:${quorum}:${election}:${peer.role};127.0.0.1:${peer.port}`];
    });
    return Object.fromEntries(lines) as Record<string, string>;
  }

  #portsSeenBy(viewer: EnsemblePeer | undefined, peer: EnsemblePeer): PeerPorts {
    const isDirect = viewer === undefined || viewer === peer || this.#options.hasProxies !== true;
    return isDirect ? peer.ports : this.network.serverPorts(viewer.name, peer.name);
  }

  /** Starts a process for each without waiting for the result. */
  async launch(sids: readonly Sid[], options: LaunchOptions = {}): Promise<void> {
    await Promise.all(sids.map((sid) => this.#launch(this.peer(sid), options)));
  }

  async #launch(peer: EnsemblePeer, { kind, properties, config }: LaunchOptions): Promise<void> {
    if (peer.isUp) throw new Error(`${peer.name} is already running`);
    if (kind !== undefined) peer.kind = kind;
    peer.startCount++;
    await mkdir(peer.lifeFolder, { recursive: true });
    const settings = this.#options;
    peer.process = await launchServer(
      {
        ...settings,
        kind: peer.kind,
        folder: peer.lifeFolder,
        dataDir: peer.dataDir,
        ...(settings.firstMembers !== undefined && { configFile: path.join(peer.folder, 'zoo.cfg') }),
        config: {
          ...(peer.role === 'observer' ? { peerType: 'observer' } : {}),
          ...settings.config,
          ...(await this.#membership(peer)),
          ...config,
        },
        properties: { ...settings.properties, ...properties },
        environment: { ...settings.environment, ...peer.disk?.environment },
      },
      peer.port,
    );
  }

  /** The keys that make it a server of the ensemble. */
  async #membership(peer: EnsemblePeer): Promise<Settings> {
    const lines = this.serverLines(peer);
    if (this.#options.hasDynamicFile !== true) return lines;
    const dynamicConfigFile = path.join(peer.folder, 'zoo.cfg.dynamic');
    const text = Object.entries(lines).map(([key, line]) => `${key}=${line}\n`);
    await writeFile(dynamicConfigFile, text.join(''));
    return { dynamicConfigFile };
  }

  /** Starts these at the same time, and waits until each serves. */
  async start(sids: readonly Sid[]): Promise<void> {
    await this.launch(sids);
    await this.untilServing(sids);
  }

  async stop(sid: Sid): Promise<void> {
    const { process, name } = this.peer(sid);
    if (process !== undefined && !(await process.stop())) throw new Error(`${name} did not end after SIGTERM`);
  }

  async kill(...sids: readonly Sid[]): Promise<void> {
    await Promise.all(
      sids.map(async (sid) => {
        const { name, process, isUp } = this.peer(sid);
        if (!isUp) throw new Error(`${name} had ended by itself:\n${await this.evidence()}`);
        // A paused server must not run again: it would log the proposals that its socket holds.
        await process!.kill();
      }),
    );
  }

  /** Deletes all data of a stopped server. */
  async wipe(sid: Sid): Promise<void> {
    await rm(path.join(this.peer(sid).dataDir, 'version-2'), { recursive: true, force: true });
  }

  /** The running servers that report this mode. */
  async inMode(mode: ServerMode): Promise<EnsemblePeer[]> {
    const modes = await Promise.all(this.peers.map((peer) => peer.mode()));
    return this.peers.filter((_, index) => modes[index] === mode);
  }

  /** Waits until each of these reports this mode. */
  async untilMode(sids: readonly Sid[], mode: ServerMode, timeoutMs = roleTimeoutMs): Promise<void> {
    for (const sid of sids) {
      const peer = this.peer(sid);
      await this.until(`${peer.name} is ${mode}`, async () => (await peer.mode()) === mode || undefined, timeoutMs, sid);
    }
  }

  /**
   * Waits until each of these serves clients, in any mode, and one of all leads or is alone. Returns
   * that one.
   */
  async untilServing(sids: readonly Sid[] = this.running.map(({ sid }) => sid), timeoutMs = roleTimeoutMs): Promise<EnsemblePeer> {
    for (const sid of sids) {
      const peer = this.peer(sid);
      await this.until(`${peer.name} serves`, () => peer.mode(), timeoutMs, sid);
    }
    return this.leader(timeoutMs);
  }

  /** Waits for the server that leads, or is alone. */
  leader(timeoutMs = roleTimeoutMs): Promise<EnsemblePeer> {
    const leader = async (): Promise<EnsemblePeer | undefined> =>
      [...(await this.inMode('leader')), ...(await this.inMode('standalone'))][0];
    return this.until('one of the servers leads', leader, timeoutMs);
  }

  /** Whether a server leads within this time. */
  hasLeaderWithin(timeoutMs: number, everyMs?: number): Promise<boolean> {
    return eventually(async () => (await this.inMode('leader')).length > 0, timeoutMs, everyMs);
  }

  /** Waits until all running servers have applied the same txns; returns the last zxid. */
  untilConverged(timeoutMs = roleTimeoutMs): Promise<string> {
    const level = async (): Promise<string | undefined> => {
      const [first, ...others] = await Promise.all(this.running.map((peer) => peer.status()));
      return others.every((status) => status?.zxid === first?.zxid) ? first?.zxid : undefined;
    };
    return this.until('all servers report the same zxid', level, timeoutMs);
  }

  /** Polls until there is a value. `sid`: the server that must stay alive in the meantime. */
  async until<T>(what: string, poll: () => Promise<T | undefined>, timeoutMs = roleTimeoutMs, sid?: Sid): Promise<T> {
    const watched = sid === undefined ? undefined : this.peer(sid);
    let hasEnded = false;
    const found = await until(
      what,
      async () => {
        hasEnded = watched !== undefined && !watched.isUp;
        return hasEnded ? ('ended' as const) : await poll();
      },
      timeoutMs,
      () => this.evidence(),
    );
    if (hasEnded) throw new Error(`${watched!.name} has ended during the wait for: ${what}\n${await this.evidence()}`);
    return found as T;
  }

  /** The state that each server reports, and its last output. */
  async evidence(): Promise<string> {
    const lines: string[] = [];
    for (const peer of this.peers) {
      const { mode = 'none', zxid = 'unknown' } = (await peer.status()) ?? {};
      lines.push(`--- ${peer.name} (${peer.kind}), life ${peer.startCount}, ${peer.isUp ? 'up' : 'down'}, mode ${mode}, zxid ${zxid}`);
      lines.push(...(await peer.logTail()));
    }
    return lines.join('\n');
  }

  /** zoo.cfg of a server in its current life. */
  async configOf(sid: Sid): Promise<string> {
    return readFile(path.join(this.peer(sid).lifeFolder, 'zoo.cfg'), 'utf8');
  }

  /** Ends every process and deletes every file. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.running.map(({ process }) => process!.kill()));
    for (const { disk } of this.peers) disk?.close();
    this.network.close();
    await rm(this.#folder, { recursive: true, force: true });
  }
}
