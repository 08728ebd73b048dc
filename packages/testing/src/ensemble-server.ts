import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Inspect } from '@tskeeper/core';
import type { SessionId, Sid, Zxid } from '@tskeeper/protocol';
import { type Logger, MemoryDisk, startRuntime } from '@tskeeper/runtime';
import type { Server } from '@tskeeper/server';
import { FsDisk, startServerWith } from '@tskeeper/server/internal';
import type { Activity } from './activity.ts';
import type { PeerWire } from './peer-wire.ts';
import { ProcessDisk } from './process-disk.ts';
import { ProcessNetwork } from './process-network.ts';
import { inRealTime, ProcessClock, type TestClock } from './test-clock.ts';
import { TroubledNetwork } from './troubled-network.ts';

/**
 * State of a server in its ensemble. `looking`: it has no leader, and rejects clients. `stopped`:
 * it is not running.
 */
export type EnsembleRole = 'leader' | 'follower' | 'observer' | 'looking' | 'stopped';

/** The environment of an ensemble's servers. */
export interface Ground {
  readonly wire: PeerWire;
  readonly clock: TestClock;
  readonly activity: Activity;
  readonly logger: Logger | undefined;
  /** A zoo.cfg, the same for all servers. */
  readonly configText: string;
  /** Waits until a started server serves clients, if it can. */
  started(server: Member): Promise<void>;
  expireSession(session: SessionId): Promise<boolean>;
}

export interface MemberParts {
  readonly ground: Ground;
  readonly sid: Sid;
  readonly isObserver: boolean;
  /** undefined: in memory. */
  readonly dataDir: string | undefined;
}

/** What a server is cut off from. */
export interface PartitionOptions {
  /** Default: `everybody`, clients and servers. */
  readonly from?: 'clients' | 'servers' | 'everybody';
}

/** Name of the in-memory data folder in the server's log. */
const memoryFolder = '/memory';

/** One server of a `TestEnsemble`. */
export type EnsembleServer = Omit<Member, 'begin' | 'hearClients' | 'endSession' | 'close'>;

/** A server, with the operations that only its ensemble may call. */
export class Member {
  /** `myid`: 1 or greater. */
  readonly sid: Sid;
  /** An observer has no vote and does not count for a quorum. */
  readonly isObserver: boolean;
  readonly #ground: Ground;
  readonly #memory: MemoryDisk | undefined;
  readonly #dataDir: string;
  readonly #silences = new Set<Silence>();
  #process: ServerProcess | undefined;
  #port = 0;
  #failure: { readonly error: unknown } | undefined;
  #isClosed = false;

  constructor({ ground, sid, isObserver, dataDir }: MemberParts) {
    this.#ground = ground;
    this.sid = sid;
    this.isObserver = isObserver;
    this.#memory = dataDir === undefined ? new MemoryDisk() : undefined;
    this.#dataDir = dataDir ?? memoryFolder;
  }

  /**
   * Connect string for clients: `127.0.0.1:40123`. It stays the same while the server is stopped,
   * and after a restart.
   */
  get connectString(): string {
    return `127.0.0.1:${this.#port}`;
  }

  get port(): number {
    return this.#port;
  }

  get isRunning(): boolean {
    return this.#process?.server !== undefined;
  }

  get role(): EnsembleRole {
    const role = this.#process?.server?.inspect.role();
    return role === undefined ? 'stopped' : (role as EnsembleRole);
  }

  /** The last txn that the server has applied. Throws while it is stopped. */
  get lastZxid(): Zxid {
    return this.inspect.lastZxid();
  }

  /**
   * State of the server: sessions, connections, watches, znodes, zxids. Throws while it is stopped.
   */
  get inspect(): Inspect {
    return this.#running.server!.inspect;
  }

  /**
   * Why the server ended by itself, for example because of a full disk; undefined if it did not.
   * `start` clears it.
   */
  get failure(): { readonly error: unknown } | undefined {
    return this.#failure;
  }

  /**
   * Starts a stopped or killed server, on the same port, with its data. Resolves when clients can
   * connect; if the running servers that can reach each other form no quorum, it resolves without a
   * leader.
   */
  async start(): Promise<void> {
    await this.begin();
    await this.#ground.started(this);
  }

