/**
 * What a server of an ensemble says of itself to others, read off the bytes that leave it: how far it is, and which epochs it has accepted and stands
 * in. Others count on it, so it has to be on its disk by then (checkers/peer-words.ts).
 */
import {
  epochOf,
  FrameCutter,
  type Notification,
  PacketCutter,
  PacketType,
  type PacketView,
  ProtocolError,
  type Reader,
  readAckEpoch,
  readNotification,
  type Sid,
  type Zxid,
} from '@tskeeper/protocol';

const bytesMax = 16 * 1024 * 1024;
/** Of what a server says first to an election port that it has dialled: version, sid, and the length of the addresses that follow. */
const greetingHeadBytes = 20;

export type Feed = (bytes: Buffer) => void;

/** The packets of a stream, one after the other, until one of them is followed by a snapshot. */
export function packetFeed(taken: (packet: PacketView) => void): Feed {
  const cutter = new PacketCutter(bytesMax);
  const consumer = {
    packet: (packet: PacketView) => {
      taken(packet);
      if (packet.type === PacketType.SNAP) cutter.beginRaw();
      return true;
    },
    raw: (_bytes: Buffer, _start: number, end: number) => end,
  };
  return (bytes) => void cutter.feed(bytes, 0, bytes.length, consumer);
}

/** The notifications of a stream, of either side: whoever has dialled says first who it is, and its version is below 0, as no length is. */
export function voteFeed(taken: (notification: Notification) => void): Feed {
  const cutter = new FrameCutter(bytesMax);
  let greeting: Buffer | undefined = Buffer.alloc(0);
  const take = (reader: Reader) => {
    taken(readNotification(reader));
    return true;
  };
  return (bytes) => {
    let rest = bytes;
    if (greeting !== undefined) {
      greeting = Buffer.concat([greeting, bytes]);
      if (greeting.length < 4) return;
      let end = 0;
      if (greeting.readInt32BE(0) < 0) {
        end = greeting.length < greetingHeadBytes ? Infinity : greetingHeadBytes + greeting.readInt32BE(greetingHeadBytes - 4);
      }
      if (greeting.length < end) return;
      rest = greeting.subarray(end);
      greeting = undefined;
    }
    if (rest.length > 0) cutter.feed(rest, 0, rest.length, take);
  };
}

/** What it has said. */
export type PeerWord =
  /** It looks for a leader, and would be one: its vote is for itself. */
  | { readonly word: 'vote'; readonly zxid: Zxid; readonly current: number }
  /** FOLLOWERINFO or OBSERVERINFO. */
  | { readonly word: 'info'; readonly accepted: number }
  /** ACKEPOCH; `current` is -1 where it does not accept the epoch, since it has done so before. */
  | { readonly word: 'ackEpoch'; readonly zxid: Zxid; readonly current: number };

/** One life of a server. */
export class PeerWords {
  readonly #sid: Sid;
  readonly #said: (word: PeerWord) => void;
  /** By connection; undefined for one of which nothing more is to be heard. */
  readonly #cnxns = new Map<number, Feed | undefined>();
  #vote: Notification | undefined;

  constructor(sid: Sid, said: (word: PeerWord) => void) {
    this.#sid = sid;
    this.#said = said;
  }

  /** Bytes leave the process over a connection between servers. They are valid during the call. */
  sent(cnxn: number, port: 'election' | 'quorum', bytes: Buffer): void {
    if (!this.#cnxns.has(cnxn)) {
      const feed = port === 'election' ? voteFeed((vote) => this.#voted(vote)) : packetFeed((packet) => this.#packet(cnxn, packet));
      this.#cnxns.set(cnxn, feed);
    }
    try {
      this.#cnxns.get(cnxn)?.(Buffer.from(bytes));
    } catch (error) {
      // A stranger has had it dial the one port where the other listens.
      if (!(error instanceof ProtocolError)) throw error;
      this.#cnxns.set(cnxn, undefined);
    }
  }

  /** The same vote goes to everybody, and is repeated. */
  #voted(vote: Notification): void {
    const { state, leader, zxid, peerEpoch } = vote;
    if (state !== 'looking' || leader !== this.#sid) return;
    if (this.#vote?.zxid === zxid && this.#vote.peerEpoch === peerEpoch) return;
    this.#vote = vote;
    this.#said({ word: 'vote', zxid, current: peerEpoch });
  }

  #packet(cnxn: number, { type, zxid, data }: PacketView): void {
    if (type === PacketType.FOLLOWERINFO || type === PacketType.OBSERVERINFO) {
      this.#said({ word: 'info', accepted: epochOf(zxid) });
      return;
    }
    // What follows is of no account here, nor is what a leader says.
    this.#cnxns.set(cnxn, undefined);
    if (type === PacketType.ACKEPOCH) this.#said({ word: 'ackEpoch', zxid, current: readAckEpoch(data) });
  }
}
