import * as fs from 'node:fs';
import { dirname, resolve } from 'node:path';
import { promisify } from 'node:util';
import { type Clock, type Disk, DiskError, type DiskFile, type FolderLock, type ReadableFile } from '@tskeeper/runtime';
import { type DescriptorReserve, descriptorReserve } from './descriptor-reserve.ts';
import { lockFolder } from './folder-lock.ts';
import { SystemClock } from './system-clock.ts';

const openFile = promisify(fs.open);
const readFile = promisify(fs.read);
const statFile = promisify(fs.fstat);
const truncateFile = promisify(fs.ftruncate);
const syncFile = promisify(fs.fsync);
const closeFile = promisify(fs.close);

/**
 * Files over node:fs.
 *
 * A write to the log is a plain system call into the page cache, which takes a few microseconds;
 * only the sync uses the thread pool. Measured against using the pool for both, this saves a third
 * of the time of a commit, and the next batch is gathered while a sync runs.
 */
export class FsDisk implements Disk {
  /** Windows cannot open a folder for syncing. */
  readonly canSyncFolders = process.platform !== 'win32';
  readonly #clock: Clock;
  readonly #reserve: DescriptorReserve;

  /**
   * `clock` measures how long `lock` waits for a process that may be ending. From the first lock
   * on, `reserve` holds descriptors.
   */
  constructor(clock: Clock = new SystemClock(), reserve: DescriptorReserve = descriptorReserve) {
    this.#clock = clock;
    this.#reserve = reserve;
  }

  async list(folder: string): Promise<string[]> {
    return await attempt('list', folder, async () => {
      try {
        return await this.#reserve.use(() => fs.promises.readdir(folder));
      } catch (error) {
        if (codeOf(error) === 'ENOENT') return [];
        throw error;
      }
    });
  }

  async ensureFolder(folder: string): Promise<boolean> {
    const made = await attempt('make folder', folder, () => makeFolders(resolve(folder)));
    // Each new folder is an entry of its parent, and would be lost with it.
    for (const one of made) await this.syncFolder(dirname(one));
    return made.length > 0;
  }

  async exists(path: string): Promise<boolean> {
    return await attempt('stat', path, async () => {
      try {
        await fs.promises.stat(path);
        return true;
      } catch (error) {
        if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return false;
        throw error;
      }
    });
  }

