/**
 * Runs our server in place of the recorded leaders of Apache ZooKeeper. It wins an election, its
 * disk answers at once, and it gets the packets of the recorded learners; all clients of those
 * ensembles used learners, so this is a leader's whole input. Its output to each learner must equal
 * that of the recorded leader, byte for byte: epochs, DIFF, TRUNC and SNAP, the txns with their
 * times and digests, COMMIT and INFORM, the answers to syncs and about sessions.
 *
 * Not in the recording, and assumed here:
 *
 * - The clock. A txn contains its time of creation; our clock shows it when the request arrives, or
 *   the session is due. Ticks begin when the recorded leader's did.
 * - Most PINGs, so silence is not measured. Ours are left out of the comparison, and each is
 *   answered at once, once the learner has been sent UPTODATE.
 * - The leader's log of earlier epochs. It is assembled from the recorded txns.
 *
 * Allowed differences, and why:
 *
 * - Before it answers a sync our leader confirms its lead with a PING. ZooKeeper's does not.
 * - A snapshot has its znodes, ACLs and sessions in another order, and /zookeeper/config of a
 *   server that has just started is empty: snapshots are compared by content.
 */
import { parseQuorumConfig } from '@tskeeper/protocol';
import {
  OpCode,
  type Notification,
  PacketDecoder,
  packetTypeName,
  PacketView,
  Reader,
  readLearnerRequest,
  readTxn,
  type TxnHeader,
  type Sid,
  Writer,
  type Zxid,
} from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { coreDefaults, type Now, silentObserver } from '../../src/index.ts';
import { Peer } from '../../src/peer.ts';
import type { PeerClients } from '../../src/peer-io.ts';
import type { ElectionLinks } from '../../src/election/election-links.ts';
import { Configuration } from '../../src/quorum/configuration.ts';
import { Replica, replicaOptions } from '../../src/request/replica.ts';
import { SnapshotLoader } from '../../src/snapshot/snapshot-loader.ts';
import { CommittedLog, committedLogDefaults } from '../../src/zab/committed-log.ts';
import type { NodeId } from '../../src/tree/node-store.ts';
import type { EpochName, PeerStorage } from '../../src/zab/peer-storage.ts';
import type { ChannelCloseReason, ChannelId, QuorumLinks } from '../../src/zab/quorum-links.ts';
import { type RecordedLearning, recordedLearnings, type RecordedPacket, viewOf } from './recordings.ts';

const random = { uint32: () => 7 };

/**
 * Sessions expire at whole ticks, and the recorded leader's ticks follow from when it ended
 * sessions: 0.43 s into each second. Rounded, since whole ticks must be whole here too.
 */
const elapsedMs = (t: number): number => Math.round((t + 0.57) * 1000);

/** The state with which a leader starts. */
interface Beginning {
  readonly sid: Sid;
  readonly voters: readonly Sid[];
  readonly epoch: number;
  /** The txns of its log: header, record and digest. */
  readonly log: readonly Buffer[];
  readonly learnings: readonly RecordedLearning[];
}

interface Said {
  readonly name: string;
  readonly bytes: Buffer;
}

function zxidOf(entry: Buffer): Zxid {
  return readTxn(new Reader(entry)).header.zxid;
}

/** The txns that a leader sent, in order, each once. */
function txnsOf(learnings: readonly RecordedLearning[]): Buffer[] {
  const txns = new Map<Zxid, Buffer>();
  for (const { packets } of learnings) {
    for (const { name, bytes } of packets) {
      if (name !== 'PROPOSAL' && name !== 'INFORM') continue;
      const { data, zxid } = viewOf(bytes);
      txns.set(zxid, Buffer.from(data.bytes.subarray(data.offset, data.limit)));
    }
  }
  return [...txns].toSorted(([a], [b]) => a - b).map(([, entry]) => entry);
}

class Replayed implements PeerClients, ElectionLinks, QuorumLinks, PeerStorage {
  readonly #writers = new Map<ChannelId, Writer>();
  readonly #cutters = new Map<ChannelId, PacketDecoder>();
  readonly said = new Map<ChannelId, Said[]>();
  readonly closed: string[] = [];
  readonly #serving = new Set<ChannelId>();
  readonly #disk: (() => void)[] = [];
  readonly #pings: { readonly channel: ChannelId; readonly bytes: Buffer }[] = [];
  readonly peer: Peer;
  now: Now;

