/**
 * Keeps a hard link to every log file that servers write, so that it can be read after a server has
 * removed it, for example when it installs its leader's snapshot. A truncation is visible through
 * the link as well, since the file is the same.
 */
import { link, mkdir, readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { numberedFiles } from '@tskeeper/runtime';
import { delay } from './real-clock.ts';
import type { Member } from './member.ts';

/** Often compared with the time that it takes to write a new log. */
const everyMs = 50;

export interface KeptLog {
  readonly name: string;
  /** The permanent path. */
  readonly path: string;
}

/** The logs that a server had at one time: together, in this order, they were its history. */
export type LogsAtOnce = readonly KeptLog[];

export class LogKeeper {
  readonly #folder: string;
  /** By server, name and inode: a start may replace a file, and names are reused. */
  readonly #kept = new Map<string, KeptLog>();
  /** By server, all sets of logs that it ever had, the last at the end. */
  readonly states: ReadonlyMap<Member, LogsAtOnce[]>;
  #stopped = false;
  #work: Promise<void> = Promise.resolve();

  constructor(servers: readonly Member[], folder: string) {
    this.#folder = folder;
    this.states = new Map(servers.map((server) => [server, []]));
  }

  async begin(): Promise<void> {
    await mkdir(this.#folder, { recursive: true });
    this.#work = this.#run();
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      await this.#look();
      await delay(everyMs);
    }
    await this.#look();
  }

  async end(): Promise<void> {
    this.#stopped = true;
    await this.#work;
  }

  async #look(): Promise<void> {
    for (const [server, states] of this.states) {
      const folder = path.join(server.dataDir, 'version-2');
      const names = numberedFiles(await readdir(folder).catch(() => []), 'log').map(({ name }) => name);
      const found: KeptLog[] = [];
      for (const name of names) {
        const kept = await this.#keep(server, path.join(folder, name));
        if (kept !== undefined) found.push(kept);
      }
      const last = states.at(-1);
      if (last?.length !== found.length || found.some((kept, at) => kept !== last[at])) states.push(found);
    }
  }

  /** undefined for a file that was removed between two calls: there was nothing to keep. */
  async #keep(server: Member, file: string): Promise<KeptLog | undefined> {
    const inode = await stat(file).then(
      ({ ino }) => ino,
      () => undefined,
    );
    const name = path.basename(file);
    const key = `${server.name} ${name} ${inode}`;
    const known = this.#kept.get(key);
    if (known !== undefined || inode === undefined) return known;
    const kept = { name, path: path.join(this.#folder, `${this.#kept.size}-${server.name}-${name}`) };
    try {
      await link(file, kept.path);
    } catch {
      return undefined;
    }
    this.#kept.set(key, kept);
    return kept;
  }
}
