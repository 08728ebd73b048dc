/** Complete servers of an ensemble, on a network, disks and a clock in memory. */
import { coreDefaults, type CoreOptions, type ZabOptions } from '@tskeeper/core';
import { type QuorumServer, type Sid, writeConnectRequest, Writer } from '@tskeeper/protocol';
import {
  type LogFields,
  ensembleDefaults,
  type EnsembleOptions,
  VirtualDisk,
  type Runtime,
  runtimeDefaults,
  type RuntimeOptions,
  SeededRandom,
  startRuntime,
} from '../src/index.ts';
import { type RawEnd, RawHost, Rig, addressOf, electionPort, quorumPort } from './ports/peer-rig.ts';

export const clientPort = 2181;
const tickTimeMs = 1000;

export interface EnsembleRuntimeRigOptions {
  readonly servers?: number;
  /** How many of the servers, the last ones, are observers. */
  readonly observers?: number;
  readonly options?: Partial<EnsembleOptions>;
  readonly zab?: Partial<ZabOptions>;
  readonly core?: Partial<CoreOptions>;
  readonly runtime?: Partial<RuntimeOptions>;
  /** There is an oracle, which takes time to answer. */
  readonly oracle?: boolean;
}

export class EnsembleRuntimeNode {
  readonly sid: Sid;
  readonly lines: string[] = [];
  readonly logged: LogFields[] = [];
  readonly disk = new VirtualDisk();
  runtime: Runtime | undefined;
  failure: unknown;
  /** Of the machine that it runs on. */
  address: string;
  /** The oracle's answer to it; undefined: there is no oracle. */
  oracle: string | undefined;

  constructor(sid: Sid) {
    this.sid = sid;
    this.address = addressOf(sid);
  }

  get role(): string | undefined {
    return this.runtime?.inspect.role();
  }
}

export class EnsembleRuntimeRig {
  readonly rig = new Rig();
  readonly nodes: readonly EnsembleRuntimeNode[];
  readonly #setup: EnsembleRuntimeRigOptions;
  readonly #hosts = new Map<string, RawHost>();

  constructor(setup: EnsembleRuntimeRigOptions = {}) {
    this.#setup = setup;
    this.nodes = Array.from({ length: setup.servers ?? 3 }, (_, index) => new EnsembleRuntimeNode(index + 1));
  }

  /** Starts all of them, until one leads and the others follow or observe it. */
  static async start(setup: EnsembleRuntimeRigOptions = {}): Promise<EnsembleRuntimeRig> {
    const rig = new EnsembleRuntimeRig(setup);
    await Promise.all([...rig.nodes.map((node) => rig.boot(node)), rig.rig.run(50)]);
    await rig.until(() => rig.isWhole, 5000);
    return rig;
  }

  get isWhole(): boolean {
    const roles = this.nodes.map(({ role }) => role);
    return roles.includes('leader') && roles.every((role) => role === 'leader' || role === 'follower' || role === 'observer');
  }

  get leader(): EnsembleRuntimeNode {
    return this.nodes.find(({ role }) => role === 'leader')!;
  }

  /** Servers other than the leader, in order. */
  get learners(): EnsembleRuntimeNode[] {
    return this.nodes.filter(({ role }) => role !== 'leader');
  }

  /** `address`: of the machine that it runs on. */
  async boot(node: EnsembleRuntimeNode, address = addressOf(node.sid)): Promise<void> {
    const { sid } = node;
    node.address = address;
    const { observers = 0, options, zab, core, runtime } = this.#setup;
    const count = this.nodes.length;
    const roleOf = (number: Sid) => (number > count - observers ? 'observer' : 'participant');
    const servers = this.nodes.map(({ sid: number }): [Sid, QuorumServer] => {
      const addresses = [{ host: addressOf(number), quorumPort, electionPort }];
      return [number, { sid: number, addresses, role: roleOf(number), clientAddress: { host: addressOf(number), port: clientPort } }];
    });
    const log = (level: string) => (message: string, fields: LogFields) => {
      node.lines.push(`${level} ${message}`);
      node.logged.push(fields);
    };
    const { clock, wire } = this.rig;
    const world = { disk: node.disk.attach(), network: wire.stack(address), clock, random: new SeededRandom(sid) };
    node.runtime = await startRuntime(
      world,
      { ...coreDefaults, tickTimeMs, minSessionTimeoutMs: 2 * tickTimeMs, maxSessionTimeoutMs: 20 * tickTimeMs, serverId: sid, ...core },
      {
        ...runtimeDefaults,
        dataDir: '/data',
        dataLogDir: '/data',
        clientPort,
        preAllocSizeBytes: 4096,
        fourLetterWords: ['*'],
        ...runtime,
      },
      {
        logger: { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') },
        snappy: undefined,
        host: { version: 'virtual', environment: () => [], openFileDescriptors: () => undefined, maxFileDescriptors: () => undefined },
        failed: (error) => (node.failure = error),
        oracle:
          this.#setup.oracle === true ? () => new Promise((resolve) => clock.after(20, () => resolve(node.oracle === '1'))) : undefined,
      },
      {
        ...ensembleDefaults,
        zab: { sid, tickTimeMs, initLimitTicks: 10, syncLimitTicks: 5, forceSnapshotSync: false, counterMax: 0xffff_0000, ...zab },
        quorum: { version: 0, servers: new Map(servers), groups: new Map(), weights: new Map() },
        listensOnAllIps: false,
        quorumCnxnTimeoutMs: 5 * tickTimeMs,
        connectToLeaderMs: 10 * tickTimeMs,
        ...options,
      },
    );
  }

  async close(node: EnsembleRuntimeNode): Promise<void> {
    const { runtime } = node;
    node.runtime = undefined;
    await Promise.all([runtime!.close(), this.rig.run(1500, 10)]);
  }

  /** Advances the time until the condition holds; throws when it does not. */
  async until(isSo: () => boolean, atMostMs: number): Promise<void> {
    for (let passed = 0; !isSo(); passed += 5) {
      if (passed >= atMostMs) throw new Error(`still not so after ${atMostMs} ms; the last words: ${this.#lastWords()}`);
      await this.rig.run(5, 5);
    }
  }

  dial(node: EnsembleRuntimeNode, port: number, from = '10.0.9.9'): RawEnd {
    let host = this.#hosts.get(from);
    if (host === undefined) this.#hosts.set(from, (host = new RawHost(this.rig, from)));
    return host.dial(node.address, port);
  }

  /** A client opens a session of 20 s at this server. */
  async openSession(node: EnsembleRuntimeNode): Promise<void> {
    const end = this.dial(node, clientPort);
    const writer = new Writer();
    const start = writer.beginFrame();
    const passwd = Buffer.alloc(16);
    writeConnectRequest(writer, { protocolVersion: 0, lastZxidSeen: 0, timeOut: 20_000, sessionId: 0n, passwd, readOnly: false });
    writer.endFrame(start);
    end.send(Buffer.from(writer.written()));
    await this.until(() => end.received.length >= 41, 2000);
  }

  /** The reply of a server to a four letter word. */
  async word(node: EnsembleRuntimeNode, word: string): Promise<string> {
    const end = this.dial(node, clientPort);
    end.send(Buffer.from(word));
    await this.until(() => end.closed !== undefined, 5000);
    return end.received.toString('utf8');
  }

  #lastWords(): string {
    return this.nodes.map(({ sid, lines }) => `${sid}: ${lines.slice(-2).join(', ')}`).join(' / ');
  }
}
