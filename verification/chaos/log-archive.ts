/**
 * Keeps a hard link to every log file that servers write, so that it can be read after a server has
 * removed it, for example when it installs its leader's snapshot. A truncation is visible through
 * the link as well, since the file is the same.
 */
import { link, mkdir, readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { numberedFiles } from '@tskeeper/runtime';
import { setTimeout as delay } from 'node:timers/promises';
import type { RealServer } from './real-server.ts';

/** Often compared with the time that it takes to write a new log. */
const everyMs = 50;

export interface ArchivedLog {
  readonly name: string;
  /** The permanent path. */
  readonly path: string;
}

/** The logs that a server had at one time: together, in this order, they were its history. */
export type LogSet = readonly ArchivedLog[];

export class LogArchive {
  readonly #folder: string;
  /** By server, name and inode: a start may replace a file, and names are reused. */
  readonly #archived = new Map<string, ArchivedLog>();
  /** By server, all sets of logs that it ever had, the last at the end. */
  readonly logSets: ReadonlyMap<RealServer, LogSet[]>;
  #stopped = false;
  #work: Promise<void> = Promise.resolve();

  constructor(servers: readonly RealServer[], folder: string) {
    this.#folder = folder;
    this.logSets = new Map(servers.map((server) => [server, []]));
  }

  async start(): Promise<void> {
    await mkdir(this.#folder, { recursive: true });
    this.#work = this.#run();
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      await this.#scan();
      await delay(everyMs);
    }
    await this.#scan();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#work;
  }

  async #scan(): Promise<void> {
    for (const [server, states] of this.logSets) {
      const folder = path.join(server.dataDir, 'version-2');
      const names = numberedFiles(await readdir(folder).catch(() => []), 'log').map(({ name }) => name);
      const found: ArchivedLog[] = [];
      for (const name of names) {
        const kept = await this.#archive(server, path.join(folder, name));
        if (kept !== undefined) found.push(kept);
      }
      const last = states.at(-1);
      if (last?.length !== found.length || found.some((kept, at) => kept !== last[at])) states.push(found);
    }
  }

  /** undefined for a file that was removed between two calls: there was nothing to keep. */
  async #archive(server: RealServer, file: string): Promise<ArchivedLog | undefined> {
    const inode = await stat(file).then(
      ({ ino }) => ino,
      () => undefined,
    );
    const name = path.basename(file);
    const key = `${server.name} ${name} ${inode}`;
    const known = this.#archived.get(key);
    if (known !== undefined || inode === undefined) return known;
    const kept = { name, path: path.join(this.#folder, `${this.#archived.size}-${server.name}-${name}`) };
    try {
      await link(file, kept.path);
    } catch {
      return undefined;
    }
    this.#archived.set(key, kept);
    return kept;
  }
}
