import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Inspector } from '@tskeeper/core';
import type { SessionId, Sid, Zxid } from '@tskeeper/protocol';
import { type Logger, VirtualDisk, startRuntime } from '@tskeeper/runtime';
import type { Server } from '@tskeeper/server';
import { FsDisk, startServerWith } from '@tskeeper/server/internal';
import type { ActivityTracker } from './activity-tracker.ts';
import type { EnsembleNetwork } from './ensemble-network.ts';
import { ProcessDisk } from './process-disk.ts';
import { ProcessNetwork } from './process-network.ts';
import { throttleProbe, ProcessClock, type TestClock } from './test-clock.ts';
import { FaultyNetwork } from './faulty-network.ts';

/**
 * State of a server in its ensemble. `looking`: it has no leader, and rejects clients. `stopped`:
 * it is not running.
 */
export type EnsembleRole = 'leader' | 'follower' | 'observer' | 'looking' | 'stopped';

/** The environment of an ensemble's servers. */
export interface EnsembleEnvironment {
  readonly ensembleNetwork: EnsembleNetwork;
  readonly clock: TestClock;
  readonly activity: ActivityTracker;
  readonly logger: Logger | undefined;
  /** A zoo.cfg, the same for all servers. */
  readonly configText: string;
  /** Waits until a started server serves clients, if it can. */
  waitUntilServing(server: TestPeer): Promise<void>;
  expireSession(session: SessionId): Promise<boolean>;
}

export interface TestPeerOptions {
  readonly environment: EnsembleEnvironment;
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
const peerMemoryFolder = '/memory';

/** One server of a `TestEnsemble`. */
export type EnsembleServer = Omit<TestPeer, 'startWithoutWaiting' | 'healClients' | 'endSession' | 'giveLeadTo' | 'close'>;

/** A server, with the operations that only its ensemble may call. */
export class TestPeer {
  /** `myid`: 1 or greater. */
  readonly sid: Sid;
  /** An observer has no vote and does not count for a quorum. */
  readonly isObserver: boolean;
  readonly #environment: EnsembleEnvironment;
  readonly #memory: VirtualDisk | undefined;
  readonly #dataDir: string;
  readonly #partitions = new Set<ClientPartition>();
  #process: ServerProcess | undefined;
  #port = 0;
  #failure: { readonly error: unknown } | undefined;
  #isClosed = false;

