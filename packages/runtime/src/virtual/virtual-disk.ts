/**
 * A disk in memory that can lose power, tear writes and fail.
 *
 * It keeps apart what a process sees (the page cache) and what would survive a power loss. A write
 * is visible at once; it is durable only when a `sync` requested after it has completed, and a name
 * only when `syncFolder` has. Until then it is "unsynced", in pieces of one sector, and a crash may
 * keep any of them: all, none, some, or the first bytes of one. That is harsher than a real disk,
 * where later writes to a page include earlier ones, so what holds here holds there.
 *
 * Everything is deterministic: completions go to `schedule`, which the simulator replaces to choose
 * their order.
 */
import { DiskError, FolderInUse, type Disk, type DiskFile, type FolderLock } from '../disk.ts';
import { applyName, Folder, Inode, targetNameOf, type UnsyncedName } from './disk-folders.ts';
import { type CrashChoice, DiskImage, keepAll } from './disk-image.ts';
import { FileContent } from './file-content.ts';

export type DiskOperation =
  | 'list'
  | 'ensureFolder'
  | 'exists'
  | 'open'
  | 'remove'
  | 'rename'
  | 'syncFolder'
  | 'lock'
  | 'size'
  | 'read'
  | 'write'
  | 'extend'
  | 'sync'
  | 'truncate'
  | 'close';

export interface DiskCall {
  /** Counts every call on this disk from 0, so that a test can fail the n-th call. */
  readonly index: number;
  readonly operation: DiskOperation;
  readonly path: string;
  /** Of a sync: the number of bytes written since the last one. */
  readonly bytes?: number;
}

export interface DiskFault {
  /** `EIO`, `ENOSPC` ... */
  readonly code: string;
  /** Of a failing write: how many of its bytes reached the file nevertheless. Default: 0. */
  readonly written?: number;
  /**
   * Of a failing write or extend: the next sync reports the error, as from an adapter with a
   * thread; it is not thrown.
   */
  readonly late?: boolean;
}

const nothing = Buffer.alloc(0);