  constructor({ sid, voters, epoch, log, learnings }: Beginning, configText: string) {
    const core = { ...coreDefaults, serverId: sid, tickTimeMs: 1000, minSessionTimeoutMs: 2000, extendedTypesEnabled: true };
    const replica = new Replica(replicaOptions(core, random));
    const committedLog = new CommittedLog(committedLogDefaults);
    for (const entry of log) {
      const { header, txn, digest } = readTxn(new Reader(entry));
      replica.apply(header, txn, digest);
      committedLog.restore(header.zxid, entry);
    }
    const lastZxid = log.length === 0 ? 0 : zxidOf(log.at(-1)!);
    const zab = { sid, tickTimeMs: 1000, initLimitTicks: 100, syncLimitTicks: 100, forceSnapshotSync: false, counterMax: 0xffff_0000 };
    const recovered = { replica, lastZxid, acceptedEpoch: epoch, currentEpoch: epoch, committedLog, snapshotZxid: 0 };
    this.now = { elapsedMs: elapsedMs(learnings[0]!.packets[0]!.t) - 500, wallMs: 0 };
    const options = { core, zab };
    const config = new Configuration({ sid, active: parseQuorumConfig(configText), reconfigEnabled: core.reconfigEnabled });
    const io = { clients: this, election: this, quorum: this, storage: this };
    const parts = { options, config, start: recovered, packetView: new PacketView(), io, random, observer: silentObserver };
    this.peer = new Peer(parts, this.now);
    this.#settle();
    const vote: Notification = {
      state: 'looking',
      leader: sid,
      zxid: lastZxid,
      peerEpoch: epoch,
      electionEpoch: 1,
      version: 2,
      config: configText,
    };
    for (const voter of voters) if (voter !== sid) this.peer.notified(voter, vote, this.now);
  }

  // ---- input

  input(t: number, wallMs: number, input: (peer: Peer, now: Now) => void): void {
    this.now = { elapsedMs: elapsedMs(t), wallMs };
    input(this.peer, this.now);
    this.#settle();
  }

  /** Until the disk is idle, no PING is unanswered, and no work is due. */
  #settle(): void {
    for (;;) {
      this.#gather();
      const next = this.#disk.shift();
      const ping = this.#pings.shift();
      if (next !== undefined) next();
      if (ping !== undefined) this.peer.packet(ping.channel, viewOf(ping.bytes), this.now);
      if (next !== undefined || ping !== undefined) continue;
      if (this.peer.deadline() !== 0) return;
      this.peer.wake(this.now);
    }
  }

  #gather(): void {
    for (const [channel, writer] of this.#writers) {
      const bytes = Buffer.from(writer.written());
      writer.clear();
      let cutter = this.#cutters.get(channel);
      if (cutter === undefined) this.#cutters.set(channel, (cutter = new PacketDecoder(1_000_000)));
      const said = this.said.get(channel) ?? [];
      this.said.set(channel, said);
      let loader: SnapshotLoader | undefined;
      const cut = cutter;
      cut.feed(bytes, 0, bytes.length, {
        packet: (view) => {
          const copy = Buffer.from(view.bytes.subarray(view.start, view.end));
          const name = packetTypeName(view.type);
          if (name === 'UPTODATE') this.#serving.add(channel);
          if (name === 'PING') {
            // An answer has data, though it may be empty.
            if (this.#serving.has(channel)) this.#pings.push({ channel, bytes: copy });
            return true;
          }
          said.push({ name, bytes: copy });
          if (name === 'SNAP') {
            loader = snapshotLoader();
            cut.beginRaw();
          }
          return true;
        },
        raw: (raw, start, end) => {
          const taken = loader!.feed(raw.subarray(start, end));
          if (!loader!.isComplete) throw new Error('these snapshots are small enough for one piece');
          said.push({ name: 'snapshot', bytes: Buffer.from(raw.subarray(start, start + taken)) });
          cut.endRaw();
          return start + taken;
        },
      });
    }
  }

  // ---- outputs

  packets(channel: ChannelId): Writer {
    let writer = this.#writers.get(channel);
    if (writer === undefined) this.#writers.set(channel, (writer = new Writer(1024)));
    return writer;
  }

  writeShared(channel: ChannelId, bytes: Buffer, start: number): void {
    this.packets(channel).raw(bytes, start, bytes.length);
  }

  closeChannel(channel: ChannelId, _reason: ChannelCloseReason, text: string): void {
    this.closed.push(`${channel}: ${text}`);
  }

  append(zxid: Zxid): void {
    this.#disk.push(() => this.peer.appended(zxid, this.now));
  }

  saveConfig(): void {}

  saveEpoch(name: EpochName, epoch: number): void {
    this.#disk.push(() => this.peer.epochSaved(name, epoch, this.now));
  }

  readonly truncate = unexpected('truncate');
  readonly installSnapshot = unexpected('installSnapshot');
  readonly readLog = unexpected('readLog');
  readonly reply = unexpected('reply');
  readonly dialLeader = unexpected('dialLeader');
  readonly cancelDial = unexpected('cancelDial');
  readonly reconnect = unexpected('reconnect');
  readonly close = unexpected('close');
  notify(): void {}
  resumeLogRead(): void {}
  stopLogRead(): void {}
  attach = (): void => undefined;
  isFull = (): boolean => false;
  channelIsFull = (): boolean => false;
  logBytesMax = (): undefined => undefined;
}

