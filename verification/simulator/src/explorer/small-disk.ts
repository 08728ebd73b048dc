/**
 * The disk of a server: the log, one snapshot, the two epoch files and the files of its
 * configuration. It carries out requests only when the explorer chooses so: those to the log in
 * order, those to the epoch files in order, and those to the files of the configuration in order,
 * independently of each other. A request that was not carried out is lost in a crash.
 *
 * As in the runtime, an epoch file that follows a configuration is written after that, and a txn
 * that follows one is reported as durable after that, although it may be on the disk before.
 */
import { type QuorumConfig, Reader, readTxn, type Zxid } from '@tskeeper/protocol';
import { type ChannelId, coreDefaults, type EpochName } from '@tskeeper/core';
import { type Fingerprint, Replica, replicaOptions, SnapshotLoader } from '@tskeeper/core/internal';
import type { NamedTxn } from './invariants.ts';
import { fixedRandom } from './server-settings.ts';
import { type ConfigFilesState, SmallConfigFiles } from './small-config-files.ts';

export interface StoredTxn extends NamedTxn {
  readonly bytes: Buffer;
}

interface Snapshot {
  readonly zxid: Zxid;
  readonly bytes: Buffer;
  /** The txns that it covers. */
  readonly txns: readonly StoredTxn[];
}

/** The content of a disk. */
export interface DiskState {
  readonly log: readonly StoredTxn[];
  readonly snapshot: Snapshot | undefined;
  readonly acceptedEpoch: number;
  readonly currentEpoch: number;
  readonly configs: ConfigFilesState;
}

type LogRequest =
  | { readonly kind: 'append'; readonly txn: StoredTxn }
  | { readonly kind: 'truncate'; readonly zxid: Zxid }
  | { readonly kind: 'install'; readonly snapshot: Snapshot }
  | { readonly kind: 'read'; readonly channel: ChannelId; readonly from: Zxid };

export interface FileRequest {
  readonly name: EpochName;
  readonly epoch: number;
  /** Number of requests to the files of the configuration that must be carried out before it. */
  configsBefore: number;
}

/** How much of what it was asked for a disk has carried out when its server crashes. */
export interface CrashDepth {
  readonly log: number;
  readonly epochs: number;
  readonly configs: number;
}

const treeOptions = replicaOptions(coreDefaults, fixedRandom);

export class SmallDisk {
  // The content.
  log: StoredTxn[] = [];
  snapshot: Snapshot | undefined;
  acceptedEpoch = 0;
  currentEpoch = 0;
  // The requests that it has not carried out.
  logQueue: LogRequest[] = [];
  fileQueue: FileRequest[] = [];
  readonly configs: SmallConfigFiles;
  /** The first txn that was appended while a configuration was not stored. */
  #heldAppend: LogRequest | undefined;

  /** `config`: what the operator has written, for empty disks. */
  constructor(state: DiskState | undefined, config: QuorumConfig) {
    this.configs = new SmallConfigFiles(state?.configs ?? { active: config, next: undefined });
    if (state === undefined) return;
    this.log = [...state.log];
    this.snapshot = state.snapshot;
    this.acceptedEpoch = state.acceptedEpoch;
    this.currentEpoch = state.currentEpoch;
  }

  get state(): DiskState {
    const { log, snapshot, acceptedEpoch, currentEpoch } = this;
    return { log: [...log], snapshot, acceptedEpoch, currentEpoch, configs: this.configs.state };
  }

  get durable(): readonly StoredTxn[] {
    return this.snapshot === undefined ? this.log : [...this.snapshot.txns, ...this.log];
  }

  /** Including what is being written. */
  get logged(): readonly StoredTxn[] {
    if (this.logQueue.length === 0) return this.durable;
    let txns = [...this.durable];
    for (const request of this.logQueue) {
      if (request.kind === 'append') txns.push(request.txn);
      else if (request.kind === 'truncate' && this.canTruncateTo(request.zxid)) txns = txns.filter(({ zxid }) => zxid <= request.zxid);
      else if (request.kind === 'install') txns = [...request.snapshot.txns];
    }
    return txns;
  }

  get lastZxid(): Zxid {
    return this.log.at(-1)?.zxid ?? this.snapshot?.zxid ?? 0;
  }

  /** Whether it has carried out every write. */
  get isWritten(): boolean {
    return this.fileQueue.length === 0 && this.configs.waiting === 0 && this.logQueue.every(({ kind }) => kind === 'read');
  }

  /** Whether a request waits that replaces files: nothing may be written until then. */
  get isRewriting(): boolean {
    return this.logQueue.some(({ kind }) => kind === 'truncate' || kind === 'install');
  }