function folderOf(path: string): string {
  const slash = path.lastIndexOf('/');
  return slash <= 0 ? '/' : path.slice(0, slash);
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

export class VirtualDisk implements Disk {
  readonly canSyncFolders = true;
  /** Called before each call on the disk; a returned fault makes that call fail. */
  fault: ((call: DiskCall) => DiskFault | undefined) | undefined;
  /** Receives each completion and calls it later, or never. */
  schedule: (call: DiskCall, complete: () => void) => void = (_call, complete) => {
    void Promise.resolve().then(complete);
  };
  /**
   * Called whenever what a crash could leave has changed: at these points a crash is worth trying.
   */
  onChanged: ((call: DiskCall) => void) | undefined;
  /** Number of calls so far. */
  calls = 0;
  #folders = new Map<string, Folder>();
  #locks = new Set<string>();
  /**
   * Incremented at each crash or kill; completions and files of an earlier generation belong to a
   * process that has ended.
   */
  #generation = 0;

  constructor(image?: DiskImage, choice: CrashChoice = keepAll) {
    if (image !== undefined) this.#load(image.survivors(choice));
  }

  #load(folders: Map<string, Map<string, FileContent>>): void {
    this.#folders = new Map();
    for (const [path, files] of folders) {
      const folder = new Folder();
      for (const [name, content] of files) {
        const inode = new Inode(`${path}/${name}`, content);
        folder.visible.set(name, inode);
        folder.synced.set(name, inode);
      }
      this.#folders.set(path, folder);
    }
  }

  // Crashes and kills.

  capture(): DiskImage {
    return new DiskImage(this.#folders);
  }

  /**
   * Power loss: of what was not synced, `choice` decides what survives. The process that used this
   * disk has ended.
   */
  crash(choice: CrashChoice): void {
    this.restore(this.capture(), choice);
  }

  /**
   * Replaces the content by what a power loss at another moment, or of another disk, has left. The
   * process that used this disk has ended.
   */
  restore(image: DiskImage, choice: CrashChoice = keepAll): void {
    this.kill();
    this.#load(image.survivors(choice));
  }

  /** The process ends without warning; the page cache stays, and so do unsynced writes. */
  kill(): void {
    this.#generation++;
    this.#locks.clear();
  }

  /**
   * The disk as one process sees it; dead from the next crash or kill on. Code of a process that
   * has ended may still make a call: through this object its calls stay unanswered, whereas on the
   * disk itself they would count as calls of the next process.
   */
  attach(): Disk {
    const generation = this.#generation;
    const ifAlive = <T>(call: () => Promise<T>): Promise<T> => (generation === this.#generation ? call() : new Promise<T>(() => undefined));
    return {
      canSyncFolders: this.canSyncFolders,
      list: (folder) => ifAlive(() => this.list(folder)),
      ensureFolder: (folder) => ifAlive(() => this.ensureFolder(folder)),
      exists: (path) => ifAlive(() => this.exists(path)),
      open: (path, mode) => ifAlive(() => this.open(path, mode)),
      remove: (path) => ifAlive(() => this.remove(path)),
      rename: (from, to) => ifAlive(() => this.rename(from, to)),
      syncFolder: (folder) => ifAlive(() => this.syncFolder(folder)),
      lock: (folder) => ifAlive(() => this.lock(folder)),
    };
  }

  // Damage and inspection, as by an operator or a failing medium: immediate and durable.

  /** Paths of all files, sorted. */
  files(): string[] {
    const paths: string[] = [];
    for (const [path, folder] of this.#folders) for (const name of folder.visible.keys()) paths.push(`${path}/${name}`);
    return paths.toSorted();
  }

  /** The content that a process would read. */
  contents(path: string): Buffer {
    const inode = this.#inode(path);
    if (inode === undefined) throw new DiskError('ENOENT', 'read', path);
    return inode.visible.read(0, inode.visible.size);
  }

  /** Stores a durable file in place of an existing one, which no crash restores. */
  putFile(path: string, bytes: Uint8Array): void {
    this.eraseFile(path);
    const content = new FileContent();
    if (bytes.length > 0) content.write(0, bytes, 0, bytes.length);
    const folder = this.#makeFolder(folderOf(path));
    const inode = new Inode(path, content);
    folder.visible.set(nameOf(path), inode);
    folder.synced.set(nameOf(path), inode);
  }

  /**
   * Removes a file as if it had never existed. No crash restores it: neither under its name before
   * a rename that is not durable, nor by a change of names that is not durable yet. The same holds
   * for earlier files of that name.
   */
  eraseFile(path: string): void {
    const folder = this.#folders.get(folderOf(path));
    if (folder === undefined) return;
    const name = nameOf(path);
    const lost = new Set<Inode>();
    for (const names of [folder.visible, folder.synced]) if (names.has(name)) lost.add(names.get(name)!);
    for (const { change, name: from, to, inode } of folder.unsynced) {
      if ((change === 'rename' && to === name) || (change === 'create' && from === name)) lost.add(inode);
    }
    // A file that is now visible under another name is another file.
    for (const [other, inode] of folder.visible) if (other !== name) lost.delete(inode);
    for (const names of [folder.visible, folder.synced]) {
      names.delete(name);
      for (const [known, inode] of names) if (lost.has(inode)) names.delete(known);
    }
    folder.unsynced = folder.unsynced.filter(({ inode }) => !lost.has(inode));
  }

  /** Inverts one bit; bit 0 of a byte is its lowest. */
  flipBit(path: string, bit: number): void {
    const bytes = this.contents(path);
    bytes[bit >>> 3]! ^= 1 << (bit & 7);
    this.putFile(path, bytes);
  }

  zero(path: string, start: number, end: number): void {
    const bytes = this.contents(path);
    bytes.fill(0, start, end);
    this.putFile(path, bytes);
  }

  /** A line that differs when the names or the contents differ. */
  fingerprint(hash: (bytes: Uint8Array) => number): string {
    const parts: string[] = [];
    for (const [path, folder] of this.#folders) {
      for (const [name, inode] of folder.visible) parts.push(`${path}/${name} ${inode.visible.size} ${inode.visible.hash(hash)}`);
    }
    return parts.toSorted().join('\n');
  }

  // The Disk interface.

  list(folder: string): Promise<string[]> {
    return this.#promise('list', folder, () => Array.from(this.#folders.get(folder)?.visible.keys() ?? []));
  }

  ensureFolder(folder: string): Promise<boolean> {
    return this.#promise('ensureFolder', folder, () => {
      if (this.#folders.has(folder)) return false;
      this.#makeFolder(folder);
      return true;
    });
  }

  exists(path: string): Promise<boolean> {
    return this.#promise('exists', path, () => this.#folders.has(path) || this.#inode(path) !== undefined);
  }

  open(path: string, mode: 'existing' | 'create' | 'replace'): Promise<DiskFile> {
    return this.#promise('open', path, (call) => {
      const folder = this.#folders.get(folderOf(path));
      if (folder === undefined) throw new DiskError('ENOENT', 'open', path);
      let inode = folder.visible.get(nameOf(path));
      if (inode === undefined) {
        if (mode === 'existing') throw new DiskError('ENOENT', 'open', path);
        inode = new Inode(path, new FileContent());
        this.#rename(folder, { change: 'create', name: nameOf(path), to: '', inode, hasSyncFailed: false }, call);
      } else if (mode === 'replace') {
        this.#truncate(inode, 0, call);
      }
      return this.#file(path, inode);
    });
  }

  remove(path: string): Promise<void> {
    return this.#promise('remove', path, (call) => {
      const folder = this.#folders.get(folderOf(path));
      const inode = folder?.visible.get(nameOf(path));
      if (folder === undefined || inode === undefined) throw new DiskError('ENOENT', 'remove', path);
      this.#rename(folder, { change: 'remove', name: nameOf(path), to: '', inode, hasSyncFailed: false }, call);
    });
  }

  rename(from: string, to: string): Promise<void> {
    return this.#promise('rename', from, (call) => {
      const folder = this.#folders.get(folderOf(from));
      const inode = folder?.visible.get(nameOf(from));
      if (folder === undefined || inode === undefined) throw new DiskError('ENOENT', 'rename', from);
      if (folderOf(to) !== folderOf(from)) throw new DiskError('EXDEV', 'rename', from);
      inode.path = to;
      this.#rename(folder, { change: 'rename', name: nameOf(from), to: nameOf(to), inode, hasSyncFailed: false }, call);
    });
  }

  syncFolder(path: string): Promise<void> {
    const folder = this.#folders.get(path);
    const covered = folder?.unsynced.slice() ?? [];
    return this.#promise(
      'syncFolder',
      path,
      (call) => {
        if (folder === undefined) throw new DiskError('ENOENT', 'syncFolder', path);
        // As with files: several syncs may be in progress, and changes that another one has made
        // durable, or that were lost, are no longer in the list.
        const still = new Set(folder.unsynced);
        const durable = covered.filter((change) => still.has(change) && !change.hasSyncFailed);
        for (const change of durable) applyName(folder.synced, change);
        const gained = new Set(durable);
        folder.unsynced = folder.unsynced.filter((change, at) => {
          // If a name has durably got another meaning since, the old one cannot return.
          const isOutdated = () =>
            folder.unsynced.slice(at + 1).some((later) => gained.has(later) && targetNameOf(later) === targetNameOf(change));
          return !gained.has(change) && !(change.hasSyncFailed && isOutdated());
        });
        this.onChanged?.(call);
      },
      () => {
        for (const change of covered) change.hasSyncFailed = true;
      },
    );
  }

  lock(folder: string): Promise<FolderLock> {
    return this.#promise('lock', folder, () => {
      if (this.#locks.has(folder)) throw new FolderInUse(`${folder} is in use by another process`);
      this.#locks.add(folder);
      const generation = this.#generation;
      return {
        release: () => {
          if (generation === this.#generation) this.#locks.delete(folder);
          return Promise.resolve();
        },
      };
    });
  }

  // Internals.

  #inode(path: string): Inode | undefined {
    return this.#folders.get(folderOf(path))?.visible.get(nameOf(path));
  }

  #makeFolder(path: string): Folder {
    let folder = this.#folders.get(path);
    if (folder === undefined) {
      folder = new Folder();
      this.#folders.set(path, folder);
      if (folderOf(path) !== path && path.includes('/')) this.#makeFolder(folderOf(path));
    }
    return folder;
  }

  #rename(folder: Folder, change: UnsyncedName, call: DiskCall): void {
    applyName(folder.visible, change);
    folder.unsynced.push(change);
    this.onChanged?.(call);
  }

  /**
   * Truncation is durable by the interface. Earlier unsynced writes cannot return: file systems
   * order a truncation after them.
   */
  #truncate(inode: Inode, size: number, call: DiskCall): void {
    inode.visible.truncate(size);
    inode.synced = inode.visible.copy();
    inode.unsynced = [];
    this.onChanged?.(call);
  }

  #call(operation: DiskOperation, path: string): DiskCall {
    return { index: this.calls++, operation, path };
  }

  #promise<T>(operation: DiskOperation, path: string, work: (call: DiskCall) => T, onFault?: () => void): Promise<T> {
    const call = this.#call(operation, path);
    const fault = this.fault?.(call);
    const generation = this.#generation;
    return new Promise((resolve, reject) => {
      this.schedule(call, () => {
        // The process has ended: its promises stay pending forever, unlike its memory.
        if (generation !== this.#generation) return;
        if (fault !== undefined) {
          onFault?.();
          reject(new DiskError(fault.code, operation, path));
          return;
        }
        try {
          resolve(work(call));
        } catch (error) {
          reject(error);
        }
      });
    });
  }

  #file(path: string, inode: Inode): DiskFile {
    const generation = this.#generation;
    const gone = () => generation !== this.#generation;
    const change = (operation: 'write' | 'extend', position: number, bytes: Uint8Array, size: number) => {
      if (gone()) return;
      const call = this.#call(operation, path);
      const fault = this.fault?.(call);
      const count = fault === undefined ? bytes.length : Math.min(bytes.length, fault.written ?? 0);
      if (fault === undefined || count > 0) {
        // A copy: the caller may reuse its buffer after the next sync, and a crash may read this
        // much later.
        inode.add({ position, bytes: Buffer.from(bytes.subarray(0, count)), size, hasSyncFailed: false });
        this.onChanged?.(call);
      }
      if (fault === undefined) return;
      if (fault.late !== true) throw new DiskError(fault.code, operation, path);
      inode.lateError ??= fault.code;
    };
    return {
      path,
      size: () => this.#promise('size', path, () => inode.visible.size),
      read: (position, length) => this.#promise('read', path, () => inode.visible.read(position, length)),
      write: (position, bytes) => {
        if (bytes.length > 0) change('write', position, bytes, position + bytes.length);
      },
      extend: (size) => {
        if (size > inode.visible.size) change('extend', 0, nothing, size);
      },
      sync: (done) => {
        if (gone()) return;
        const bytes = inode.unsynced.reduce((sum, write) => sum + write.bytes.length, 0);
        const call = { ...this.#call('sync', path), bytes };
        const code = this.fault?.(call)?.code ?? inode.lateError;
        inode.lateError = undefined;
        const covered = inode.unsynced.slice();
        this.schedule(call, () => {
          if (gone()) return;
          if (code !== undefined) {
            for (const write of covered) write.hasSyncFailed = true;
            done(new DiskError(code, 'sync', path));
            return;
          }
          // Several syncs may be in progress, and a truncation may have happened meanwhile: only
          // what is still in the list counts.
          const still = new Set(inode.unsynced);
          const durable = covered.filter((write) => still.has(write) && !write.hasSyncFailed);
          for (const write of durable) {
            if (write.bytes.length > 0) inode.synced.write(write.position, write.bytes, 0, write.bytes.length);
            else inode.synced.extend(write.size);
          }
          const gained = new Set(durable);
          inode.unsynced = inode.unsynced.filter((write) => !gained.has(write));
          this.onChanged?.(call);
          done(undefined);
        });
      },
      truncate: (size) =>
        this.#promise('truncate', path, (call) => {
          this.#truncate(inode, size, call);
        }),
      close: () => this.#promise('close', path, () => undefined),
    };
  }
}
