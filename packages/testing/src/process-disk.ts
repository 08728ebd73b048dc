/**
 * The disk as seen by one server process, which can end at any moment: then its calls get no
 * answer, and the system closes its files and releases its locks. What it wrote stays, as the page
 * cache outlives a process.
 */
import type { Disk, DiskError, DiskFile, FolderLock } from '@tskeeper/runtime';
import type { ActivityTracker } from './activity-tracker.ts';

export class ProcessDisk implements Disk {
  readonly canSyncFolders: boolean;
  readonly #disk: Disk;
  readonly #activity: ActivityTracker;
  readonly #files = new Set<DiskFile>();
  readonly #locks = new Set<FolderLock>();
  /** Calls without an answer. */
  readonly #calls = new Set<Promise<unknown>>();
  #hasEnded = false;

  constructor(disk: Disk, activity: ActivityTracker) {
    this.#disk = disk;
    this.#activity = activity;
    this.canSyncFolders = disk.canSyncFolders;
  }

  /** The process ends at once. Resolves when its files are closed. */
  async kill(): Promise<void> {
    this.#hasEnded = true;
    // Wait for pending calls. A file that one of them opens is closed here too.
    while (this.#calls.size > 0) await Promise.allSettled(this.#calls);
    await Promise.all([...this.#files].map((file) => file.close()));
    await Promise.all([...this.#locks].map((lock) => lock.release()));
  }

  list(folder: string): Promise<string[]> {
    return this.#call(() => this.#disk.list(folder));
  }

  ensureFolder(folder: string): Promise<boolean> {
    return this.#call(() => this.#disk.ensureFolder(folder));
  }

  exists(path: string): Promise<boolean> {
    return this.#call(() => this.#disk.exists(path));
  }

  open(path: string, mode: 'existing' | 'create' | 'replace'): Promise<DiskFile> {
    return this.#call(async () => {
      const file = await this.#disk.open(path, mode);
      this.#files.add(file);
      return this.#file(file);
    });
  }

  remove(path: string): Promise<void> {
    return this.#call(() => this.#disk.remove(path));
  }

  rename(from: string, to: string): Promise<void> {
    return this.#call(() => this.#disk.rename(from, to));
  }

  syncFolder(folder: string): Promise<void> {
    return this.#call(() => this.#disk.syncFolder(folder));
  }

  lock(folder: string): Promise<FolderLock> {
    return this.#call(async () => {
      const lock = await this.#disk.lock(folder);
      this.#locks.add(lock);
      return {
        release: () =>
          this.#call(async () => {
            this.#locks.delete(lock);
            await lock.release();
          }),
      };
    });
  }

  #file(file: DiskFile): DiskFile {
    return {
      path: file.path,
      size: () => this.#call(() => file.size()),
      read: (position, length) => this.#call(() => file.read(position, length)),
      write: (position, bytes) => {
        if (!this.#hasEnded) file.write(position, bytes);
      },
      extend: (size) => {
        if (!this.#hasEnded) file.extend(size);
      },
      sync: (done) => {
        void this.#sync(file, done);
      },
      truncate: (size) => this.#call(() => file.truncate(size)),
      close: () =>
        this.#call(async () => {
          this.#files.delete(file);
          await file.close();
        }),
    };
  }

  async #sync(file: DiskFile, done: (error: DiskError | undefined) => void): Promise<void> {
    done(await this.#call(() => new Promise<DiskError | undefined>((resolve) => file.sync(resolve))));
  }

  /** Calls the disk. Calls of a process that has ended get no answer. */
  async #call<T>(ask: () => Promise<T>): Promise<T> {
    if (this.#hasEnded) return await never();
    const begun = this.#activity.begin();
    const answer = ask();
    this.#calls.add(answer);
    const [outcome] = await Promise.allSettled([answer]);
    this.#calls.delete(answer);
    this.#activity.end(begun);
    if (this.#hasEnded) return await never();
    if (outcome.status === 'rejected') throw outcome.reason;
    return outcome.value;
  }
}

function never<T>(): Promise<T> {
  return new Promise(() => undefined);
}
