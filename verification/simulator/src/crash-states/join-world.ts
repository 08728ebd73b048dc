/**
 * A joining server in an ensemble of three: production servers with their ports and disks, of which
 * the third returns to the other two. A case says with which folder it returns, and how its leader
 * synchronises it. The disk is captured at each change, together with what the server had sent by
 * then.
 */
import { CreateMode, epochOf, openAcl, PacketType, packetTypeName } from '@tskeeper/protocol';
import { crashChoices, type DiskImage, keepAll, VirtualDisk, SeededRandom } from '@tskeeper/runtime';
import { RawClient } from '../clients/raw-client.ts';
import type { Request } from '../record/recording.ts';
import type { ServerHost } from '../world/server-host.ts';
import { packetFeed } from '../record/peer-claims.ts';
import { quorumPort } from '../world/peer-ports.ts';
import { VirtualWorld } from '../world/virtual-world.ts';
import { type FolderHistory, readFolder } from './folder-history.ts';
import { LearnerCommitments, noCommitments, type Commitments } from './learner-commitments.ts';

export const folderKinds = ['empty', 'behind', 'snapshot', 'tail', 'interrupted'] as const;
export const syncKinds = ['memory', 'log', 'snapshot'] as const;

export interface JoinCase {
  /**
   * `empty`: its disk was replaced. `behind`: it has the beginning of the history. `snapshot`: the
   * same, with snapshots of its own. `tail`: it led and logged txns that no other server has.
   * `interrupted`: it lost power while it joined, and returns to the same leader or to another.
   */
  readonly folder: (typeof folderKinds)[number];
  /** Whether its leader has the txns in memory, has to read its log, or always sends a snapshot. */
  readonly sync: (typeof syncKinds)[number];
  readonly seed: number;
}

/** A moment of joining. */
export interface JoinPoint {
  readonly image: DiskImage;
  readonly commitments: Commitments;
}

/** Everything that the check of a crash state needs. */
export interface JoinRecording {
  readonly points: readonly JoinPoint[];
  /** DIFF, TRUNC or SNAP: the packet with which the leader began. */
  readonly syncPacket: string;
  readonly epoch: number;
  /** The learner's folder before. */
  readonly before: FolderHistory;
  /** The leader's folder at the end. */
  readonly leader: FolderHistory;
}

const learnerSid = 3;
const startMaxMs = 20_000;
const answerMaxMs = 10_000;
/** Longer than any run. */
const sessionTimeoutMs = 100_000_000;
/** Sizes of data in bytes: within a sector, and several sectors. */
const dataBytes = [8, 90, 300, 700, 1500];

/** Makes a client connect to one server only. */
class FixedServerRandom extends SeededRandom {
  readonly #index: number;

  constructor(index: number) {
    super(1);
    this.#index = index;
  }

  override below(end: number): number {
    return Math.min(this.#index, end - 1);
  }
}

export class JoinWorld {
  readonly world: VirtualWorld;
  readonly learner: ServerHost;
  readonly #case: JoinCase;
  readonly #random: SeededRandom;
  /**
   * Connects to the second server. Its session is created at the beginning, because that is a txn.
   */
  #writer!: RawClient;
  #paths = 0;
  #clients = 0;
  #syncPacket = '';

