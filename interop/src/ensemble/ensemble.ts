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

import { fourLetterWord, lastingPort, launchServer, type ServerKind, type ServerProcess } from '../../../scripts/server-process.js';
import { noReaper, superDigestProperty } from '../settings.ts';
import { forgetfulPorts } from '../wire/raw-client.ts';
import { until } from './until.ts';

export interface MemberSpec {
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
export const placeMs = 60_000;

/** Lines of a server's output in a failure. */
const evidenceLines = 15;

/** Neither a line of a stack trace, nor a message about every session. */
function isTelling(line: string): boolean {
  return !/^\s+at |Committing global session|Submitting global closeSession/.test(line);
}

interface Ports {
  readonly client: number;
  readonly quorum: number;
  readonly election: number;
}

export class Member {
  readonly sid: number;
  readonly role: MemberSpec['role'];
  readonly ports: Ports;
  readonly folder: string;
  kind: ServerKind;
  life = 0;
  process: ServerProcess | undefined;

  constructor(spec: MemberSpec, ports: Ports, folder: string) {
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
  readonly #members: ReadonlyMap<number, Member>;
  readonly #options: EnsembleOptions;

  private constructor(folder: string, members: ReadonlyMap<number, Member>, options: EnsembleOptions) {
    this.#folder = folder;
    this.#members = members;
    this.#options = options;
  }

  /** Does not start any server. */
  static async create(specs: readonly MemberSpec[], options: EnsembleOptions = {}): Promise<Ensemble> {
    const folder = await mkdtemp(path.join(tmpdir(), 'tskeeper-ensemble-'));
    const members = new Map<number, Member>();
    for (const spec of specs) {
      const ports = { client: await lastingPort(), quorum: await lastingPort(), election: await lastingPort() };
      const member = new Member(spec, ports, path.join(folder, `server-${spec.sid}`));
      await mkdir(member.dataDir, { recursive: true });
      await writeFile(path.join(member.dataDir, 'myid'), `${spec.sid}\n`);
      members.set(spec.sid, member);
    }
    return new Ensemble(folder, members, options);
  }

  get members(): readonly Member[] {
    return [...this.#members.values()];
  }

  get up(): readonly Member[] {
    return this.members.filter((member) => member.isUp);
  }

  member(sid: number): Member {
    const member = this.#members.get(sid);
    if (member === undefined) throw new Error(`there is no server ${sid}`);
    return member;
  }

  /** `host:port` of each, for a client. */
  get connectString(): string {
    return this.members.map(({ port }) => `127.0.0.1:${port}`).join(',');
  }

  /** The lines `server.N` of zoo.cfg. */
  get serverLines(): Record<string, string> {
    return Object.fromEntries(
      this.members.map(({ sid, role, ports }) => [
        `server.${sid}`,
        `127.0.0.1:${ports.quorum}:${ports.election}:${role};127.0.0.1:${ports.client}`,
      ]),
    );
  }

  /** Starts a process for each without waiting for the result. Sets their `kind`, if given. */
  async launch(sids: readonly number[], { kind, properties }: { kind?: ServerKind; properties?: Settings } = {}): Promise<void> {
    await Promise.all(sids.map((sid) => this.#launch(this.member(sid), kind, properties)));
  }

  async #launch(member: Member, kind: ServerKind | undefined, properties: Settings = {}): Promise<void> {
    if (member.isUp) throw new Error(`${member.name} is already running`);
    if (kind !== undefined) member.kind = kind;
    if (member.kind === 'java-3.8.0') forgetfulPorts.add(member.port);
    else forgetfulPorts.delete(member.port);
    const folder = path.join(member.folder, `life-${++member.life}`);
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
          ...noReaper,
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
    const member = this.member(sid);
    if (member.process !== undefined && !(await member.process.stop())) throw new Error(`${member.name} did not end after SIGTERM`);
  }

  async kill(sid: number): Promise<void> {
    const { process } = this.member(sid);
    if (process === undefined || !process.alive) throw new Error(`server ${sid} had ended by itself:\n${await this.evidence()}`);
    await process.kill();
  }

  /** Waits until each of these reports this mode. */
  async untilMode(sids: readonly number[], mode: Mode, timeoutMs = placeMs): Promise<void> {
    for (const sid of sids) {
      const member = this.member(sid);
      await this.until(`${member.name} is ${mode}`, async () => ((await member.srvr()).mode === mode ? true : undefined), timeoutMs, sid);
    }
  }

  /**
   * Waits until each of these serves clients, in any mode, and one of all leads. Returns the
   * leader.
   */
  async untilServing(sids: readonly number[] = this.up.map(({ sid }) => sid), timeoutMs = placeMs): Promise<Member> {
    for (const sid of sids) {
      const member = this.member(sid);
      await this.until(`${member.name} serves`, async () => ((await member.srvr()).mode === 'none' ? undefined : true), timeoutMs, sid);
    }
    return await this.leader(timeoutMs);
  }

  leader(timeoutMs = placeMs): Promise<Member> {
    return this.until(
      'one of the servers leads',
      async () => {
        for (const member of this.up) if ((await member.srvr()).mode === 'leader') return member;
        return undefined;
      },
      timeoutMs,
    );
  }

  /** `sid`: the server that must stay alive in the meantime. */
  async until<T>(what: string, look: () => Promise<T | undefined>, timeoutMs: number, sid?: number): Promise<T> {
    const watched = sid === undefined ? undefined : this.member(sid);
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
    for (const member of this.members) {
      const { mode, zxid } = await member.srvr();
      lines.push(`--- ${member.name}, life ${member.life}, ${member.isUp ? 'up' : 'down'}, mode ${mode}, zxid ${zxid}`);
      lines.push(...(await member.log()).filter(isTelling).slice(-evidenceLines));
    }
    return lines.join('\n');
  }

  async configOf(sid: number): Promise<string> {
    const member = this.member(sid);
    return await readFile(path.join(member.folder, `life-${member.life}`, 'zoo.cfg'), 'utf8');
  }

  /** Ends every process and deletes every file. */
  async end(): Promise<void> {
    await Promise.all(
      this.up.map(async ({ process }) => {
        process!.resume();
        await process!.kill();
      }),
    );
    await rm(this.#folder, { recursive: true, force: true });
  }
}
