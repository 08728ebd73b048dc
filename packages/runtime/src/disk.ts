/**
 * The disk as the runtime sees it. The real adapter is in `server`; the one in memory, which can
 * crash, tear and fail, in `memory/`.
 *
 * Rare work (opening, renaming, reading at the start, snapshots) returns promises. The one hot
 * path, an append to the log followed by a sync, is a plain call and a callback.
 */
export interface Disk {
  /** Whether `syncFolder` has an effect. Where it has none, the start warns of it. */
  readonly canSyncFolders: boolean;
  /** Names in a folder, in no order; an empty list when the folder does not exist. */
  list(folder: string): Promise<string[]>;
  /** Creates the folder and its parents; returns whether any was missing. */
  ensureFolder(folder: string): Promise<boolean>;
  exists(path: string): Promise<boolean>;
  /**
   * Opens for reading and writing. `create` creates an empty file when it is missing; `replace`
   * empties it in any case.
   */
  open(path: string, mode: 'existing' | 'create' | 'replace'): Promise<DiskFile>;
  remove(path: string): Promise<void>;
  /** Replaces `to` when it exists. */
  rename(from: string, to: string): Promise<void>;
  /** Makes creations, renames and removals in a folder durable. */
  syncFolder(folder: string): Promise<void>;
  /**
   * Locks a folder for this process until it ends, in whatever way. Rejects with a `FolderInUse`
   * that names the owner.
   */
  lock(folder: string): Promise<FolderLock>;
}

/** A file for reading. */
export interface ReadableFile {
  readonly path: string;
  size(): Promise<number>;
  /** Up to `length` bytes from `position`; fewer at the end of the file, none after it. */
  read(position: number, length: number): Promise<Buffer>;
  close(): Promise<void>;
}

export interface DiskFile extends ReadableFile {
  /**
   * Writes bytes. The adapter may write them at once or on a thread, but keeps the order of calls,
   * and it may use `bytes` until the next `sync` has completed. An error is reported by the next
   * `sync`, or thrown here.
   */
  write(position: number, bytes: Uint8Array): void;
  /**
   * Grows the file to `size` with zero bytes, cheaply if possible; for preallocation. Errors as
   * with `write`.
   */
  extend(size: number): void;
  /**
   * Makes everything written so far durable, then calls back. After an error nothing written since
   * the last success can be trusted, and the caller must stop: a failed sync is never retried.
   */
  sync(done: (error: DiskError | undefined) => void): void;
  /** Cuts the file to `size` and makes that durable. */
  truncate(size: number): Promise<void>;
}

export interface FolderLock {
  release(): Promise<void>;
}

/**
 * A failed operation on the disk. Its message names the operation, the path and the system's code.
 */
export class DiskError extends Error {
  override readonly name = 'DiskError';
  /** The operating system's code: `ENOSPC`, `EIO`, `EACCES`, `ENOENT` ... */
  readonly code: string;
  readonly operation: string;
  readonly path: string;

  constructor(code: string, operation: string, path: string, cause?: unknown) {
    super(`${operation} ${path}: ${code}`, cause === undefined ? undefined : { cause });
    this.code = code;
    this.operation = operation;
    this.path = path;
  }
}

/** Another process has locked the folder. */
export class FolderInUse extends Error {
  override readonly name = 'FolderInUse';
}
