/**
 * Three peers over their ports: the core's rules and the ports together, on a network in memory and
 * a disk that takes a millisecond.
 */
import { coreDefaults, type EpochName, type Now, Peer, type PeerClients, type PeerStorage, silentObserver } from '@tskeeper/core';
import { CommittedLog, committedLogDefaults, Configuration, Replica, replicaOptions } from '@tskeeper/core/internal';
import {
  openAcl,
  OpCode,
  PacketView,
  parseQuorumConfig,
  Reader,
  type Sid,
  writeConnectRequest,
  writeCreateRequest,
  Writer,
  type Zxid,
} from '@tskeeper/protocol';
import { describe, expect, test } from 'vitest';
import type { Listener } from '../../src/index.ts';
import type { VirtualNetwork } from '../../src/internal.ts';
import { ElectionPort, electionPortDefaults, LearnerPort, learnerPortDefaults } from '../../src/internal.ts';
import { silentLogger } from '../../src/logger.ts';
import { addressOf, electionPort, quorumPort, Rig, serverOf } from './peer-rig.ts';

const sids: readonly Sid[] = [1, 2, 3];
const servers = sids.map((sid) => serverOf(sid));
const random = { uint32: () => 7 };
const client = 1_000_000;

class Server implements PeerClients, PeerStorage {
  readonly rig: Rig;
  readonly sid: Sid;
  readonly network: VirtualNetwork;
  readonly #view = new PacketView(10_000_000);
  readonly #election: ElectionPort;
  readonly #learner: LearnerPort;
  #listeners: Listener[] = [];
  peer!: Peer;
  isDead = false;
  #wakeAt: object | undefined;
  readonly #replies = new Writer();

