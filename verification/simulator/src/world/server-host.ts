/**
 * A machine that runs a server: a disk, an address, a wall clock. The production server is started,
 * paused, stopped, killed and deprived of power any number of times. Faults affect a machine, or
 * the link between two.
 */
import type { CoreOptions, Inspector } from '@tskeeper/core';
import { formatQuorumConfig, parseQuorumConfig, type Millis, type QuorumConfig, type Sid, type Zxid } from '@tskeeper/protocol';
import {
  type CrashChoice,
  type DiskCall,
  type LogFields,
  type Logger,
  type EnsembleOptions,
  loseAll,
  VirtualDisk,
  type MemoryUse,
  numberedFiles,
  type RuntimeOptions,
  SeededRandom,
  type SnappyCodec,
} from '@tskeeper/runtime';
import { decodeMark, installNoteName, type VirtualWire } from '@tskeeper/runtime/internal';
import { peerRecorder, stepRecorder } from '../record/peer-recorder.ts';
import { type PeerClaim, PeerClaims } from '../record/peer-claims.ts';
import { newProcessRecord, type Recording } from '../record/recording.ts';
import { hasUnnamedDynamicFile, loseConfigFolder, storedConfigs, withStoredConfig, writeOperatorConfig } from './config-folder.ts';
import { otherServerPort, serverPort } from '../clients/client-world.ts';
import { clientAddressIn } from '../clients/member-line.ts';
import { peerPortKind } from './peer-ports.ts';
import { ServerProcess } from './server-process.ts';
import { type MachineClock, type VirtualClock, wallOffsetMs } from './virtual-clock.ts';

/** A file without and with the damage; `damaged` is undefined if the file is missing. */
interface Damage {
  readonly original: Buffer;
  readonly damaged: Buffer | undefined;
}

export type PeerRole = ReturnType<Inspector['role']>;

export interface ServerHostOptions {
  readonly name: string;
  /** Part of its addresses; each process of the server has the next one. */
  readonly number: number;
  readonly clock: VirtualClock;
  readonly wire: VirtualWire;
  readonly random: SeededRandom;
  readonly core: CoreOptions;
  readonly options: RuntimeOptions;
  /** Of a server in an ensemble. */
  readonly ensembleOptions: EnsembleOptions | undefined;
  /** What the oracle of the ensemble answers at present; undefined if there is none. */
  readonly oracle: (() => boolean) | undefined;
  readonly snappy: SnappyCodec | undefined;
  /** Whether it knows how much memory it may use and does use. */
  readonly knowsMemory: boolean;
  /** Whether a reconfiguration may give it another client port. */
  readonly movesClientPorts: boolean;
  readonly recording: Recording;
  /** Lets time pass until a promise is settled. */
  until<T>(promise: Promise<T>, atMostMs: Millis): Promise<T>;
  run(ms: Millis): Promise<void>;
  /** Called when the server has a new address. */
  booted(name: string, address: string): void;
}

/** Maximum time of a start or stop, whatever the disk is like. */
const startMaxMs = 120_000;
/**
 * Wall clocks differ by more than the length of any run, so a wall-clock time identifies the clock
 * and the moment.
 */
const wallClocksApartMs = 3_600_000;
/** So large that only options bound what is held for clients. */
const memoryBytes = 2 ** 40;
/** Different from the addresses of clients. */
const serverNet = 100;

/** The line of a server decides where it listens for clients, as in the server package. */
function clientEndpointOf({ servers }: QuorumConfig, sid: Sid): Partial<RuntimeOptions> {
  const { host, port } = servers.get(sid)?.clientAddress ?? {};
  return port === undefined ? {} : { clientPort: port, clientPortAddress: host === '0.0.0.0' ? undefined : host };
}

export class ServerHost implements MachineClock {
  readonly name: string;
  readonly disk = new VirtualDisk();
  readonly core: CoreOptions;
  readonly options: RuntimeOptions;
  /** The server's log lines. */
  readonly logLines: string[] = [];
  /** The event of each line, with its fields. */
  readonly logEvents: LogFields[] = [];
  /** Content of files that a serving server has removed: purged logs and snapshots are evidence. */
  readonly removedFiles = new Map<string, Buffer>();
  /**
   * Logs that no longer count, because the server received another history or lost its disk: some
   * of their txns may be nowhere else.
   */
  readonly supersededLogs: Buffer[] = [];
  /** By path: files that were damaged at rest and not yet repaired. */
  readonly #damaged = new Map<string, Damage>();
  /** Paths of logs that still exist although a process of this machine has removed their mark. */
  readonly #unmarked = new Set<string>();
  /** Damage of files that were removed since; a power loss may bring one back. */
  readonly #damagedRemoved = new Map<string, Damage>();
  process: ServerProcess | undefined;
  wallOffsetMs: Millis;
  bootedMs: Millis = 0;
  /** How long a turn of the server takes. */
  turnMs: () => Millis = () => 0;
  /** The share of its memory that it uses. */
  memoryShare: () => number = () => 0;
  /** How long the disk takes for a call. */
  diskDelayMs: (call: DiskCall) => Millis = () => 0;
  /** Its id in the ensemble. */
  get sid(): Sid {
    return this.#ensembleOptions?.zab.sid ?? 1;
  }