/**
 * A leader without clients of its own, whose learners are all synchronised from memory, does not
 * call these.
 */
function unexpected(what: string): () => never {
  return () => {
    throw new Error(`${what} was not expected`);
  };
}

function snapshotLoader(): SnapshotLoader {
  return new SnapshotLoader(replicaOptions({ ...coreDefaults, extendedTypesEnabled: true }, random), { itemBytesMax: 1_000_000 });
}

interface Happening {
  readonly t: number;
  readonly run: (replayed: Replayed) => void;
}

/**
 * The creation times of the txns that a session requested: in order, since its xids restart with
 * each connection.
 */
class Times {
  readonly #headers: TxnHeader[];

  constructor(entries: readonly Buffer[]) {
    this.#headers = entries.map((entry) => readTxn(new Reader(entry)).header);
  }

  of({ name, bytes }: RecordedPacket): number {
    if (name !== 'REQUEST') return 0;
    const { sessionHigh, sessionLow, cxid, type } = readLearnerRequest(viewOf(bytes).data);
    if (type === OpCode.sync) return 0;
    const at = this.#headers.findIndex((one) => one.clientHigh === sessionHigh && one.clientLow === sessionLow && one.cxid === cxid);
    if (at === -1) throw new Error(`no txn came of request ${cxid} of ${sessionHigh}:${sessionLow}`);
    return this.#headers.splice(at, 1)[0]!.time;
  }
}

function replay(beginning: Beginning): Replayed {
  const { learnings } = beginning;
  const entries = txnsOf(learnings);
  const times = new Times(entries);
  const newLeader = learnings[0]!.packets.find(({ name }) => name === 'NEWLEADER')!;
  const { data } = viewOf(newLeader.bytes);
  const replayed = new Replayed(beginning, data.bytes.toString('utf8', data.offset, data.limit));
  const happenings: Happening[] = [];
  for (const [channel, { packets, closed }] of learnings.entries()) {
    happenings.push({ t: packets[0]!.t, run: () => replayed.input(packets[0]!.t, 0, (peer, now) => peer.accepted(channel, now)) });
    for (const packet of packets.filter(({ fromLeader }) => !fromLeader)) {
      const { t, name, bytes } = packet;
      const isAnswer = name === 'PING' && viewOf(bytes).data.remaining === 0;
      // PINGs are answered here; those that contain sessions are delivered besides.
      if (isAnswer) continue;
      happenings.push({ t, run: () => replayed.input(t, times.of(packet), (peer, now) => peer.packet(channel, viewOf(bytes), now)) });
    }
    happenings.push({ t: closed, run: () => replayed.input(closed, 0, (peer, now) => peer.channelGone(channel, now)) });
  }
  for (const entry of entries) {
    const { header } = readTxn(new Reader(entry));
    if (header.type !== OpCode.closeSession || header.cxid !== 0) continue;
    const t = Math.min(
      ...learnings.flatMap(({ packets }) => packets.filter((one) => one.fromLeader && viewZxid(one) === header.zxid).map((one) => one.t)),
    );
    const wake = () => replayed.input(t, header.time, (peer, now) => peer.wake(now));
    // Ours asks its learners for signs of life before it expires a session.
    happenings.push({ t, run: () => [wake(), wake()] });
  }
  for (const { run } of happenings.toSorted((a, b) => a.t - b.t)) run(replayed);
  return replayed;
}

