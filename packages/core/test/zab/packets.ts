/**
 * Packets as short texts, and the outputs of a leader or a learner, so that a test reads like a
 * capture.
 */
import type { QuorumConfig } from '@tskeeper/protocol';
import {
  formatZxid,
  type Id,
  PacketDecoder,
  packetTypeName,
  PacketView,
  type QuorumPacket,
  Writer,
  writeQuorumPacket,
  type Zxid,
  type Sid,
} from '@tskeeper/protocol';
import type { EpochName, PeerStorage } from '../../src/zab/peer-storage.ts';
import type { ChannelCloseReason, ChannelId, QuorumLinks } from '../../src/zab/quorum-links.ts';

/** Records outputs in order. */
export class Notes implements QuorumLinks, PeerStorage {
  readonly #lines: string[] = [];
  readonly #writers = new Map<ChannelId, Writer>();

  packets(channel: ChannelId): Writer {
    let writer = this.#writers.get(channel);
    if (writer === undefined) this.#writers.set(channel, (writer = new Writer(64)));
    return writer;
  }

  writeShared(channel: ChannelId, bytes: Buffer, start: number): void {
    this.packets(channel).raw(bytes, start, bytes.length);
  }

  readonly full = new Set<ChannelId>();

  channelIsFull(channel: ChannelId): boolean {
    return this.full.has(channel);
  }

  closeChannel(channel: ChannelId, _reason: ChannelCloseReason, text: string): void {
    this.#gather();
    this.#lines.push(`close ${channel}: ${text}`);
  }

  append(zxid: Zxid): void {
    this.#gather();
    this.#lines.push(`append ${formatZxid(zxid)}`);
  }

  saveConfig({ version }: QuorumConfig): void {
    this.#gather();
    this.#lines.push(`save configuration ${version}`);
  }

  saveEpoch(name: EpochName, epoch: number): void {
    this.#gather();
    this.#lines.push(`save ${name} ${epoch}`);
  }

  truncate(zxid: Zxid): void {
    this.#gather();
    this.#lines.push(`truncate ${formatZxid(zxid)}`);
  }

  installSnapshot(zxid: Zxid): void {
    this.#gather();
    this.#lines.push(`install ${formatZxid(zxid)}`);
  }

  logBytesMax(): number | undefined {
    return undefined;
  }

  readLog(channel: ChannelId, from: Zxid, isTail: boolean): void {
    this.note(`read the log ${isTail ? 'to its end ' : ''}from ${formatZxid(from)} for ${channel}`);
  }

  resumeLogRead(): void {}

  stopLogRead(): void {}

  dialLeader(sid: Sid): void {
    this.note(`dial ${sid}`);
  }

  cancelDial(): void {
    this.note('dial no more');
  }

  note(line: string): void {
    this.#gather();
    this.#lines.push(line);
  }

  /** Everything since the last call. */
  take(): string[] {
    this.#gather();
    return this.#lines.splice(0);
  }

  #gather(): void {
    for (const [channel, writer] of this.#writers) {
      const bytes = Buffer.from(writer.written());
      writer.clear();
      new PacketDecoder(1_000_000).feed(bytes, 0, bytes.length, {
        packet: (view) => {
          this.#lines.push(`${channel} <- ${packetText(view)}`);
          return true;
        },
        raw: () => {
          throw new Error('nothing is raw here');
        },
      });
    }
  }
}

function packetText({ type, zxid, data: reader }: PacketView): string {
  const data = reader.bytes.subarray(reader.offset, reader.limit);
  const name = packetTypeName(type);
  const shown = name === 'ACKEPOCH' ? ` ${data.readInt32BE(0)}` : '';
  return `${name} ${formatZxid(zxid)}${shown}`;
}

/** A packet as received from the other side. */
export function packet(type: number, zxid: Zxid, data: Uint8Array | null = null, authinfo: readonly Id[] | null = null): PacketView {
  const writer = new Writer(64);
  writeQuorumPacket(writer, { type, zxid, data, authinfo } satisfies QuorumPacket);
  const bytes = Buffer.from(writer.written());
  return new PacketView().wrap(bytes, 0, bytes.length);
}

export function int(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}