  /** The state that the snapshot and the log lead to. */
  replay(): Replica {
    let replica = new Replica(treeOptions);
    if (this.snapshot !== undefined) {
      const { bytes, zxid } = this.snapshot;
      const loader = new SnapshotLoader(treeOptions, { itemBytesMax: Infinity });
      loader.feed(bytes);
      replica = new Replica(treeOptions, { snapshot: loader.finish(), zxid });
    }
    for (const { bytes } of this.log) {
      const { header, txn, digest } = readTxn(new Reader(Buffer.from(bytes)));
      replica.apply(header, txn, digest);
    }
    return replica;
  }

  /** The log, beginning with the last txn up to this zxid. */
  logFrom(zxid: Zxid): StoredTxn[] {
    const from = this.log.findLastIndex((txn) => txn.zxid <= zxid);
    return this.log.slice(Math.max(0, from));
  }

  // --- requests

  append(txn: StoredTxn): void {
    const request = { kind: 'append', txn } as const;
    if (this.configs.waiting > 0) this.#heldAppend ??= request;
    this.logQueue.push(request);
  }

  saveEpoch(name: EpochName, epoch: number): void {
    this.fileQueue.push({ name, epoch, configsBefore: this.configs.waiting });
  }

  /** Whether it can answer the oldest request to the log. */
  get canAnswerLog(): boolean {
    return this.logQueue.length > 0 && this.logQueue[0] !== this.#heldAppend;
  }

  /** Whether it can answer the oldest request to the epoch files. */
  get canAnswerEpoch(): boolean {
    return this.fileQueue[0]?.configsBefore === 0;
  }

  /** What may have been carried out, without an answer, when the server crashes. */
  *crashDepths(): Generator<CrashDepth> {
    // A read changes nothing on disk.
    const stored = this.logQueue.filter(({ kind }) => kind !== 'read').length;
    for (const [configs, done] of [0, ...[...this.configs.steps()].map((step) => step.done)].entries()) {
      const end = this.fileQueue.findIndex(({ configsBefore }) => configsBefore > done);
      for (let log = 0; log <= stored; log++)
        for (let epochs = 0; epochs <= (end === -1 ? this.fileQueue.length : end); epochs++) yield { log, epochs, configs };
    }
  }

  // --- carrying out requests

  /** Carries out the oldest request to the log. */
  storeNext(): LogRequest {
    const request = this.logQueue.shift()!;
    this.store(request);
    return request;
  }

  store(request: LogRequest): void {
    if (request.kind === 'append') {
      this.log.push(request.txn);
    } else if (request.kind === 'truncate' && this.canTruncateTo(request.zxid)) {
      this.log = this.log.filter(({ zxid }) => zxid <= request.zxid);
    } else if (request.kind === 'install') {
      this.snapshot = request.snapshot;
      this.log = [];
    }
  }

  /**
   * Whether the log can be truncated to this zxid: the txns that a snapshot covers cannot be
   * removed.
   */
  canTruncateTo(zxid: Zxid): boolean {
    return zxid >= (this.snapshot?.zxid ?? 0);
  }

  /** Carries out the oldest request to the files of the configuration. */
  storeNextConfig(): void {
    this.configs.storeNext();
    for (const request of this.fileQueue) request.configsBefore = Math.max(0, request.configsBefore - 1);
    if (this.configs.waiting === 0) this.#heldAppend = undefined;
  }

  dropRequests(): void {
    this.logQueue = [];
    this.fileQueue = [];
    this.#heldAppend = undefined;
  }

  fingerprint(to: Fingerprint): void {
    for (const number of [this.acceptedEpoch, this.currentEpoch]) to.number(number);
    to.number(this.snapshot?.zxid ?? -1);
    to.number(this.log.length);
    for (const { zxid, name } of this.log) {
      to.number(zxid);
      to.text(name);
    }
    to.number(this.logQueue.length);
    for (const request of this.logQueue) {
      to.text(request.kind);
      if (request.kind === 'append') to.number(request.txn.zxid);
      else if (request.kind === 'install') to.number(request.snapshot.zxid);
      else if (request.kind === 'truncate') to.number(request.zxid);
      else to.number(request.channel * 2 ** 40 + request.from);
    }
    to.number(this.fileQueue.length);
    for (const { name, epoch, configsBefore } of this.fileQueue) {
      to.text(name);
      to.number(epoch);
      to.number(configsBefore);
    }
    this.configs.fingerprint(to);
    to.number(this.#heldAppend === undefined ? -1 : this.logQueue.indexOf(this.#heldAppend));
  }
}
