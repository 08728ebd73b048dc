/**
 * The disk as the peer uses it: each request is checked against the invariants and then waits in
 * the disk's queue. What a server may write, and when, is where most rules of the protocol meet.
 */
import { OpCode, parseQuorumConfig, type QuorumConfig, Reader, readTxn, Writer, type Zxid } from '@tskeeper/protocol';
import type { ChannelId, EpochName, PeerStorage } from '@tskeeper/core';
import type { ServerState } from './server-environment.ts';
import type { FileRequest, SmallDisk, StoredTxn } from './small-disk.ts';
import { errorName, membersText, reconfigName, sessionName } from './txn-names.ts';

/** The name of a txn. The persistent client writes unique texts. */
function nameOf(bytes: Buffer): string {
  const { header, txn } = readTxn(new Reader(Buffer.from(bytes)));
  const session = sessionName(header.clientHigh, header.clientLow);
  if (txn.kind === 'setData') {
    const text = Buffer.from(txn.data ?? []).toString();
    return header.type === OpCode.reconfig ? reconfigName(membersText(parseQuorumConfig(text)), session, header.cxid) : text;
  }
  return txn.kind === 'createSession' ? session : errorName(session, header.cxid);
}

export class SmallStorage implements PeerStorage {
  readonly #server: ServerState;
  readonly #disk: SmallDisk;

  constructor(server: ServerState, disk: SmallDisk) {
    this.#server = server;
    this.#disk = disk;
  }

  append(zxid: Zxid, bytes: Buffer, start: number, end: number): void {
    this.#checkNotRewriting();
    const copy = Buffer.from(bytes.subarray(start, end));
    const txn: StoredTxn = { zxid, bytes: copy, name: nameOf(copy) };
    const { world, peer } = this.#server;
    if (peer!.role === 'leading') {
      const { logged } = this.#disk;
      world.invariants.proposed(peer!.epoch!, txn, logged);
      world.proposed(txn, logged.at(-1));
    }
    this.#disk.append(txn);
  }

  saveConfig(active: QuorumConfig, lastSeen: QuorumConfig | undefined): void {
    this.#server.configChanged({ active, lastSeen });
    this.#disk.configs.save(active, lastSeen);
  }

  saveEpoch(name: EpochName, epoch: number): void {
    const { world } = this.#server;
    if (name === 'currentEpoch') world.invariants.epochBegun(epoch, this.#server.view());
    this.#disk.saveEpoch(name, epoch);
  }

  /** The disk carries out a `saveEpoch`. */
  storeEpoch({ name, epoch }: FileRequest): void {
    this.#disk[name] = epoch;
    if (name === 'currentEpoch') this.#server.world.invariants.epochWritten(this.#server.view());
  }

  truncate(zxid: Zxid): void {
    this.#checkNotRewriting();
    this.#disk.logQueue.push({ kind: 'truncate', zxid });
  }

  installSnapshot(zxid: Zxid): void {
    this.#checkNotRewriting();
    const bytes = new Writer(1024);
    const source = this.#server.peer!.replica.snapshotStream();
    while (!source.next(bytes, 1 << 20));
    const txns = this.#server.world.historyOf(zxid);
    this.#disk.logQueue.push({ kind: 'install', snapshot: { zxid, bytes: Buffer.from(bytes.written()), txns } });
  }

  /**
   * Like `Storage`, which accepts no other request while it truncates the log or installs a
   * snapshot.
   */
  #checkNotRewriting(): void {
    if (this.#disk.isRewriting) throw new Error('the folder is being rewritten');
  }

  logBytesMax(): number | undefined {
    return this.#server.world.scope.syncsFromLog ? Infinity : undefined;
  }

  readLog(channel: ChannelId, from: Zxid): void {
    const disk = this.#disk;
    disk.logQueue = disk.logQueue.filter((request) => request.kind !== 'read' || request.channel !== channel);
    disk.logQueue.push({ kind: 'read', channel, from });
  }

  resumeLogRead(): void {}

  stopLogRead(): void {}
}
