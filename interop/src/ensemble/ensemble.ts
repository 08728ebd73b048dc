/**
 * An ensemble of real processes on this machine, each of its own kind: ours beside Apache's.
 *
 * A member keeps its sid, its ports and its data folder in each life; its kind may change, so one
 * server can replace another. Each life has its own folder for zoo.cfg and the output of the
 * process.
 */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { fourLetterWord, reservePort, launchServer, type ServerKind, type ServerProcess } from '../../../scripts/server-process.js';
import { noContainerChecks, superDigestProperty } from '../settings.ts';
import { lostWakeupPorts } from '@tskeeper/harness';
import { until } from './until.ts';

export interface PeerSpec {
  readonly sid: number;
  readonly kind: ServerKind;
  readonly role: 'participant' | 'observer';
}

export type Settings = Readonly<Record<string, string | number | boolean>>;

export interface EnsembleOptions {
  /** Keys of zoo.cfg, in addition to those of all ensembles. */
  readonly config?: Settings;
  /** Java system properties; our server takes them as well. */
  readonly properties?: Settings;
}

export type Mode = 'leader' | 'follower' | 'observer' | 'standalone' | 'none';

/** Time limit for a server to find its role. A JVM on a busy machine takes seconds to start. */
export const roleTimeoutMs = 60_000;

/** Lines of a server's output in a failure. */
const evidenceLines = 15;

/** Neither a line of a stack trace, nor a message about every session. */
function isRelevant(line: string): boolean {
  return !/^\s+at |Committing global session|Submitting global closeSession/.test(line);
}

interface Ports {
  readonly client: number;
  readonly quorum: number;
  readonly election: number;
}

export class EnsemblePeer {
  readonly sid: number;
  readonly role: PeerSpec['role'];
  readonly ports: Ports;
  readonly folder: string;
  kind: ServerKind;
  startCount = 0;
  process: ServerProcess | undefined;

  constructor(spec: PeerSpec, ports: Ports, folder: string) {
    this.sid = spec.sid;
    this.kind = spec.kind;
    this.role = spec.role;
    this.ports = ports;
    this.folder = folder;
  }

  get name(): string {
    return `server ${this.sid} (${this.kind})`;
  }

  get dataDir(): string {
    return path.join(this.folder, 'data');
  }

  get port(): number {
    return this.ports.client;
  }

  get isUp(): boolean {
    return this.process?.alive === true;
  }

  /** Its output in this life, without its answers to us. */
  async log(): Promise<readonly string[]> {
    const text = (await this.process?.log()) ?? '';
    return text.split('\n').filter((line) => line !== '' && !line.includes(' Processing '));
  }

  ask(word: string): Promise<string> {
    return fourLetterWord(this.port, word);
  }

  async srvr(): Promise<{ mode: Mode; zxid: string }> {
    const text = await this.ask('srvr').catch(() => '');
    return {
      mode: (/^Mode: (\w+)$/m.exec(text)?.[1] as Mode | undefined) ?? 'none',
      zxid: /^Zxid: (.*)$/m.exec(text)?.[1] ?? 'not told',
    };
  }
}

export class Ensemble {
  readonly #folder: string;
  readonly #peers: ReadonlyMap<number, EnsemblePeer>;
  readonly #options: EnsembleOptions;

  private constructor(folder: string, members: ReadonlyMap<number, EnsemblePeer>, options: EnsembleOptions) {
    this.#folder = folder;
    this.#peers = members;
    this.#options = options;
  }

  /** Does not start any server. */
  static async create(specs: readonly PeerSpec[], options: EnsembleOptions = {}): Promise<Ensemble> {
    const folder = await mkdtemp(path.join(tmpdir(), 'tskeeper-ensemble-'));
    const members = new Map<number, EnsemblePeer>();
    for (const spec of specs) {
      const ports = { client: await reservePort(), quorum: await reservePort(), election: await reservePort() };
      const member = new EnsemblePeer(spec, ports, path.join(folder, `server-${spec.sid}`));
      await mkdir(member.dataDir, { recursive: true });
      await writeFile(path.join(member.dataDir, 'myid'), `${spec.sid}\n`);
      members.set(spec.sid, member);
    }
    return new Ensemble(folder, members, options);
  }

