/**
 * The disk, as the runtime sees it. The real adapter sits in `server`; the memory one, which can crash, tear and fail, in `memory/`.
 *
 * Rare work (opening, renaming, reading at start-up, snapshots) returns promises. The one hot path, a log append followed by a sync, is
 * a plain call and a callback.
 */
export interface Disk {
  /** Whether `syncFolder` means something here. Where it does not, start-up says what is not promised. */
  readonly syncsFolders: boolean;
  /** Names in a folder, in no order; an empty list when the folder does not exist. */
  list(folder: string): Promise<string[]>;
  /** Makes the folder and its parents; returns whether anything had to be made. */
  ensureFolder(folder: string): Promise<boolean>;
  exists(path: string): Promise<boolean>;
  /** Opens for reading and writing. `create` makes it empty when missing; `replace` makes it empty in any case. */
  open(path: string, mode: 'existing' | 'create' | 'replace'): Promise<DiskFile>;
  remove(path: string): Promise<void>;
  /** Replaces `to` when it exists. */
  rename(from: string, to: string): Promise<void>;
  /** Makes creations, renames and removals in a folder durable. */
  syncFolder(folder: string): Promise<void>;
  /**
   * Claims a folder for this process until it ends, however it ends. Rejects with a `FolderInUse` that says who has it.
   */
  lock(folder: string): Promise<FolderLock>;
}

/** What it takes to look at a file. */
export interface ReadableFile {
  readonly path: string;
  size(): Promise<number>;
  /** Up to `length` bytes from `position`; fewer at the end of the file, none past it. */
  read(position: number, length: number): Promise<Buffer>;
  close(): Promise<void>;
}

export interface DiskFile extends ReadableFile {
  /**
   * Hands bytes to the file. The adapter may write them at once or on a thread, but keeps the order of calls, and it may hold on to
   * `bytes` until the next `sync` has completed. An error surfaces from the next `sync`, or is thrown here.
   */
  write(position: number, bytes: Uint8Array): void;
  /** Grows the file to `size` with zero bytes, cheaply if it can; for preallocation. Same error rule as `write`. */
  extend(size: number): void;
  /**
   * Makes everything written so far durable, then calls back. With an error, nothing written since the last success may be trusted
   * any more, and the caller must stop: a failed sync is never tried again.
   */
  sync(done: (error: DiskError | undefined) => void): void;
  /** Cuts the file to `size` and makes that durable. */
  truncate(size: number): Promise<void>;
}

export interface FolderLock {
  release(): Promise<void>;
}

/** An operation on the disk that failed. Messages built from it name the operation, the path and the system's code. */
export class DiskError extends Error {
  override readonly name = 'DiskError';
  /** The operating system's word: `ENOSPC`, `EIO`, `EACCES`, `ENOENT` ... */
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

/** Another process has the folder. */
export class FolderInUse extends Error {
  override readonly name = 'FolderInUse';
}
