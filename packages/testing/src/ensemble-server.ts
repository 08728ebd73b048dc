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

/** What a server does in its ensemble. `looking`: it has no leader, and turns clients away. `stopped`: it is not running. */
export type EnsembleRole = 'leader' | 'follower' | 'observer' | 'looking' | 'stopped';

/** Where an ensemble's servers live. */
export interface Ground {
  readonly wire: PeerWire;
  readonly clock: TestClock;
  readonly activity: Activity;
  readonly logger: Logger | undefined;
  /** A zoo.cfg, the same for all. */
  readonly configText: string;
  /** Waits until a server that has been started serves, if it can. */
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

/** From whom a server is cut off. */
export interface PartitionOptions {
  /** Default: `everybody`, clients and servers. */
  readonly from?: 'clients' | 'servers' | 'everybody';
}

/** What a server's memory is called by its own log. */
const memoryFolder = '/memory';

/** One server of a `TestEnsemble`. */
export type EnsembleServer = Omit<Member, 'begin' | 'hearClients' | 'endSession' | 'close'>;

/** A server, with what only its ensemble may do to it. */
export class Member {
  /** `myid`: from 1 on. */
  readonly sid: Sid;
  /** An observer has no vote, and is never needed for a quorum. */
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

  /** What a client connects to: `127.0.0.1:40123`. The same while the server is stopped, and after it has started again. */
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

  /** The last txn that it has applied. Throws while it is stopped. */
  get lastZxid(): Zxid {
    return this.inspect.lastZxid();
  }

  /** What the server knows of itself: sessions, connections, watches, znodes, zxids. Throws while it is stopped. */
  get inspect(): Inspect {
    return this.#running.server!.inspect;
  }

  /** Why it has ended by itself, as by a disk that is full; undefined when it has not. Forgotten by `start`. */
  get failure(): { readonly error: unknown } | undefined {
    return this.#failure;
  }

  /**
   * Starts a server that was stopped or killed, on the same port, with the data it had. Resolves when clients can connect; where too few servers are
   * running, or can hear each other, for there to be a leader, it resolves without.
   */
  async start(): Promise<void> {
    await this.begin();
    await this.#ground.started(this);
  }

  /** As `start`, and waits for no leader. */
  async begin(): Promise<void> {
    if (this.#isClosed) throw new Error('this ensemble has been closed; start another with TestEnsemble.start()');
    if (this.#process !== undefined) throw new Error(`server ${this.sid} is running already`);
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

  /** As an operator does, so that any other server takes the folder up from here. */
  async #writeMyid(): Promise<void> {
    await mkdir(this.#dataDir, { recursive: true });
    await writeFile(join(this.#dataDir, 'myid'), `${this.sid}\n`, { flag: 'wx' }).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
      // What stands there is for the server to judge.
      await readFile(join(this.#dataDir, 'myid'));
    });
  }

  /**
   * Stops serving in good order, as at an operator's word: connections end, and new ones are refused until `start`. Sessions live on with the
   * ensemble. What a partition from clients has held back gets through first. Does nothing when it is stopped already.
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
   * Ends the server at once, without a word to anybody, as SIGKILL does: whatever it had in memory is lost, and what it has written to its disk
   * is there at the next `start`. Connections are reset. Does nothing when it is stopped already.
   */
  async kill(): Promise<void> {
    const process = this.#process;
    if (process !== undefined) await this.#end(process);
  }

  /**
   * Cuts the server off, from clients and the other servers unless told otherwise: until the result is disposed of, or the ensemble's `heal` is
   * called, no byte gets through in either direction, and nobody is told. A server that is started meanwhile is cut off too.
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

  /** Clients get through again. */
  hearClients(): void {
    for (const silence of this.#silences) silence.heal();
    this.#silences.clear();
  }

  /** Cuts the connection of a session to this server, or of all; returns how many there were. Clients may connect again at once. */
  cutConnections(session?: SessionId): number {
    const { network } = this.#running;
    if (session === undefined) return network!.cut();
    return network!.cut([...this.inspect.cnxns()].filter((cnxn) => cnxn.session === session).map(({ id }) => id));
  }

  /**
   * Ends a session as if nothing had been heard of its client for too long: any server of the ensemble can be asked, and it is ended by the leader. See
   * `TestEnsemble.expireSession`.
   */
  async expireSession(session: SessionId): Promise<boolean> {
    if (!this.isRunning) throw new Error(`server ${this.sid} is stopped`);
    return await this.#ground.expireSession(session);
  }

  /** As the leader. Resolves when the session is gone from this server. */
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
    // What has failed exits.
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

/** A stretch of time in which no client gets through to a server, whichever process of it that is. */
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

/** Those that a process is in, whether its network is there yet or not. */
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

/** One life of a server: from its start to its end, of whatever kind. */
class ServerProcess {
  readonly silences = new Silences();
  /** Rejects when it is gone. */
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
    // Nobody has to wait for it.
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
      // Without a network it has not come as far as its first packet.
      if (this.network === undefined) peers.die();
    }
  }

  async close(): Promise<void> {
    // A server that is cut off would wait for clients to take their last answers.
    this.#troubled?.heal();
    await Promise.race([this.server?.close(), this.ended]).catch(() => undefined);
  }

  /** Whoever asks again waits for the same end. */
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

/** Tells of whom a line speaks. */
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