  get peers(): readonly EnsemblePeer[] {
    return [...this.#peers.values()];
  }

  get running(): readonly EnsemblePeer[] {
    return this.peers.filter((member) => member.isUp);
  }

  peer(sid: number): EnsemblePeer {
    const member = this.#peers.get(sid);
    if (member === undefined) throw new Error(`there is no server ${sid}`);
    return member;
  }

  /** `host:port` of each, for a client. */
  get connectString(): string {
    return this.peers.map(({ port }) => `127.0.0.1:${port}`).join(',');
  }

  /** The lines `server.N` of zoo.cfg. */
  get serverLines(): Record<string, string> {
    return Object.fromEntries(
      this.peers.map(({ sid, role, ports }) => [
        `server.${sid}`,
        `127.0.0.1:${ports.quorum}:${ports.election}:${role};127.0.0.1:${ports.client}`,
      ]),
    );
  }

  /** Starts a process for each without waiting for the result. Sets their `kind`, if given. */
  async launch(sids: readonly number[], { kind, properties }: { kind?: ServerKind; properties?: Settings } = {}): Promise<void> {
    await Promise.all(sids.map((sid) => this.#launch(this.peer(sid), kind, properties)));
  }

  async #launch(member: EnsemblePeer, kind: ServerKind | undefined, properties: Settings = {}): Promise<void> {
    if (member.isUp) throw new Error(`${member.name} is already running`);
    if (kind !== undefined) member.kind = kind;
    if (member.kind === 'java-3.8.0') lostWakeupPorts.add(member.port);
    else lostWakeupPorts.delete(member.port);
    const folder = path.join(member.folder, `life-${++member.startCount}`);
    await mkdir(folder);
    member.process = await launchServer(
      {
        kind: member.kind,
        folder,
        dataDir: member.dataDir,
        config: {
          tickTime: 500,
          initLimit: 20,
          syncLimit: 10,
          extendedTypesEnabled: true,
          maxSessionTimeout: 1_200_000,
          ...(member.role === 'observer' ? { peerType: 'observer' } : {}),
          ...this.#options.config,
          ...this.serverLines,
        },
        properties: {
          ...superDigestProperty,
          ...noContainerChecks,
          'log.level': 'INFO',
          'zookeeper.admin.enableServer': false,
          ...this.#options.properties,
          ...properties,
        },
        heap: '256m',
        // What makes a JVM run fast does not help one that lives for seconds, and costs more than
        // its work.
        jvmArguments: ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC'],
      },
      member.port,
    );
  }

  async stop(sid: number): Promise<void> {
    const member = this.peer(sid);
    if (member.process !== undefined && !(await member.process.stop())) throw new Error(`${member.name} did not end after SIGTERM`);
  }

  async kill(sid: number): Promise<void> {
    const { process } = this.peer(sid);
    if (process === undefined || !process.alive) throw new Error(`server ${sid} had ended by itself:\n${await this.evidence()}`);
    await process.kill();
  }

  /** Waits until each of these reports this mode. */
  async untilMode(sids: readonly number[], mode: Mode, timeoutMs = roleTimeoutMs): Promise<void> {
    for (const sid of sids) {
      const member = this.peer(sid);
      await this.until(`${member.name} is ${mode}`, async () => ((await member.srvr()).mode === mode ? true : undefined), timeoutMs, sid);
    }
  }

  /**
   * Waits until each of these serves clients, in any mode, and one of all leads. Returns the
   * leader.
   */
  async untilServing(sids: readonly number[] = this.running.map(({ sid }) => sid), timeoutMs = roleTimeoutMs): Promise<EnsemblePeer> {
    for (const sid of sids) {
      const member = this.peer(sid);
      await this.until(`${member.name} serves`, async () => ((await member.srvr()).mode === 'none' ? undefined : true), timeoutMs, sid);
    }
    return await this.leader(timeoutMs);
  }

  leader(timeoutMs = roleTimeoutMs): Promise<EnsemblePeer> {
    return this.until(
      'one of the servers leads',
      async () => {
        for (const member of this.running) if ((await member.srvr()).mode === 'leader') return member;
        return undefined;
      },
      timeoutMs,
    );
  }

  /** `sid`: the server that must stay alive in the meantime. */
  async until<T>(what: string, look: () => Promise<T | undefined>, timeoutMs: number, sid?: number): Promise<T> {
    const watched = sid === undefined ? undefined : this.peer(sid);
    let ended = false;
    const found = await until(
      what,
      async () => {
        if (watched !== undefined && !watched.isUp) {
          ended = true;
          return 'ended' as const;
        }
        return await look();
      },
      timeoutMs,
      () => this.evidence(),
    );
    if (ended) throw new Error(`${watched!.name} has ended during the wait for: ${what}\n${await this.evidence()}`);
    return found as T;
  }

  /** The state that each server reports, and its last output. */
  async evidence(): Promise<string> {
    const lines: string[] = [];
    for (const member of this.peers) {
      const { mode, zxid } = await member.srvr();
      lines.push(`--- ${member.name}, life ${member.startCount}, ${member.isUp ? 'up' : 'down'}, mode ${mode}, zxid ${zxid}`);
      lines.push(...(await member.log()).filter(isRelevant).slice(-evidenceLines));
    }
    return lines.join('\n');
  }

  async configOf(sid: number): Promise<string> {
    const member = this.peer(sid);
    return await readFile(path.join(member.folder, `life-${member.startCount}`, 'zoo.cfg'), 'utf8');
  }

  /** Ends every process and deletes every file. */
  async end(): Promise<void> {
    await Promise.all(
      this.running.map(async ({ process }) => {
        process!.resume();
        await process!.kill();
      }),
    );
    await rm(this.#folder, { recursive: true, force: true });
  }
}