  constructor(rig: Rig, sid: Sid) {
    this.rig = rig;
    this.sid = sid;
    this.network = rig.wire.stack(addressOf(sid));
    const runTurn = (work: (now: Now) => void): void => this.runTurn(work);
    const common = { network: this.network, clock: rig.clock, limitObserver: silentObserver, logger: silentLogger, runTurn };
    this.#election = new ElectionPort({ ...common, options: { ...electionPortDefaults, sid } }, servers);
    this.#learner = new LearnerPort({ ...common, view: this.#view, options: learnerPortDefaults }, servers);
    const ports = [this.#election, this.#learner];
    this.network.start({
      accepted: (stream, listener, remote) =>
        runTurn((now) => ports.find((port) => port.owns(listener))!.accepted(stream, listener, remote, now)),
      connected: (stream) => runTurn((now) => ports.find((port) => port.ownsStream(stream))?.connected(stream, now)),
      received: (batch) => runTurn((now) => ports.forEach((port) => port.received(batch, now))),
      drained: (stream) => runTurn((now) => ports.forEach((port) => port.drained(stream, now))),
      ended: (stream) => runTurn((now) => ports.forEach((port) => port.ended(stream, now))),
      closed: (stream, error) => runTurn((now) => ports.find((port) => port.ownsStream(stream))?.closed(stream, error, now)),
    });
  }

  async start(): Promise<void> {
    const host = addressOf(this.sid);
    this.#listeners = [
      (await this.#election.listen({ host, port: electionPort }))!,
      (await this.#learner.listen({ host, port: quorumPort }))!,
    ];
    const zab = {
      sid: this.sid,
      tickTimeMs: 2000,
      initLimitTicks: 10,
      syncLimitTicks: 5,
      forceSnapshotSync: false,
      counterMax: 0xffff_0000,
    };
    const options = { core: { ...coreDefaults, serverId: this.sid }, zab };
    const line = (sid: Sid) => `server.${sid}=${addressOf(sid)}:${quorumPort}:${electionPort}`;
    const active = parseQuorumConfig(sids.map(line).join('\n'));
    const config = new Configuration({ sid: this.sid, active, reconfigEnabled: options.core.reconfigEnabled });
    const recovered = {
      replica: new Replica(replicaOptions(coreDefaults, random)),
      lastZxid: 0,
      acceptedEpoch: 0,
      currentEpoch: 0,
      committedLog: new CommittedLog(committedLogDefaults),
      snapshotZxid: 0,
    };
    const io = { clients: this, election: this.#election, quorum: this.#learner, storage: this };
    this.runTurn((now) => {
      this.peer = new Peer({ options, config, start: recovered, packetView: this.#view, io, random, observer: silentObserver }, now);
      this.#election.attach(this.peer);
      this.#learner.attach(this.peer);
    });
  }

  crash(): void {
    this.isDead = true;
    for (const listener of this.#listeners) void listener.close();
    const { address } = this.network;
    for (const { dialer, listener, forward } of this.rig.cnxns) {
      if (dialer.address === address || listener.address === address) forward.resetAfter(0);
    }
  }

  runTurn(input: (now: Now) => void): void {
    if (this.isDead) return;
    const now = this.rig.clock.now();
    input(now);
    this.#election.endTurn(now);
    this.#learner.endTurn(now);
    if (this.#wakeAt !== undefined) this.rig.clock.cancel(this.#wakeAt);
    const dues = [this.#election.deadline(), this.#learner.deadline(), this.peer.deadline()].map((due) => due ?? Infinity);
    const due = this.#election.needsTurn || this.#learner.needsTurn ? now.elapsedMs : Math.min(...dues);
    this.#wakeAt = this.rig.clock.after(Math.max(0, Math.min(due - now.elapsedMs, 1e9)), () =>
      this.runTurn((then) => {
        this.#election.wake(then);
        this.#learner.wake(then);
        this.peer.wake(then);
      }),
    );
  }

  /** A client connects, and creates znodes without waiting for replies. */
  create(...paths: string[]): void {
    const frames: ((writer: Writer) => void)[] = [
      (writer) => {
        const passwd = Buffer.alloc(16);
        writeConnectRequest(writer, { protocolVersion: 0, lastZxidSeen: 0, timeOut: 6000, sessionId: 0n, passwd, readOnly: false });
      },
      ...paths.map((path, at) => (writer: Writer) => {
        writer.int32(at + 1);
        writer.int32(OpCode.create);
        writeCreateRequest(writer, { path, data: Buffer.alloc(50_000), acl: openAcl, flags: 0 });
      }),
    ];
    const context = { remoteAddress: '127.0.0.1', remotePort: 1, localPort: 2181, secure: false, peerCertificate: undefined };
    this.runTurn((now) => this.peer.front.connect(client, context, now));
    for (const frame of frames) {
      const writer = new Writer();
      frame(writer);
      this.runTurn((now) => this.peer.front.frame(client, new Reader(Buffer.from(writer.written())), now));
    }
  }

  has(path: string): boolean {
    return this.peer.replica.tree.find(path) !== 0;
  }

  // --- PeerClients and PeerStorage

  reply(): Writer {
    this.#replies.clear();
    return this.#replies;
  }

  attach(): void {}

  isFull(): boolean {
    return false;
  }

  close(): void {}

  append(zxid: Zxid): void {
    this.#soon((now) => this.peer.appended(zxid, now));
  }

  saveConfig(): void {}

  saveEpoch(name: EpochName, epoch: number): void {
    this.#soon((now) => this.peer.epochSaved(name, epoch, now));
  }

  installSnapshot(zxid: Zxid): void {
    this.#soon((now) => this.peer.installed(zxid, now));
  }

  truncate(zxid: Zxid): void {
    throw new Error(`nothing here has to be cut to ${zxid}`);
  }

  logBytesMax(): undefined {
    return undefined;
  }

  resumeLogRead(): void {}

  stopLogRead(): void {}

  readLog(): void {
    throw new Error('the log is not to be read');
  }

  #soon(work: (now: Now) => void): void {
    this.rig.clock.after(1, () => this.runTurn(work));
  }
}

async function runUntil(rig: Rig, what: () => boolean, atMostMs: number): Promise<number> {
  for (let ms = 0; ms <= atMostMs; ms++) {
    if (what()) return ms;
    await rig.run(1);
  }
  throw new Error('it has not come to that');
}

describe('three peers over their ports', () => {
  async function ensemble(): Promise<{ rig: Rig; all: Server[] }> {
    const rig = new Rig();
    rig.wire.conditionsOf = () => ({ delayMs: 1 });
    const all = sids.map((sid) => new Server(rig, sid));
    for (const server of all) await server.start();
    await runUntil(rig, () => all.every(({ peer }) => peer.server !== undefined), 2000);
    return { rig, all };
  }
  const leaderOf = (all: Server[]): Server | undefined =>
    all.find(({ peer, isDead }) => !isDead && peer.role === 'leading' && peer.server !== undefined);

  test('elect a leader, agree on writes, and elect another leader within 100 ms of its failure', async () => {
    const { rig, all } = await ensemble();
    const first = leaderOf(all)!;
    const follower = all.find((server) => server !== first)!;
    follower.create('/a', '/b');
    await runUntil(rig, () => all.every((server) => server.has('/b')), 1000);
    await rig.run(3000, 10);
    first.crash();
    const left = all.filter((server) => server !== first);
    // Well below the 200 ms of waiting for a better vote, if no server knew that the third one is
    // down.
    const ms = await runUntil(
      rig,
      () => left.every(({ peer }) => peer.server !== undefined && peer.role !== 'looking') && leaderOf(left) !== undefined,
      2000,
    );
    expect(ms).toBeLessThan(100);
    left[0]!.create('/c');
    await runUntil(rig, () => left.every((server) => server.has('/c')), 1000);
    expect(left.map((server) => server.has('/a'))).toEqual([true, true]);
  });

  test('bring an empty server up to date by a snapshot of several megabytes', async () => {
    const { rig, all } = await ensemble();
    const late = all.find((server) => server !== leaderOf(all))!;
    late.crash();
    const leader = leaderOf(all)!;
    const paths = Array.from({ length: 600 }, (_, at) => `/n${at}`);
    leader.create(...paths);
    await runUntil(rig, () => leader.has('/n599'), 5000);
    const again = new Server(rig, late.sid);
    await again.start();
    await runUntil(rig, () => again.peer.server !== undefined, 5000);
    expect(paths.every((path) => again.has(path))).toBe(true);
  });
});