  /** The ensemble options for its next start. */
  get ensembleOptions(): EnsembleOptions | undefined {
    return this.#ensembleOptions;
  }

  /** The ensemble's configuration. */
  get quorum(): QuorumConfig | undefined {
    return this.#ensembleOptions?.quorum;
  }

  get isVoter(): boolean {
    return this.quorum?.servers.get(this.sid)?.role !== 'observer';
  }

  /** The current role of its server; undefined while it is down or starts. */
  get role(): PeerRole | undefined {
    return this.process?.runtime?.inspect.role();
  }

  /** Whether its configuration is in files that the server rewrites. */
  get isReconfigured(): boolean {
    return this.core.reconfigEnabled && this.#ensembleOptions !== undefined;
  }

  /** The active configuration of its server; undefined while it is down or starts. */
  get configText(): string | undefined {
    return this.process?.runtime?.inspect.ensemble()?.configText;
  }

  /** See `ClientServer.clientPorts`. */
  get clientPorts(): readonly number[] | undefined {
    if (!this.#parts.movesClientPorts) return undefined;
    const { port = serverPort } = clientAddressIn(this.configText ?? '', this.sid) ?? {};
    return port === serverPort ? [serverPort, otherServerPort] : [otherServerPort, serverPort];
  }

  /** Returns the active configuration, if it may change, and notes the pending one. */
  #noteConfig(): string | undefined {
    if (!this.isReconfigured) return undefined;
    const status = this.process?.runtime?.inspect.ensemble();
    if (status !== undefined) this.#pendingConfigText = status.pendingConfigText;
    return status?.configText;
  }