function viewZxid({ name, bytes }: RecordedPacket): Zxid | undefined {
  return name === 'snapshot' ? undefined : viewOf(bytes).zxid;
}

function shown({ name, bytes }: { name: string; bytes: Buffer }): string {
  if (name === 'snapshot') return contentOf(bytes);
  // Ours names the server of the requesting client in the authinfo of a txn (zab/txn-origin.ts).
  const end = name === 'PROPOSAL' || name === 'INFORM' ? viewOf(bytes).data.limit : bytes.length;
  return `${name} ${bytes.subarray(0, end).toString('hex')}`;
}

/** The content of a snapshot, in a defined order. */
function contentOf(bytes: Buffer): string {
  const loader = snapshotLoader();
  if (loader.feed(bytes) !== bytes.length || !loader.isComplete) throw new Error('these bytes are not a snapshot');
  const { tree, sessions, digest } = loader.finish();
  const lines: string[] = sessions.map(({ high, low, timeoutMs }) => `session ${high}:${low} ${timeoutMs}`).toSorted();
  const visit = (node: NodeId): void => {
    const path = tree.pathOf(node);
    const writer = new Writer(256);
    tree.writeDataAndStat(node, writer);
    const acl = JSON.stringify(tree.acls.get(tree.aclOf(node)));
    // The only znode that each server writes itself.
    lines.push(path === '/zookeeper/config' ? `${path} ${acl}` : `${path} ${acl} ${writer.written().toString('hex')}`);
    for (let child = tree.firstChildOf(node); child !== 0; child = tree.nextSiblingOf(child)) visit(child);
  };
  visit(tree.find('/'));
  return [...lines.toSorted(), `digest ${JSON.stringify(digest)}`].join('\n');
}

/** Our leader's output to each learner, and that of the recorded one. */
function bothOf(beginning: Beginning): { said: Conversations; recorded: Conversations } {
  const replayed = replay(beginning);
  if (replayed.closed.length > 0) throw new Error(replayed.closed.join('; '));
  const said: Conversations = {};
  const recorded: Conversations = {};
  for (const [channel, { packets, title }] of beginning.learnings.entries()) {
    said[title] = replayed.said.get(channel)?.map(shown) ?? [];
    recorded[title] = packets.filter(({ fromLeader, name }) => fromLeader && name !== 'PING').map(shown);
  }
  return { said, recorded };
}

type Conversations = Record<string, string[]>;

const mixed = recordedLearnings('ensemble-mixed');
const first = mixed.filter(({ packets }) => packets[0]!.t < 13);
const second = mixed.filter(({ packets }) => packets[0]!.t >= 13);

describe('the leader of a mixed ensemble', () => {
  it('A52, A53, D1: leads the first epoch as the recorded one did', () => {
    const { said, recorded } = bothOf({ sid: 2, voters: [1, 2, 3], epoch: 0, log: [], learnings: first });
    expect(said).toEqual(recorded);
  });

  it('leads the second epoch as the recorded one did', () => {
    const { said, recorded } = bothOf({ sid: 2, voters: [1, 2, 3], epoch: 1, log: txnsOf(first), learnings: second });
    expect(said).toEqual(recorded);
  });
});

// Txns after a reconfig are left out: our leader refuses one. So the first epoch ends at the first
// request for one.
const reconfigured = recordedLearnings('ensemble-reconfig');
const reconfigAt = 4.88;
const before = reconfigured
  .filter(({ packets }) => packets[0]!.t < reconfigAt)
  .map((learning) => ({ ...learning, packets: learning.packets.filter(({ t }) => t < reconfigAt), closed: reconfigAt }));

describe('the leader of an ensemble that is reconfigured', () => {
  it('leads the first epoch as the recorded one did, up to the first reconfig', () => {
    const { said, recorded } = bothOf({ sid: 2, voters: [1, 2, 3], epoch: 0, log: [], learnings: before });
    expect(said).toEqual(recorded);
  });

  it('leads the second epoch as the recorded one did, with the removed server as a learner', () => {
    const ledBy2 = reconfigured.filter(({ leader }) => leader === 2);
    const { said, recorded } = bothOf({
      sid: 1,
      voters: [1, 3],
      epoch: 1,
      log: txnsOf(ledBy2),
      learnings: reconfigured.filter(({ leader }) => leader === 1),
    });
    expect(said).toEqual(recorded);
  });
});