  constructor({ environment, sid, isObserver, dataDir }: TestPeerOptions) {
    this.#environment = environment;
    this.sid = sid;
    this.isObserver = isObserver;
    this.#memory = dataDir === undefined ? new VirtualDisk() : undefined;
    this.#dataDir = dataDir ?? peerMemoryFolder;
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
  get inspect(): Inspector {
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
    await this.startWithoutWaiting();
    await this.#environment.waitUntilServing(this);
  }

  /** Like `start`, but does not wait for a leader. */
  async startWithoutWaiting(): Promise<void> {
    if (this.#isClosed) throw new Error('this ensemble is closed; start another one with TestEnsemble.start()');
    if (this.#process !== undefined) throw new Error(`server ${this.sid} is already running`);
    const process = new ServerProcess(this.#environment, this.sid, this.#memory);
    this.#process = process;
    this.#failure = undefined;
    for (const partition of this.#partitions) process.partitions.add(partition);
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
      // The server validates an existing myid.
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
      const { ensembleNetwork } = this.#environment;
      for (const other of ensembleNetwork.machines)
        if (other !== this.sid) heals.push(ensembleNetwork.cut(this.sid, other), ensembleNetwork.cut(other, this.sid));
    }
    if (from !== 'servers') {
      const partition = new ClientPartition();
      this.#partitions.add(partition);
      this.#process?.partitions.add(partition);
      heals.push(() => {
        this.#partitions.delete(partition);
        partition.heal();
      });
    }
    return { [Symbol.dispose]: () => heals.splice(0).forEach((heal) => heal()) };
  }

  /** Ends the partition from clients. */
  healClients(): void {
    for (const partition of this.#partitions) partition.heal();
    this.#partitions.clear();
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
    return await this.#environment.expireSession(session);
  }

  /**
   * Closes a share of the client connections of this server, from 0 to 1, so that the clients connect
   * to other servers: in random order, each after the replies that it waits for. Their sessions live
   * on, except local ones, which end at another server. Resolves with the number of connections.
   * Rejects while the server is stopped.
   */
  async shedConnections(share: number): Promise<number> {
    return await this.#running.server!.shedConnections(share);
  }

  /** Gives the lead to another server. Resolves when that one leads. */
  async giveLeadTo(target: Sid | undefined): Promise<Sid> {
    const process = this.#running;
    return await Promise.race([process.server!.transferLeadership(target), process.ended]);
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
    await process.kill();
  }

  get #running(): ServerProcess {
    if (this.#process?.server === undefined) throw new Error(`server ${this.sid} is stopped`);
    return this.#process;
  }
}

/** A period in which no client reaches a server, across its processes. */
class ClientPartition {
  #heal: (() => void) | undefined;

  apply(network: FaultyNetwork): void {
    this.#heal = network.partition();
  }

  heal(): void {
    this.#heal?.();
    this.#heal = undefined;
  }
}

/** The silences of a server; a process joins them when it has its network. */
class ClientPartitions {
  readonly #beforeStart: ClientPartition[] = [];
  #network: FaultyNetwork | undefined;

  add(partition: ClientPartition): void {
    if (this.#network === undefined) this.#beforeStart.push(partition);
    else partition.apply(this.#network);
  }

  applyTo(network: FaultyNetwork): void {
    this.#network = network;
    for (const partition of this.#beforeStart.splice(0)) partition.apply(network);
  }
}

/** One run of a server, from its start to its end. */
class ServerProcess {
  readonly partitions = new ClientPartitions();
  /** Rejects when the process has ended. */
  readonly ended: Promise<never>;
  server: Server | undefined;
  network: ProcessNetwork | undefined;
  readonly #environment: EnsembleEnvironment;
  readonly #sid: Sid;
  readonly #clock: ProcessClock;
  readonly #disk: ProcessDisk;
  #faultyNetwork: FaultyNetwork | undefined;
  #rejectEnded!: (error: Error) => void;
  #killed: Promise<void> | undefined;

  constructor(environment: EnsembleEnvironment, sid: Sid, memory: VirtualDisk | undefined) {
    this.#environment = environment;
    this.#sid = sid;
    this.#clock = new ProcessClock(environment.clock);
    this.#disk = new ProcessDisk(memory ?? new FsDisk(), environment.activity);
    this.ended = new Promise((_resolve, reject) => {
      this.#rejectEnded = reject;
    });
    // Without a listener the rejection must not end the tests.
    this.ended.catch(() => undefined);
  }

  async start(dataDir: string, clientPort: number, failed: (error: unknown) => void): Promise<void> {
    const { ensembleNetwork, activity, configText, logger } = this.#environment;
    const peers = ensembleNetwork.startProcess(this.#sid);
    const options = { dataDir, clientPort, clientAddress: '127.0.0.1', logger: withServerName(logger, this.#sid) };
    const starting = startServerWith(startRuntime, options, {
      disk: this.#disk,
      clock: this.#clock,
      memory: throttleProbe,
      network: (real) => {
        this.#faultyNetwork = new FaultyNetwork(real);
        this.partitions.applyTo(this.#faultyNetwork);
        return (this.network = new ProcessNetwork(this.#faultyNetwork, peers, ensembleNetwork, activity));
      },
      config: { name: 'the config of this TestEnsemble', text: configText },
      ...(dataDir === peerMemoryFolder ? { readMyid: () => `${this.#sid}\n` } : {}),
    });
    try {
      const server = await Promise.race([starting, this.ended]);
      server.ended.catch(failed);
      this.server = server;
    } finally {
      peers.markStarted();
      activity.notifyChange();
      // Without a network it has not sent a packet yet.
      if (this.network === undefined) peers.kill();
    }
  }

  async close(): Promise<void> {
    // A server that is cut off would wait until clients have received their last replies.
    this.#faultyNetwork?.heal();
    await Promise.race([this.server?.close(), this.ended]).catch(() => undefined);
  }

  /** Further calls wait for the same end. */
  kill(): Promise<void> {
    return (this.#killed ??= this.#kill());
  }

  async #kill(): Promise<void> {
    this.#rejectEnded(new Error(`server ${this.#sid} has ended`));
    this.#clock.end();
    const closed = this.network?.kill();
    await Promise.all([closed, this.#disk.kill()]);
    this.#environment.activity.notifyChange();
  }
}

/** Prefixes each line with the server's number. */
function withServerName(logger: Logger | undefined, sid: Sid): Logger | undefined {
  if (logger === undefined) return undefined;
  const name = (message: string): string => `server ${sid}: ${message}`;
  return {
    debug: (message, fields) => logger.debug(name(message), fields),
    info: (message, fields) => logger.info(name(message), fields),
    warn: (message, fields) => logger.warn(name(message), fields),
    error: (message, fields) => logger.error(name(message), fields),
  };
}
