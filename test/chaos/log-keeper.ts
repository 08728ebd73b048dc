/**
 * Keeps a second name for every log file that servers write, so that what a server removes later can still be read: one that takes over its
 * leader's snapshot throws its own log away. A truncation is seen through the second name as well, since the file is the same.
 */
import { link, mkdir, readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { numberedFiles } from '@tskeeper/runtime';
import { delay } from './real-clock.ts';
import type { Member } from './member.ts';

/** Often, beside what it takes to write a log of its own. */
const everyMs = 50;

export interface KeptLog {
  readonly server: Member;
  readonly name: string;
  /** Where it can be read for good. */
  readonly path: string;
  /** The file before it was still there when this one came: it continues the same history. */
  readonly continues: boolean;
}

export class LogKeeper {
  readonly #servers: readonly Member[];
  readonly #folder: string;
  readonly #seen = new Set<string>();
  /** Of each server, its last log file. */
  readonly #last = new Map<Member, { readonly name: string; readonly inode: number }>();
  readonly logs: KeptLog[] = [];
  #stopped = false;
  #work: Promise<void> = Promise.resolve();

  constructor(servers: readonly Member[], folder: string) {
    this.#servers = servers;
    this.#folder = folder;
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
    for (const server of this.#servers) {
      const folder = path.join(server.dataDir, 'version-2');
      const names = numberedFiles(await readdir(folder).catch(() => []), 'log').map(({ name }) => name);
      for (const name of names) await this.#keep(server, folder, name, names);
    }
  }

  async #keep(server: Member, folder: string, name: string, there: readonly string[]): Promise<void> {
    // It may be gone between two calls; then there was nothing to keep.
    const inode = await inodeOf(path.join(folder, name));
    if (inode === undefined || this.#seen.has(`${server.name} ${name} ${inode}`)) return;
    const kept = path.join(this.#folder, `${server.name}-${this.logs.length}-${name}`);
    try {
      await link(path.join(folder, name), kept);
    } catch {
      return;
    }
    this.#seen.add(`${server.name} ${name} ${inode}`);
    const last = this.#last.get(server);
    const continues = last !== undefined && there.includes(last.name) && (await inodeOf(path.join(folder, last.name))) === last.inode;
    this.#last.set(server, { name, inode });
    this.logs.push({ server, name, path: kept, continues });
  }
}

async function inodeOf(file: string): Promise<number | undefined> {
  return stat(file).then(
    ({ ino }) => ino,
    () => undefined,
  );
}
