/**
 * Faults of one server's disk, which can start at any moment: see disk-faults.c. Needs gcc, but
 * neither root nor a file system of its own.
 */
import { execFile } from 'node:child_process';
import { closeSync, existsSync, openSync, readSync, writeSync } from 'node:fs';
import { mkdir, readFile, rename } from 'node:fs/promises';
import { createHash } from 'node:crypto';
import path from 'node:path';
import { promisify } from 'node:util';
import { repositoryFolder } from '../../../../scripts/foreign-programs.js';

const run = promisify(execFile);
const source = path.join(repositoryFolder, 'verification', 'harness', 'src', 'processes', 'disk-faults.c');
const cacheFolder = path.join(repositoryFolder, '.cache');
const flags = ['-O2', '-Wall', '-Wextra', '-Werror', '-shared', '-fPIC'];

/** The number of each fault in the shared file. */
const modes = { none: 0, full: 1, syncFails: 2, writeFails: 3, slowSyncs: 4 } as const;

export type DiskFault = keyof typeof modes;

/** The path of the library, compiled when its source has changed. */
export async function buildDiskFaults(): Promise<string> {
  const digest = createHash('sha256')
    .update(await readFile(source))
    .digest('hex')
    .slice(0, 12);
  const library = path.join(cacheFolder, `disk-faults-${digest}.so`);
  if (existsSync(library)) return library;
  await mkdir(cacheFolder, { recursive: true });
  const unfinished = `${library}.${process.pid}.tmp`;
  await run('gcc', [...flags, '-o', unfinished, source, '-ldl']);
  await rename(unfinished, library);
  return library;
}

export class FaultyDisk {
  readonly #fd: number;
  readonly #file: string;
  readonly #library: string;

  constructor(file: string, library: string) {
    this.#file = file;
    this.#library = library;
    this.#fd = openSync(file, 'w+');
    this.set('none');
  }

  /** Environment of the process with this disk. */
  get environment(): Readonly<Record<string, string>> {
    // Calls that bypass the C library could not be intercepted.
    return { LD_PRELOAD: this.#library, TSKEEPER_DISK_FAULTS: this.#file, UV_USE_IO_URING: '0' };
  }

  /** `value`: the remaining bytes of a disk that fills up; milliseconds of a slow sync. */
  set(fault: DiskFault, value = 0): void {
    const words = Buffer.alloc(8);
    words.writeInt32LE(modes[fault], 0);
    words.writeInt32LE(value, 4);
    // Write the value first: the mode activates it.
    writeSync(this.#fd, words, 4, 4, 4);
    writeSync(this.#fd, words, 0, 4, 0);
    if (this.affectedCalls === undefined) writeSync(this.#fd, Buffer.alloc(4), 0, 4, 8);
  }

  /** How many calls the fault has affected so far. */
  get affectedCalls(): number | undefined {
    const word = Buffer.alloc(4);
    return readSync(this.#fd, word, 0, 4, 8) === 4 ? word.readInt32LE(0) : undefined;
  }

  close(): void {
    closeSync(this.#fd);
  }
}
