/** A core that follows a script, and the facts of a server, for tests of the ports. */
import type { CnxnContext, CnxnId, CnxnInfo, EnsembleStatus, Inspector, Now } from '@tskeeper/core';
import { Reader, Writer } from '@tskeeper/protocol';
import type { ClientCore, ServerFacts } from '../../src/internal.ts';

export interface FakeFrame {
  readonly cnxn: CnxnId;
  readonly body: Buffer;
}

export const emptyInspect: Inspector = {
  role: () => 'standalone',
  lastZxid: () => 0,
  nodeCount: () => 5,
  approximateDataBytes: () => 0,
  ephemeralCount: () => 0,
  watchCount: () => 0,
  quotaTotals: () => [],
  outstandingRequests: () => 0,
  sessionCount: () => 0,
  localSessionCount: () => 0,
  hasSession: () => false,
  cnxnCount: () => 0,
  cnxns: () => [],
  cnxn: () => undefined,
  sessionExpiry: () => [],
  localSessionExpiry: () => undefined,
  ephemerals: () => [],
  watchSummary: () => ({ cnxns: 0, paths: 0, watches: 0 }),
  watchesByCnxn: () => [],
  watchesByPath: () => [],
  digests: () => [],
  resetCnxnStats() {},
  sessions: () => [],
  ensemble: () => undefined,
  observers: () => [],
  resetObserverStats() {},
};

/** Server 2 of the ensemble whose answers were recorded (fixtures/README.md). */
export const recordedEnsemble: EnsembleStatus = {
  sid: 2,
  state: 'leading',
  phase: 'broadcast',
  syncMode: undefined,
  leader: 2,
  voterCount: 3,
  pendingConfigText: undefined,
  configText: [
    'server.1=127.0.0.1:43101:43201:participant;127.0.0.1:43001',
    'server.2=127.0.0.1:43102:43202:participant;127.0.0.1:43002',
    'server.3=127.0.0.1:43103:43203:participant;127.0.0.1:43003',
    'server.4=127.0.0.1:43104:43204:observer;127.0.0.1:43004',
    'version=0',
  ].join('\n'),
  leading: {
    sinceMs: 0,
    learners: 2,
    syncedFollowers: 2,
    syncedNonVotingFollowers: 0,
    syncedObservers: 0,
    pendingSyncs: 0,
    transferTarget: undefined,
  },
  learnerMaster: undefined,
  observersOfFollower: undefined,
};

export const leadingInspect: Inspector = { ...emptyInspect, role: () => 'leader', ensemble: () => recordedEnsemble };

export const testFacts: ServerFacts = {
  version: '3.9.5-<build id>, built on <date>',
  unsafe: [],
  conf: {
    clientPort: 2181,
    secureClientPort: -1,
    dataDir: '/data/version-2',
    dataLogDir: '/data/version-2',
    tickTimeMs: 2000,
    maxClientCnxns: 60,
    minSessionTimeoutMs: 4000,
    maxSessionTimeoutMs: 40_000,
    clientPortListenBacklog: -1,
    serverId: 0,
    ensemble: undefined,
  },
  startedMs: 0,
  dataDirBytes: () => 66_824,
  logDirBytes: () => 66_824,
  openFileDescriptors: () => 47,
  maxFileDescriptors: () => 20_000,
  connectionDropChance: () => 0,
  environment: () => [['zookeeper.version', '3.9.5']],
};

/**
 * Treats the first frame of a connection as its handshake and grants a session of 6 seconds;
 * answers every other frame with `answer`, by default with the frame itself.
 */
export class FakeCore implements ClientCore {
  readonly log: string[] = [];
  readonly frames: FakeFrame[] = [];
  /** Connections that were reported as active. */
  readonly heardOf: CnxnId[] = [];
  readonly contexts = new Map<CnxnId, CnxnContext>();
  readonly #open = new Map<CnxnId, CnxnInfo>();
  readonly #greeted = new Set<CnxnId>();
  /** Connections that must not be fed. */
  readonly throttled = new Set<CnxnId>();

  drained(): void {}

  /** A long job that takes so many turns more. */
  busyTurns = 0;
  /** The connection of that job, and the units of each of its turns. */
  isHolding = false;
  busyCnxn: CnxnId | undefined;
  unitsPerTurn = 0;
  workUnits = 0;
  outstanding = 0;
  sessionTimeoutMs = 6000;
  /** `reply` and `close` of Out. */
  reply: (cnxn: CnxnId) => Writer = () => new Writer();
  close: (cnxn: CnxnId) => void = () => undefined;
  answer: (cnxn: CnxnId, body: Buffer) => void = (cnxn, body) => this.write(cnxn, body);

  connect(cnxn: CnxnId, context: CnxnContext): void {
    if (this.#open.has(cnxn)) throw new Error(`connect ${cnxn} before disconnected`);
    this.log.push(`connect ${cnxn}`);
    this.contexts.set(cnxn, context);
    this.#open.set(cnxn, infoOf(cnxn, context, this));
  }

  frame(cnxn: CnxnId, reader: Reader, _now: Now): void {
    if (!this.#open.has(cnxn)) throw new Error(`a frame of ${cnxn}, which is not connected`);
    if (this.isBusy || !this.wantsInput(cnxn)) throw new Error(`a frame of ${cnxn}, which was not wanted`);
    const body = Buffer.from(reader.bytes.subarray(reader.offset, reader.limit));
    if (!this.#greeted.has(cnxn)) {
      this.#greeted.add(cnxn);
      this.write(cnxn, Buffer.from('welcome'));
      return;
    }
    this.frames.push({ cnxn, body });
    this.answer(cnxn, body);
  }

  bytesReceived(cnxn: CnxnId): void {
    this.heardOf.push(cnxn);
  }

  handshakeDelayed(): void {}

  lastFrame(cnxn: CnxnId, reader: Reader): void {
    this.log.push(`last frame of ${cnxn}: ${reader.bytes.toString('latin1', reader.offset, reader.limit)}`);
  }

  disconnected(cnxn: CnxnId): void {
    if (!this.#open.delete(cnxn)) throw new Error(`disconnected ${cnxn}, which is not connected`);
    this.#greeted.delete(cnxn);
    this.log.push(`disconnected ${cnxn}`);
  }

  wantsInput(cnxn: CnxnId): boolean {
    return !this.throttled.has(cnxn);
  }

  write(cnxn: CnxnId, body: Buffer): void {
    const writer = this.reply(cnxn);
    const start = writer.beginFrame();
    writer.raw(body);
    writer.endFrame(start);
  }

  get isBusy(): boolean {
    return this.busyTurns > 0;
  }

  get openCount(): number {
    return this.#open.size;
  }

  get bodies(): string[] {
    return this.frames.map(({ body }) => body.toString('latin1'));
  }

  inspect: Inspector = { ...emptyInspect, cnxn: (id) => this.#open.get(id) };
}

function infoOf(id: CnxnId, context: CnxnContext, core: FakeCore): CnxnInfo {
  return {
    id,
    context,
    session: 0x100000000000000n + BigInt(id),
    sessionTimeoutMs: core.sessionTimeoutMs,
    establishedWallMs: 0,
    get outstandingRequests() {
      return core.outstanding;
    },
    packetsReceived: 1,
    packetsSent: 1,
    lastOpCode: undefined,
    lastCxid: -1,
    lastZxid: 0,
    lastResponseMs: 0,
    lastLatencyMs: 0,
    minLatencyMs: 0,
    averageLatencyMs: 0,
    maxLatencyMs: 0,
  };
}