  /**
   * Every configuration that its server uses, or would use after a start now: active ones, and those
   * that may become active, of which one may be in its log only.
   */
  get knownConfigTexts(): readonly string[] {
    if (!this.isReconfigured) return [];
    writeOperatorConfig(this.disk, this.#ensembleOptions!.quorum);
    const { active, next } = storedConfigs(this.disk);
    const stored = next === undefined ? [active] : [active, next];
    const known = [...stored.map(formatQuorumConfig), this.#noteConfig(), this.#pendingConfigText];
    return known.filter((text) => text !== undefined);
  }

  /** The operator writes another configuration for the next start. */
  writeConfig(text: string): void {
    loseConfigFolder(this.disk);
    writeOperatorConfig(this.disk, { ...parseQuorumConfig(text), version: 0 });
  }

  /** The files of the configuration are lost: the next start uses what the operator wrote first. */
  loseConfigFiles(): void {
    loseConfigFolder(this.disk);
    if (this.isReconfigured) withStoredConfig(this.#ensembleOptions!, this.#parts.oracle !== undefined, this.disk);
  }

  /** The last txn that its server has applied; 0 while it is down, or starts. */
  get lastZxid(): Zxid {
    return this.process?.runtime?.inspect.lastZxid() ?? 0;
  }

  /** Whether its process is alive but paused. */
  get isPaused(): boolean {
    return this.process !== undefined && this.process.pausedUntilMs > this.#parts.clock.elapsedMs;
  }

  /** Called when the server reports a fatal error. */
  onFailure: (error: unknown) => void = () => undefined;
  /** Called with what its server sends: see `ServerProcessOptions.sent`. */
  onSent: ((cnxn: number, port: number, bytes: Buffer) => void) | undefined;
  readonly #parts: ServerHostOptions;
  #ensembleOptions: EnsembleOptions | undefined;
  #lives = 0;
  /** The one that its server noted last, also if it is down now. */
  #pendingConfigText: string | undefined;
  /**
   * It removed files while it neither led nor learned, and has not yet reported that another
   * history replaces them.
   */
  #mayBeReplacing = false;
  /**
   * Its last process, if that lost power with the machine: its connections break when the machine
   * returns.
   */
  #poweredOffProcess: ServerProcess | undefined;

  constructor(parts: ServerHostOptions) {
    this.#parts = parts;
    this.#ensembleOptions = parts.ensembleOptions;
    const { name, core, options, clock, number } = parts;
    this.name = name;
    this.core = core;
    this.options = options;
    this.wallOffsetMs = wallOffsetMs + number * wallClocksApartMs;
    this.#noteWallClock();
    this.disk.schedule = (call, complete) => {
      if (call.operation === 'rename' && call.path === `${this.snapshotFolder}/currentEpoch.tmp`) this.#recordEpochSave(call.path);
      clock.at(clock.elapsedMs + this.diskDelayMs(call), call.operation, this.process, complete);
    };
  }

  get snapshotFolder(): string {
    return `${this.options.dataDir}/version-2`;
  }

  get logFolder(): string {
    return `${this.options.dataLogDir}/version-2`;
  }

  /**
   * Logs that the server has kept without a mark: damage at their ends would pass for a torn tail.
   * A mark that does not fit its log is removed, and the server logs that.
   */
  get unmarkedLogs(): readonly string[] {
    return [...this.#unmarked].filter(
      (path) => !this.logLines.some((line) => line.startsWith(`warn ${path} `) && line.endsWith('the mark is ignored')),
    );
  }

  /** The address of its current process; undefined if there is none. */
  get address(): string | undefined {
    return this.process?.address;
  }

  /** Sets another configuration, right or wrong, for the next start. */
  configure(member: EnsembleOptions): void {
    this.#ensembleOptions = member;
  }

  #memoryUse(): MemoryUse {
    return {
      what: 'the memory of the machine',
      usedBytes: this.memoryShare() * memoryBytes,
      limitBytes: memoryBytes,
      remedy: 'Give it more.',
      holdsTree: false,
      slackBytes: 0,
      reserveBytes: 0,
    };
  }

  // --- Life cycle

  /** Starts the server; `started` of the process resolves when it serves. */
  boot(): ServerProcess {
    const { clock, wire, random, core, options, snappy, knowsMemory, recording, number } = this.#parts;
    const ensembleOptions =
      this.isReconfigured && this.#ensembleOptions !== undefined
        ? withStoredConfig(this.#ensembleOptions, this.#parts.oracle !== undefined, this.disk)
        : this.#ensembleOptions;
    if (ensembleOptions?.lastSeen !== undefined) this.#annotate('next configuration at a start');
    if (this.isReconfigured && hasUnnamedDynamicFile(this.disk)) this.#annotate('dynamic file without zoo.cfg');
    const record = newProcessRecord(this.name, clock.elapsedMs);
    recording.processes.push(record);
    this.#lives++;
    this.#poweredOffProcess?.resetCnxns();
    this.#poweredOffProcess = undefined;
    const witness =
      ensembleOptions === undefined
        ? stepRecorder(recording, clock, this.name)
        : peerRecorder(
            recording,
            clock,
            this.name,
            (by, zxid) => this.#supersede(by, zxid),
            () => this.#noteConfig(),
          );
    const words = new PeerClaims(this.sid, (word) => this.#recordClaim(word));
    const log = (level: string) => (message: string, fields: LogFields) => {
      this.logLines.push(`${level} ${message}`);
      this.logEvents.push(fields);
      if (fields.event === 'server.no-log') recording.peerEvents.push({ atMs: clock.elapsedMs, server: this.name, kind: 'keepsNoLog' });
    };
    const logger: Logger = { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') };
    this.process = new ServerProcess({
      clock,
      machine: this,
      disk: this.#recordingDisk(),
      network: wire.stack(`10.${serverNet + number}.${this.#lives >> 8}.${this.#lives & 255}`),
      random: new SeededRandom(random.uint32()),
      core,
      options: ensembleOptions === undefined ? options : { ...options, ...clientEndpointOf(ensembleOptions.quorum, this.sid) },
      ensembleOptions,
      oracle: this.#parts.oracle,
      logger,
      snappy,
      memory: knowsMemory ? () => [this.#memoryUse()] : undefined,
      record,
      observer: witness,
      arrived: (cnxn, atMs) => {
        if (recording.endedCnxns.has(cnxn)) return;
        const known = recording.frameArrivals.get(cnxn);
        if (known === undefined) recording.frameArrivals.set(cnxn, [atMs]);
        else known.push(atMs);
      },
      arrivedInPart: (cnxn, atMs) => {
        if (recording.endedCnxns.has(cnxn)) return;
        const known = recording.partialArrivals.get(cnxn);
        if (known === undefined) recording.partialArrivals.set(cnxn, [atMs]);
        else known.push(atMs);
      },
      sent: (cnxn, port, bytes) => {
        const kind = peerPortKind(port);
        if (kind !== undefined) words.sent(cnxn, kind, bytes);
        this.onSent?.(cnxn, port, bytes);
      },
      isBlocked: (network, stream) => {
        for (const { backward } of wire.cnxns) {
          if (backward.from.stack === network && backward.from.stream === stream) return backward.isBlocked;
        }
        return false;
      },
      failed: (error) => this.onFailure(error),
    });
    this.#parts.booted(this.name, this.process.address);
    if (ensembleOptions !== undefined) void this.#recordStart(this.process);
    return this.process;
  }

  #annotate(text: string): void {
    this.#parts.recording.annotations.push({ atMs: this.#parts.clock.elapsedMs, text });
  }

  /** Starts the server and waits until it serves; throws its error if it does not. */
  async start(): Promise<ServerProcess> {
    const process = this.boot();
    const error = await this.#parts.until(process.started, startMaxMs);
    if (error !== undefined) throw error;
    return process;
  }

  /** Stops the server as an operator does. */
  async stop(): Promise<void> {
    const { process } = this;
    if (process?.runtime === undefined) return;
    await this.#parts.until(process.close(), startMaxMs);
    // The last bytes have left the process by now, and reach clients before the machine resets
    // their connections.
    await this.#parts.run(5);
    this.#processEnded();
  }

  /** The process ends without warning; what it has written stays in the page cache. */
  kill(): void {
    this.#processEnded();
    this.disk.kill();
    this.#recordEpochFiles();
  }

  /**
   * The machine loses power silently; `choice` says what survives of unsynced data. Its monotonic
   * clock starts again.
   */
  losePower(choice: CrashChoice): void {
    this.#poweredOffProcess = this.process ?? this.#poweredOffProcess;
    this.#processEnded(true);
    this.disk.crash(choice);
    this.#recordEpochFiles();
    this.bootedMs = this.#parts.clock.elapsedMs;
  }

  /** Sets the wall clock; sessions must not be affected. */
  setWallClock(offsetMs: Millis): void {
    this.wallOffsetMs = offsetMs;
    this.#noteWallClock();
  }

  #noteWallClock(): void {
    const { recording, clock } = this.#parts;
    recording.wallClocks.push({ server: this.name, fromMs: clock.elapsedMs, offsetMs: this.wallOffsetMs });
  }

  #processEnded(isDark = false): void {
    if (this.process === undefined) return;
    // The process ended between removing a mark and removing its log.
    if (this.role === 'looking' || this.role === undefined) this.#unmarked.clear();
    this.process.end(isDark);
    this.process = undefined;
    // How far the server had got is unknown, and what it removed may belong to another history than
    // the rest.
    if (this.#mayBeReplacing) this.#supersede('snap', 0);
    const { recording, clock } = this.#parts;
    if (this.#ensembleOptions !== undefined) recording.peerEvents.push({ atMs: clock.elapsedMs, server: this.name, kind: 'processGone' });
  }

  /** The disk as the process sees it; content that it removes or takes back is kept. */
  #recordingDisk(): ReturnType<VirtualDisk['attach']> {
    const disk = this.disk.attach();
    return {
      ...disk,
      open: async (path, mode) => {
        const file = await disk.open(path, mode);
        const truncate = file.truncate.bind(file);
        return Object.assign(file, {
          truncate: async (size: number) => {
            // A TRUNC of the leader: the txns that it takes back may be nowhere else.
            const isTakenBack = this.process?.isServing === true && this.role === 'looking' && path.startsWith(`${this.logFolder}/log.`);
            if (isTakenBack && this.disk.files().includes(path)) this.supersededLogs.push(this.#undamaged(path));
            await truncate(size);
          },
        });
      },
      remove: async (path) => {
        // A start completes an interrupted installation: a leader's snapshot replaces all of this.
        const endsInstall = this.process?.isServing !== true && this.disk.files().includes(`${this.snapshotFolder}/${installNoteName}`);
        const isEvidence =
          (this.process?.isServing === true || endsInstall) &&
          /\/(?:log|snapshot)\.[0-9a-f]+(?:\.[a-z]+)?$/.test(path) &&
          this.disk.files().includes(path);
        const bytes = isEvidence ? this.#undamaged(path) : undefined;
        await disk.remove(path);
        this.#trackSyncedMark(path);
        const damage = this.#damaged.get(path);
        if (damage !== undefined) this.#damagedRemoved.set(path, damage);
        this.#damaged.delete(path);
        if (bytes === undefined) return;
        if (endsInstall) {
          if (path.startsWith(`${this.logFolder}/log.`)) this.supersededLogs.push(bytes);
          return;
        }
        this.removedFiles.set(path, bytes);
        this.#mayBeReplacing ||= this.#ensembleOptions !== undefined && this.role === 'looking' && !this.#isPurged(path);
      },
    };
  }

  /** A mark is removed before its log if both are replaced, and after it if the log is purged. */
  #trackSyncedMark(removed: string): void {
    const [, zxid] = new RegExp(`^${this.logFolder}/synced\\.([0-9a-f]+)$`).exec(removed) ?? [];
    const log = `${this.logFolder}/log.${zxid}`;
    if (zxid !== undefined && this.disk.files().includes(log)) this.#unmarked.add(log);
    this.#unmarked.delete(removed);
  }

  /**
   * Purging removes the oldest files and leaves a log and three snapshots. Replacing a history
   * removes the newest first.
   */
  #isPurged(path: string): boolean {
    const [, prefix, zxid] = /^(.*\/(?:log|snapshot)\.)([0-9a-f]+)/.exec(path)!;
    const left = this.disk
      .files()
      .flatMap((other) => (other.startsWith(prefix!) ? [Number.parseInt(other.slice(prefix!.length), 16)] : []));
    return left.length >= (prefix!.endsWith('/log.') ? 1 : 3) && left.every((other) => other > Number.parseInt(zxid!, 16));
  }

  /** A copy of the disk after a power loss now that loses everything unsynced. */
  durableDisk(): VirtualDisk {
    const disk = new VirtualDisk();
    disk.restore(this.disk.capture(), loseAll);
    return disk;
  }

  #recordEpochFiles(): void {
    const { recording, clock } = this.#parts;
    if (this.#ensembleOptions === undefined) return;
    recording.peerEvents.push({
      atMs: clock.elapsedMs,
      server: this.name,
      kind: 'epochFiles',
      ...this.#epochsOn(this.disk),
      durable: this.#epochsOn(this.durableDisk()),
      reached: this.#lastVouchedZxid(),
    });
  }

  async #recordStart(process: ServerProcess): Promise<void> {
    if ((await process.started) !== undefined || this.process !== process) return;
    const { recording, clock } = this.#parts;
    const zxid = process.runtime?.inspect.lastZxid() ?? 0;
    recording.peerEvents.push({ atMs: clock.elapsedMs, server: this.name, kind: 'started', zxid });
  }

  /** The server is about to change its currentEpoch. */
  #recordEpochSave(path: string): void {
    const { recording, clock } = this.#parts;
    const current = Number(this.disk.contents(path).toString('latin1'));
    recording.peerEvents.push({ atMs: clock.elapsedMs, server: this.name, kind: 'savesEpoch', current, reached: this.#lastVouchedZxid() });
  }

  #recordClaim(word: PeerClaim): void {
    const { recording, clock } = this.#parts;
    const durable = this.#epochsOn(this.durableDisk());
    recording.peerEvents.push({ atMs: clock.elapsedMs, server: this.name, kind: 'claims', ...word, durable });
  }

  #epochsOn(disk: VirtualDisk): { accepted: number | undefined; current: number | undefined } {
    const numberIn = (name: string): number | undefined => {
      const path = `${this.snapshotFolder}/${name}`;
      const bytes = disk.files().includes(path) ? this.#undamaged(path, disk.contents(path)) : this.#damaged.get(path)?.original;
      return bytes === undefined ? undefined : Number(bytes.toString('latin1'));
    };
    return { accepted: numberIn('acceptedEpoch'), current: numberIn('currentEpoch') };
  }

  /**
   * The last txn that the name of a snapshot or the mark of a log guarantees. A start makes durable
   * what it has found, and records that there.
   */
  #lastVouchedZxid(): Zxid | undefined {
    const zxids = this.disk.files().flatMap((path) => {
      const [, folder, prefix] = /^(.*)\/(snapshot|synced)\.[^/]*$/.exec(path) ?? [];
      if (prefix === 'synced' && folder === this.logFolder) return decodeMark(this.disk.contents(path))?.lastZxid ?? [];
      return prefix === 'snapshot' && folder === this.snapshotFolder ? numberedFiles([path.slice(folder.length + 1)], prefix)[0]!.zxid : [];
    });
    return zxids.length === 0 ? undefined : Math.max(...zxids);
  }