  constructor(joinCase: JoinCase) {
    const { seed, sync, folder } = (this.#case = joinCase);
    this.#random = new SeededRandom(seed);
    this.world = new VirtualWorld(seed, {
      servers: 3,
      ensemble: {
        options: { commitLogCount: sync === 'log' ? 1 + this.#random.below(3) : 500, snapshotSizeFactor: 0 },
        zab: { forceSnapshotSync: sync === 'snapshot' },
      },
      core: { maxSessionTimeoutMs: sessionTimeoutMs },
      options: { snapCount: folder === 'snapshot' ? 4 + this.#random.below(8) : 100_000, preAllocSizeBytes: 8192 },
    });
    this.world.wire.conditionsOf = () => ({ delayMs: 0.5 });
    this.learner = this.world.servers[learnerSid - 1]!;
  }

  get leader(): ServerHost {
    const leader = this.world.servers.find((server) => roleOf(server) === 'leader');
    if (leader === undefined) throw new Error('no server leads');
    return leader;
  }

  // ---- before

  /** Prepares the case, then lets the learner join and records how. */
  async record(): Promise<JoinRecording> {
    const { world, learner } = this;
    for (const server of world.servers) await server.start();
    await this.#wait(
      'the ensemble serves',
      () => world.servers.every(isServing) && world.servers.some((server) => roleOf(server) === 'leader'),
    );
    this.#writer = await this.#connectClient(world.servers[1]!);
    await this.#write(3 + this.#random.below(8));
    await this.#wait('all have the same', () => this.#hasAll(learner));
    const { folder } = this.#case;
    if (folder === 'tail' || (folder === 'interrupted' && this.#random.below(2) === 0)) await this.#leaveUncommittedTail();
    learner.kill();
    learner.disk.restore(learner.disk.capture(), keepAll);
    if (folder === 'empty') for (const path of learner.disk.files()) learner.disk.eraseFile(path);
    await this.#waitForOthers();
    // A tail can only be truncated while its leader's epoch has no txn: after one, nothing says
    // where the two histories part.
    if (folder !== 'tail' || this.#random.below(3) === 0) await this.#write(2 + this.#random.below(6));
    if (folder !== 'interrupted') return await this.#join(noCommitments);
    const first = await this.#join(noCommitments);
    const point = first.points[this.#random.below(first.points.length)]!;
    const choices = [...crashChoices(point.image, this.#random)];
    const choice = choices[this.#random.below(choices.length)]!;
    learner.kill();
    learner.disk.restore(point.image, (_item, index) => choice[index]!);
    await this.#waitForOthers();
    if (this.#random.below(2) === 0) await this.#changeLeader();
    await this.#write(1 + this.#random.below(4));
    return await this.#join(point.commitments);
  }

  /** The learner leads, is partitioned, and keeps writing for a while. */
  async #leaveUncommittedTail(): Promise<void> {
    const { world, learner } = this;
    if (this.leader !== learner) throw new Error('expected the last server to lead');
    const client = await this.#connectClient(learner);
    for (const other of world.servers) if (other !== learner) world.link(learner.name, other.name).cut();
    for (let left = 1 + this.#random.below(4); left > 0; left--) this.#create(client);
    await world.run(50);
    client.abandon();
    await this.#wait('the others have a leader', () => world.servers.some((server) => server !== learner && roleOf(server) === 'leader'));
    learner.kill();
    for (const link of world.links) link.heal();
  }

  async #waitForOthers(): Promise<void> {
    const others = this.world.servers.filter((server) => server !== this.learner);
    await this.#wait('the others serve', () => others.every(isServing) && others.some((server) => roleOf(server) === 'leader'));
  }

  async #changeLeader(): Promise<void> {
    const old = this.leader;
    old.kill();
    old.boot();
    await this.#waitForOthers();
  }

  async #connectClient(server: ServerHost): Promise<RawClient> {
    const number = ++this.#clients;
    const random = new FixedServerRandom(this.world.servers.indexOf(server));
    const client = new RawClient(this.world, random, {
      name: `client-${number}`,
      address: `10.9.2.${number}`,
      timeoutMs: sessionTimeoutMs,
    });
    await this.#wait('a client has a session', () => client.ready);
    return client;
  }

  #create(client: RawClient): Request {
    const data = Buffer.alloc(dataBytes[this.#random.below(dataBytes.length)]!, this.#paths + 1);
    return client.send('create', { path: `/n${this.#paths++}`, data, acl: openAcl, flags: CreateMode.persistent })!;
  }

  async #write(count: number): Promise<void> {
    for (let left = count; left > 0; left--) {
      await this.#wait('the client is connected', () => this.#writer.ready);
      const request = this.#create(this.#writer);
      await this.#wait('a write has a reply', () => request.reply !== undefined);
    }
  }

  // ---- joining

  async #join(commitments: Commitments): Promise<JoinRecording> {
    const { world, learner, leader } = this;
    const before = await this.#readFolder(learner, learner.disk.capture());
    const { currentEpoch: epoch, lastZxid: historyEnd } = await this.#readFolder(leader, leader.disk.capture());
    const client = this.#writer;
    await this.#wait('the client is connected', () => client.ready);
    const points: JoinPoint[] = [];
    const tracker = new LearnerCommitments(epoch, historyEnd, commitments);
    const capture = () => void points.push({ image: learner.disk.capture(), commitments: tracker.current });
    tracker.onChange = capture;
    learner.disk.onChanged = capture;
    learner.onSent = (cnxn, port, bytes) => tracker.sent(cnxn, port, bytes);
    learner.diskDelayMs = () => this.#random.below(4) / 2;
    this.#recordSyncPacket(leader);
    capture();
    learner.boot();
    // A txn of the new epoch would prevent a TRUNC.
    if (epochOf(historyEnd) < epoch) await this.#wait('its leader begins', () => this.#syncPacket !== '');
    // Writes continue while it joins: some become part of the synchronisation, some follow
    // NEWLEADER, some arrive when it serves.
    for (let left = 8; left > 0; left--) {
      this.#create(client);
      await world.run(this.#random.below(60) / 10);
    }
    await this.#wait('the learner follows', () => isServing(learner) && client.outstandingCount === 0 && this.#hasAll(learner));
    this.#create(client);
    await this.#wait('the learner has the last write', () => client.outstandingCount === 0 && this.#hasAll(learner));
    await world.run(10);
    this.#compareServed();
    learner.disk.onChanged = undefined;
    learner.onSent = undefined;
    learner.diskDelayMs = () => 0;
    leader.onSent = undefined;
    const history = await this.#readFolder(leader, leader.disk.capture());
    return { points, syncPacket: this.#syncPacket, epoch, before, leader: history };
  }

  #recordSyncPacket(leader: ServerHost): void {
    const feeds = new Map<number, (bytes: Buffer) => void>();
    this.#syncPacket = '';
    leader.onSent = (cnxn, port, bytes) => {
      if (port !== quorumPort) return;
      let feed = feeds.get(cnxn);
      if (feed === undefined) {
        let isNew = false;
        feed = packetFeed(({ type }) => {
          // The stream is new, and not that of the other follower, if it begins with the epoch.
          if (type === PacketType.LEADERINFO) isNew = true;
          else if (isNew && this.#syncPacket === '' && [PacketType.DIFF, PacketType.TRUNC, PacketType.SNAP].includes(type as never)) {
            this.#syncPacket = packetTypeName(type);
          }
        });
        feeds.set(cnxn, feed);
      }
      try {
        feed(Buffer.from(bytes));
      } catch {
        // The stream existed before, so its bytes begin in the middle of a packet.
        feeds.set(cnxn, () => undefined);
      }
    };
  }

  /**
   * Reads the folder with all logs from the beginning: a snapshot would hide the history before it.
   */
  async #readFolder(server: ServerHost, image: DiskImage): Promise<FolderHistory> {
    const disk = new VirtualDisk(image, keepAll);
    if (server !== this.learner) {
      for (const path of disk.files()) if (/\/snapshot\.0*[1-9a-f]/.test(path)) disk.eraseFile(path);
    }
    return await readFolder(disk, server.core, server.options);
  }

  #hasAll(server: ServerHost): boolean {
    const zxid = server.process?.runtime?.inspect.lastZxid();
    return zxid !== undefined && zxid === this.leader.process?.runtime?.inspect.lastZxid();
  }

  async #wait(what: string, isSo: () => boolean): Promise<void> {
    if (await this.world.runUntil(isSo, startMaxMs)) return;
    const lastLines = this.world.servers.flatMap(({ name, logLines }) => logLines.slice(-3).map((line) => `${name}: ${line}`));
    throw new Error(`timed out after ${startMaxMs} ms waiting until ${what}\n${lastLines.join('\n')}`);
  }

  #compareServed(): void {
    const [own, leads] = [this.learner, this.leader].map(countsOf);
    if (own !== leads) throw new Error(`the learner has ${own}, its leader ${leads}`);
  }

  // ---- and once more

  /**
   * Starts the learner on a disk and lets it join. Returns what it sent; throws if it does not
   * join.
   */
  async joinAgain(image: DiskImage, choice: readonly number[], { epoch, leader: history }: JoinRecording): Promise<LearnerCommitments> {
    const { world, learner } = this;
    world.eventCount = 0;
    learner.logLines.length = 0;
    learner.kill();
    learner.disk.restore(image, (_item, index) => choice[index]!);
    const tracker = new LearnerCommitments(epoch, 0, noCommitments);
    learner.onSent = (cnxn, port, bytes) => tracker.sent(cnxn, port, bytes);
    let failure: string | undefined;
    learner.onFailure = (error) => {
      failure ??= String(error);
    };
    const process = learner.boot();
    let refusal: Error | undefined;
    const noteRefusal = async () => {
      refusal = await process.started;
    };
    void noteRefusal();
    const isOver = () => failure !== undefined || refusal !== undefined || (isServing(learner) && this.#hasAll(learner));
    const hasJoined = await world.runUntil(isOver, answerMaxMs);
    if (refusal !== undefined) throw new Error(`the learner does not start: ${refusal.message}`);
    if (failure !== undefined) throw new Error(`the learner failed: ${failure}`);
    if (!hasJoined) throw new Error(`the learner does not join again; its last log lines: ${learner.logLines.slice(-3).join(' / ')}`);
    this.#compareServed();
    learner.onSent = undefined;
    // What the learner has now must be durable, even after a power loss.
    learner.kill();
    learner.disk.crash(() => 0);
    const found = await readFolder(new VirtualDisk(learner.disk.capture()), learner.core, learner.options);
    const last = history.lastZxid;
    if (found.lastZxid !== last || found.digests.get(last) !== history.digests.get(last)) {
      throw new Error("the disk of the learner differs from its leader's after it joined again");
    }
    if (found.currentEpoch !== epochOf(epoch * 2 ** 32))
      throw new Error(`currentEpoch is ${found.currentEpoch} after the learner joined again`);
    return tracker;
  }
}

function roleOf(server: ServerHost): string | undefined {
  return server.process?.runtime?.inspect.role();
}

function isServing(server: ServerHost): boolean {
  const role = roleOf(server);
  return role === 'leader' || role === 'follower';
}

function countsOf(server: ServerHost): string {
  const inspect = server.process!.runtime!.inspect;
  return `${inspect.nodeCount()} znodes of ${inspect.approximateDataBytes()} bytes, ${inspect.sessionCount()} sessions`;
}