  /** Like `start`, but does not wait for a leader. */
  async begin(): Promise<void> {
    if (this.#isClosed) throw new Error('this ensemble is closed; start another one with TestEnsemble.start()');
    if (this.#process !== undefined) throw new Error(`server ${this.sid} is already running`);
    const process = new ServerProcess(this.#ground, this.sid, this.#memory);
    this.#process = process;
    this.#failure = undefined;
    for (const silence of this.#silences) process.silences.add(silence);
    try {
      if (this.#memory === undefined) await this.#writeMyid();
      await process.start(this.#dataDir, this.#port, (error) => this.#failed(process, error));
    } catch (error) {
      await this.#end(process);
      throw error;
    }
    this.#port = Number(process.server!.connectString.split(':').at(-1));
  }

  /** Writes myid as an operator does, so that any other server can start from the folder. */
  async #writeMyid(): Promise<void> {
    await mkdir(this.#dataDir, { recursive: true });
    await writeFile(join(this.#dataDir, 'myid'), `${this.sid}\n`, { flag: 'wx' }).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
      // The server judges an existing myid.
      await readFile(join(this.#dataDir, 'myid'));
    });
  }

  /**
   * Stops the server cleanly, as an operator does: connections are closed, and new ones are refused
   * until `start`. Sessions live on in the ensemble. Bytes held back by a partition from clients
   * are delivered first. Does nothing if it is already stopped.
   */
  async stop(): Promise<void> {
    const process = this.#process;
    if (process === undefined) return;
    try {
      await process.close();
    } finally {
      await this.#end(process);
    }
  }

  /** `stop` and `start`. */
  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  /**
   * Ends the server at once without notice to anyone, as SIGKILL does: its memory is lost, and what
   * it wrote to its disk is there at the next `start`. Connections are reset. Does nothing if it is
   * already stopped.
   */
  async kill(): Promise<void> {
    const process = this.#process;
    if (process !== undefined) await this.#end(process);
  }

  /**
   * Cuts the server off, by default from clients and from the other servers: until the result is
   * disposed of, or the ensemble's `heal` is called, no byte passes in either direction, and no
   * connection is closed. It also applies to a server that starts in the meantime.
   */
  partition({ from = 'everybody' }: PartitionOptions = {}): Disposable {
    const heals: (() => void)[] = [];
    if (from !== 'clients') {
      const { wire } = this.#ground;
      for (const other of wire.machines) if (other !== this.sid) heals.push(wire.cut(this.sid, other), wire.cut(other, this.sid));
    }
    if (from !== 'servers') {
      const silence = new Silence();
      this.#silences.add(silence);
      this.#process?.silences.add(silence);
      heals.push(() => {
        this.#silences.delete(silence);
        silence.heal();
      });
    }
    return { [Symbol.dispose]: () => heals.splice(0).forEach((heal) => heal()) };
  }

  /** Ends the partition from clients. */
  hearClients(): void {
    for (const silence of this.#silences) silence.heal();
    this.#silences.clear();
  }

  /**
   * Closes the connection of a session to this server, or all client connections; returns how many
   * there were. Clients may connect again at once.
   */
  cutConnections(session?: SessionId): number {
    const { network } = this.#running;
    if (session === undefined) return network!.cut();
    return network!.cut([...this.inspect.cnxns()].filter((cnxn) => cnxn.session === session).map(({ id }) => id));
  }

  /**
   * Expires a session as if its client had been silent for too long. The call can go to any server
   * of the ensemble; the leader expires the session. See `TestEnsemble.expireSession`.
   */
  async expireSession(session: SessionId): Promise<boolean> {
    if (!this.isRunning) throw new Error(`server ${this.sid} is stopped`);
    return await this.#ground.expireSession(session);
  }

  /** Expires the session as the leader. Resolves when the session is gone from this server. */
  async endSession(session: SessionId): Promise<boolean> {
    const process = this.#running;
    return await Promise.race([process.server!.expireSession(session), process.ended]);
  }

  /** Stops for good. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.stop();
  }

  #failed(process: ServerProcess, error: unknown): void {
    if (this.#process !== process) return;
    this.#failure = { error };
    // A failed process exits.
    void this.#end(process);
  }

  async #end(process: ServerProcess): Promise<void> {
    if (this.#process === process) this.#process = undefined;
    await process.die();
  }

  get #running(): ServerProcess {
    if (this.#process?.server === undefined) throw new Error(`server ${this.sid} is stopped`);
    return this.#process;
  }
}

/** A period in which no client reaches a server, across its processes. */
class Silence {
  #heal: (() => void) | undefined;

  over(network: TroubledNetwork): void {
    this.#heal = network.silence();
  }

  heal(): void {
    this.#heal?.();
    this.#heal = undefined;
  }
}

/** The silences of a server; a process joins them when it has its network. */
class Silences {
  readonly #early: Silence[] = [];
  #network: TroubledNetwork | undefined;

  add(silence: Silence): void {
    if (this.#network === undefined) this.#early.push(silence);
    else silence.over(this.#network);
  }

  begin(network: TroubledNetwork): void {
    this.#network = network;
    for (const silence of this.#early.splice(0)) silence.over(network);
  }
}

/** One run of a server, from its start to its end. */
class ServerProcess {
  readonly silences = new Silences();
  /** Rejects when the process has ended. */
  readonly ended: Promise<never>;
  server: Server | undefined;
  network: ProcessNetwork | undefined;
  readonly #ground: Ground;
  readonly #sid: Sid;
  readonly #clock: ProcessClock;
  readonly #disk: ProcessDisk;
  #troubled: TroubledNetwork | undefined;
  #isGone!: (error: Error) => void;
  #death: Promise<void> | undefined;

  constructor(ground: Ground, sid: Sid, memory: MemoryDisk | undefined) {
    this.#ground = ground;
    this.#sid = sid;
    this.#clock = new ProcessClock(ground.clock);
    this.#disk = new ProcessDisk(memory ?? new FsDisk(), ground.activity);
    this.ended = new Promise((_resolve, reject) => {
      this.#isGone = reject;
    });
    // Without a listener the rejection must not end the tests.
    this.ended.catch(() => undefined);
  }

  async start(dataDir: string, clientPort: number, failed: (error: unknown) => void): Promise<void> {
    const { wire, activity, configText, logger } = this.#ground;
    const peers = wire.begin(this.#sid);
    const options = { dataDir, clientPort, clientAddress: '127.0.0.1', logger: named(logger, this.#sid) };
    const starting = startServerWith(startRuntime, options, {
      disk: this.#disk,
      clock: this.#clock,
      memory: inRealTime,
      network: (real) => {
        this.#troubled = new TroubledNetwork(real);
        this.silences.begin(this.#troubled);
        return (this.network = new ProcessNetwork(this.#troubled, peers, wire, activity));
      },
      config: { name: 'the config of this TestEnsemble', text: configText },
      ...(dataDir === memoryFolder ? { readMyid: () => `${this.#sid}\n` } : {}),
    });
    try {
      const server = await Promise.race([starting, this.ended]);
      server.ended.catch(failed);
      this.server = server;
    } finally {
      peers.started();
      activity.happened();
      // Without a network it has not sent a packet yet.
      if (this.network === undefined) peers.die();
    }
  }

  async close(): Promise<void> {
    // A server that is cut off would wait until clients have received their last replies.
    this.#troubled?.heal();
    await Promise.race([this.server?.close(), this.ended]).catch(() => undefined);
  }

  /** Further calls wait for the same end. */
  die(): Promise<void> {
    return (this.#death ??= this.#die());
  }

  async #die(): Promise<void> {
    this.#isGone(new Error(`server ${this.#sid} has ended`));
    this.#clock.end();
    const closed = this.network?.die();
    await Promise.all([closed, this.#disk.die()]);
    this.#ground.activity.happened();
  }
}

/** Prefixes each line with the server's number. */
function named(logger: Logger | undefined, sid: Sid): Logger | undefined {
  if (logger === undefined) return undefined;
  const name = (message: string): string => `server ${sid}: ${message}`;
  return {
    debug: (message, fields) => logger.debug(name(message), fields),
    info: (message, fields) => logger.info(name(message), fields),
    warn: (message, fields) => logger.warn(name(message), fields),
    error: (message, fields) => logger.error(name(message), fields),
  };
}
