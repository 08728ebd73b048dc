/**
 * Ensembles of real processes: folders with a zoo.cfg and a myid, as an operator has them, on ports
 * that no other process takes while a server is down.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Sid } from '@tskeeper/protocol';
import { reservePort, type ServerProcess, startServer } from '../../scripts/server-process.js';

export interface EnsembleOptions {
  readonly voters: number;
  readonly observers?: number;
  /** Additional keys of zoo.cfg. */
  readonly config?: Readonly<Record<string, string | number | boolean>>;
  /** The server lines are in their own file. */
  readonly dynamicFile?: boolean;
}

/** Interval of polling; short compared with everything awaited. */
const pollMs = 20;
const waitMaxMs = 60_000;

export class ProcessEnsemble implements AsyncDisposable {
  /** Running servers. */
  readonly servers = new Map<Sid, ServerProcess>();
  readonly #folder: string;
  readonly #options: EnsembleOptions;
  readonly #lines: Readonly<Record<string, string>>;
  readonly #clientPorts: readonly number[];

  private constructor(folder: string, options: EnsembleOptions, lines: Readonly<Record<string, string>>, clientPorts: readonly number[]) {
    this.#folder = folder;
    this.#options = options;
    this.#lines = lines;
    this.#clientPorts = clientPorts;
  }

  /** Starts all of them, and waits until each leads, follows or observes. */
  static async start(folder: string, options: EnsembleOptions): Promise<ProcessEnsemble> {
    const { voters, observers = 0 } = options;
    const count = voters + observers;
    const ports: number[] = [];
    for (let index = 0; index < 3 * count; index++) ports.push(await reservePort());
    const lines: Record<string, string> = {};
    for (let index = 0; index < count; index++) {
      const role = index < voters ? '' : ':observer';
      lines[`server.${index + 1}`] = `127.0.0.1:${ports[3 * index]}:${ports[3 * index + 1]}${role}`;
    }
    const clientPorts = Array.from({ length: count }, (_, index) => ports[3 * index + 2]!);
    const ensemble = new ProcessEnsemble(folder, options, lines, clientPorts);
    await ensemble.start(...clientPorts.map((_, index) => index + 1));
    return ensemble;
  }

  get connectString(): string {
    return this.#clientPorts.map((port) => `127.0.0.1:${port}`).join(',');
  }

  /** Starts these at the same time, and waits until each leads, follows or observes. */
  async start(...sids: readonly Sid[]): Promise<void> {
    await Promise.all(sids.map((sid) => this.#start(sid)));
  }

  async #start(sid: Sid): Promise<void> {
    const folder = path.join(this.#folder, `server-${sid}`);
    await mkdir(path.join(folder, 'data'), { recursive: true });
    await writeFile(path.join(folder, 'data', 'myid'), `${sid}\n`);
    const { config, dynamicFile } = this.#options;
    const dynamicConfigFile = path.join(folder, 'zoo.cfg.dynamic');
    if (dynamicFile === true) {
      const text = Object.entries(this.#lines).map(([key, line]) => `${key}=${line}\n`);
      await writeFile(dynamicConfigFile, text.join(''));
    }
    const server = await startServer({
      kind: 'ours',
      folder,
      config: {
        tickTime: 500,
        initLimit: 20,
        syncLimit: 10,
        clientPort: this.#clientPorts[sid - 1]!,
        ...(dynamicFile === true ? { dynamicConfigFile } : this.#lines),
        ...config,
      },
    });
    this.servers.set(sid, server);
  }

  async kill(...sids: readonly Sid[]): Promise<void> {
    await Promise.all(
      sids.map(async (sid) => {
        await this.server(sid).kill();
        this.servers.delete(sid);
      }),
    );
  }

  server(sid: Sid): ServerProcess {
    const server = this.servers.get(sid);
    if (server === undefined) throw new Error(`server ${sid} does not run`);
    return server;
  }

  /**
   * What each running server reports: leader, follower, observer, or undefined while it does not
   * serve.
   */
  async roles(): Promise<Map<Sid, string | undefined>> {
    const roles = new Map<Sid, string | undefined>();
    for (const [sid, server] of this.servers) {
      // A server that loses its leader aborts pending requests.
      const answer = await server.fourLetterWord('srvr').catch(() => '');
      roles.set(sid, /^Mode: (\w+)$/m.exec(answer)?.[1]);
    }
    return roles;
  }

  async leader(): Promise<Sid | undefined> {
    return [...(await this.roles())].find(([, role]) => role === 'leader')?.[0];
  }

  /** Polls until the condition holds. */
  async until(what: string, isSo: () => Promise<boolean>): Promise<void> {
    const deadline = performance.now() + waitMaxMs;
    while (!(await isSo())) {
      if (performance.now() > deadline) throw new Error(`timed out after ${waitMaxMs} ms waiting for: ${what}\n${await this.#lastWords()}`);
      await delay(pollMs);
    }
  }

  async #lastWords(): Promise<string> {
    const logs = [...this.servers].map(async ([sid, server]) => `${sid}: ${(await server.log()).slice(-500)}`);
    return (await Promise.all(logs)).join('\n');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill(...this.servers.keys());
  }
}