  /** Another history has replaced what was removed. */
  #supersede(by: 'trunc' | 'snap', zxid: Zxid): void {
    this.#mayBeReplacing = false;
    for (const [path, bytes] of this.removedFiles) {
      const number = Number.parseInt(/[.]([0-9a-f]+)(?:[.][a-z]+)?$/.exec(path)![1]!, 16);
      if (by === 'trunc' && number <= zxid) continue;
      this.removedFiles.delete(path);
      if (path.startsWith(`${this.logFolder}/log.`)) this.supersededLogs.push(bytes);
    }
  }

  /** Replaces the disk by an empty one; the process that used it is gone. */
  wipe(): void {
    for (const [path, bytes] of this.removedFiles) if (path.startsWith(`${this.logFolder}/log.`)) this.supersededLogs.push(bytes);
    this.removedFiles.clear();
    for (const path of this.disk.files()) {
      if (path.startsWith(`${this.logFolder}/log.`)) this.supersededLogs.push(this.#undamaged(path));
    }
    this.#damaged.clear();
    this.#damagedRemoved.clear();
    // Not file by file: a power loss must bring nothing of the old disk back, neither an unsynced
    // name nor an undone removal.
    this.disk.restore(new VirtualDisk().capture());
    const { recording, clock } = this.#parts;
    recording.peerEvents.push({ atMs: clock.elapsedMs, server: this.name, kind: 'wiped' });
  }

  /** Every log or snapshot that existed and was not lost, whether it still exists or not. */
  evidence(prefix: 'log' | 'snapshot'): Map<string, Buffer> {
    const folder = prefix === 'log' ? this.logFolder : this.snapshotFolder;
    const pattern = new RegExp(`^${prefix}\\.[0-9a-f]+(?:\\.[a-z]+)?$`);
    const found = new Map<string, Buffer>();
    const add = (path: string, bytes: Buffer) => {
      const name = path.slice(folder.length + 1);
      if (path.startsWith(`${folder}/`) && pattern.test(name)) found.set(name, bytes);
    };
    for (const [path, bytes] of this.removedFiles) add(path, bytes);
    for (const path of this.disk.files()) add(path, this.#undamaged(path));
    return found;
  }

  // --- Damage at rest

  /** Whether a file is damaged. */
  get isDamaged(): boolean {
    return this.#damaged.size > 0;
  }

  isDamagedAt(path: string): boolean {
    return this.#damaged.has(path);
  }

  /**
   * Damages a file that is not in use, or removes it (`undefined`). Its old content remains
   * evidence.
   */
  damage(path: string, damaged: Buffer | undefined): void {
    const original = this.#damaged.get(path)?.original ?? this.disk.contents(path);
    this.#damaged.set(path, { original, damaged });
    if (damaged !== undefined) {
      this.disk.putFile(path, damaged);
      return;
    }
    this.disk.eraseFile(path);
    if (path.startsWith(`${this.logFolder}/log.`)) this.removedFiles.set(path, original);
  }

  /** The files without the damage, except those of a history that no longer counts. */
  undamagedFiles(): Map<string, Buffer> {
    const files = new Map(this.disk.files().map((path) => [path, this.#undamaged(path)]));
    for (const [path, { original, damaged }] of this.#damaged) {
      const counts = !path.startsWith(`${this.logFolder}/log.`) || this.removedFiles.has(path);
      if (damaged === undefined && !files.has(path) && counts) files.set(path, original);
    }
    return files;
  }

  /** An operator restores damaged files from a backup. */
  repair(): void {
    for (const [path, bytes] of this.undamagedFiles()) {
      if (!this.#damaged.has(path)) continue;
      this.disk.putFile(path, bytes);
      this.removedFiles.delete(path);
    }
    this.#damaged.clear();
  }

  /** The content of a file without the damage; it may have been truncated since. */
  #undamaged(path: string, bytes = this.disk.contents(path)): Buffer {
    const { original, damaged } = this.#damaged.get(path) ?? this.#damagedRemoved.get(path) ?? {};
    if (original === undefined || damaged === undefined) return bytes;
    if (bytes.equals(damaged)) return original;
    return damaged.length === original.length && bytes.equals(damaged.subarray(0, bytes.length))
      ? original.subarray(0, bytes.length)
      : bytes;
  }
}