  async open(path: string, mode: 'existing' | 'create' | 'replace'): Promise<DiskFile> {
    const { O_RDWR, O_CREAT, O_TRUNC } = fs.constants;
    const flags = mode === 'existing' ? O_RDWR : mode === 'create' ? O_RDWR | O_CREAT : O_RDWR | O_CREAT | O_TRUNC;
    const fd = await attempt('open', path, () => this.#reserve.use(() => openFile(path, flags, 0o666)));
    return new FsFile(path, fd, this.#reserve);
  }

  async remove(path: string): Promise<void> {
    await attempt('remove', path, () => fs.promises.unlink(path));
  }

  async rename(from: string, to: string): Promise<void> {
    await attempt('rename', from, () => fs.promises.rename(from, to));
  }

  async syncFolder(folder: string): Promise<void> {
    if (!this.canSyncFolders) return;
    await attempt('sync folder', folder, async () => {
      const fd = await this.#reserve.use(() => openFile(folder, 'r'));
      try {
        await syncFile(fd);
      } finally {
        await close(fd, this.#reserve);
      }
    });
  }

  async lock(folder: string): Promise<FolderLock> {
    const lock = await attempt('lock', folder, () => lockFolder(folder, { clock: this.#clock }));
    this.#reserve.fill();
    return lock;
  }
}

/**
 * Creates a folder and its missing parents, and returns those it has created. `mkdir` of node can
 * do that too (`recursive`), but never returns where the system says ENOENT although the parent
 * exists, as /proc does.
 */
async function makeFolders(folder: string): Promise<string[]> {
  const { mkdir } = fs.promises;
  try {
    await mkdir(folder);
    return [folder];
  } catch (error) {
    if (await isFolder(folder)) return [];
    const parent = dirname(folder);
    if (codeOf(error) !== 'ENOENT' || (await isFolder(parent))) throw error;
    return [...(await makeFolders(parent)), ...(await makeFolders(folder))];
  }
}

async function isFolder(path: string): Promise<boolean> {
  try {
    return (await fs.promises.stat(path)).isDirectory();
  } catch {
    return false;
  }
}

/** For tools that read files which they may have no right to change. */
export async function openForReading(path: string): Promise<ReadableFile> {
  return new FsFile(path, await attempt('open', path, () => openFile(path, fs.constants.O_RDONLY)), descriptorReserve);
}

const zero = Buffer.alloc(1);

class FsFile implements DiskFile {
  readonly path: string;
  readonly #fd: number;
  readonly #reserve: DescriptorReserve;
  /**
   * The first write that failed. After it the content of the file is unknown, so that no later sync
   * may succeed.
   */
  #failed: DiskError | undefined;

  constructor(path: string, fd: number, reserve: DescriptorReserve) {
    this.path = path;
    this.#fd = fd;
    this.#reserve = reserve;
  }

  async size(): Promise<number> {
    return (await attempt('stat', this.path, () => statFile(this.#fd))).size;
  }

  async read(position: number, length: number): Promise<Buffer> {
    // `length` may come from a damaged file, so the allocation is limited by the size of the file.
    const available = Math.max(0, Math.min(length, (await this.size()) - position));
    const buffer = Buffer.allocUnsafe(available);
    let filled = 0;
    while (filled < available) {
      const { bytesRead } = await attempt('read', this.path, () =>
        readFile(this.#fd, buffer, filled, available - filled, position + filled),
      );
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    return buffer.subarray(0, filled);
  }

  write(position: number, bytes: Uint8Array): void {
    try {
      let written = 0;
      // The system may write less than asked: at the end of a full disk, or after a signal.
      while (written < bytes.length) {
        const count = fs.writeSync(this.#fd, bytes, written, bytes.length - written, position + written);
        if (count === 0) throw Object.assign(new Error('the system wrote nothing'), { code: 'EIO' });
        written += count;
      }
    } catch (error) {
      this.#failed ??= diskError('write', this.path, error);
      throw this.#failed;
    }
  }

  extend(size: number): void {
    try {
      // A hole and one zero byte, as ZooKeeper pads its logs: the file's length is fixed, so that
      // the next syncs need not write it.
      if (fs.fstatSync(this.#fd).size < size) fs.writeSync(this.#fd, zero, 0, 1, size - 1);
    } catch (error) {
      this.#failed ??= diskError('extend', this.path, error);
      throw this.#failed;
    }
  }

  sync(done: (error: DiskError | undefined) => void): void {
    fs.fdatasync(this.#fd, (error) => {
      if (error !== null) this.#failed ??= diskError('sync', this.path, error);
      done(this.#failed);
    });
  }

  async truncate(size: number): Promise<void> {
    await attempt('truncate', this.path, async () => {
      await truncateFile(this.#fd, size);
      await syncFile(this.#fd);
    });
  }

  async close(): Promise<void> {
    await attempt('close', this.path, () => close(this.#fd, this.#reserve));
  }
}

/** Refills the reserve at once, before a connection can take the descriptor. */
async function close(fd: number, reserve: DescriptorReserve): Promise<void> {
  if (!reserve.isShort) return await closeFile(fd);
  fs.closeSync(fd);
  reserve.fill();
}

/** Adds the operation and the path to errors of the system. Other errors pass unchanged. */
async function attempt<T>(operation: string, path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw codeOf(error) === undefined ? error : diskError(operation, path, error);
  }
}

function diskError(operation: string, path: string, error: unknown): DiskError {
  return new DiskError(codeOf(error) ?? 'EUNKNOWN', operation, path, error);
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && !(error instanceof DiskError) ? (error as NodeJS.ErrnoException).code : undefined;
}
