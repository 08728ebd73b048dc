/**
 * What a server of an ensemble states of itself to others, parsed from the bytes that leave it: how
 * far it is, which epoch it has accepted, and which is current. Others rely on it, so it must be on
 * its disk by then (checkers/peer-claims.ts).
 */
import {
  epochOf,
  FrameDecoder,
  type Notification,
  PacketDecoder,
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
/**
 * The first bytes that a server sends to an election port that it has connected to: version, sid,
 * and the length of the addresses that follow.
 */
const initialMessageHeadBytes = 20;

export type Feed = (bytes: Buffer) => void;

/** The packets of a stream, one after the other, until one of them is followed by a snapshot. */
export function packetFeed(onPacket: (packet: PacketView) => void): Feed {
  const cutter = new PacketDecoder(bytesMax);
  const consumer = {
    packet: (packet: PacketView) => {
      onPacket(packet);
      if (packet.type === PacketType.SNAP) cutter.beginRaw();
      return true;
    },
    raw: (_bytes: Buffer, _start: number, end: number) => end,
  };
  return (bytes) => void cutter.feed(bytes, 0, bytes.length, consumer);
}

/**
 * The notifications of a stream, from either side: the connecting side first introduces itself,
 * with a version below 0, which a length never is.
 */
export function voteFeed(onVote: (notification: Notification) => void): Feed {
  const cutter = new FrameDecoder(bytesMax);
  let greeting: Buffer | undefined = Buffer.alloc(0);
  const take = (reader: Reader) => {
    onVote(readNotification(reader));
    return true;
  };
  return (bytes) => {
    let rest = bytes;
    if (greeting !== undefined) {
      greeting = Buffer.concat([greeting, bytes]);
      if (greeting.length < 4) return;
      let end = 0;
      if (greeting.readInt32BE(0) < 0) {
        end =
          greeting.length < initialMessageHeadBytes
            ? Infinity
            : initialMessageHeadBytes + greeting.readInt32BE(initialMessageHeadBytes - 4);
      }
      if (greeting.length < end) return;
      rest = greeting.subarray(end);
      greeting = undefined;
    }
    if (rest.length > 0) cutter.feed(rest, 0, rest.length, take);
  };
}

/** What a server states. */
export type PeerClaim =
  /** It looks for a leader and votes for itself. */
  | { readonly packet: 'vote'; readonly zxid: Zxid; readonly current: number }
  /** FOLLOWERINFO or OBSERVERINFO. */
  | { readonly packet: 'info'; readonly accepted: number }
  /** ACKEPOCH; `current` is -1 if the server had accepted the epoch before. */
  | { readonly packet: 'ackEpoch'; readonly zxid: Zxid; readonly current: number };

/** Parses what one process of a server sends. */
export class PeerClaims {
  readonly #sid: Sid;
  readonly #onClaim: (word: PeerClaim) => void;
  /** By connection; undefined for one that is no longer parsed. */
  readonly #cnxns = new Map<number, Feed | undefined>();
  #vote: Notification | undefined;

  constructor(sid: Sid, said: (word: PeerClaim) => void) {
    this.#sid = sid;
    this.#onClaim = said;
  }

  /**
   * Called with bytes that leave the process over a connection between servers. They are valid
   * during the call.
   */
  sent(cnxn: number, port: 'election' | 'quorum', bytes: Buffer): void {
    if (!this.#cnxns.has(cnxn)) {
      const feed = port === 'election' ? voteFeed((vote) => this.#voted(vote)) : packetFeed((packet) => this.#packet(cnxn, packet));
      this.#cnxns.set(cnxn, feed);
    }
    try {
      this.#cnxns.get(cnxn)?.(Buffer.from(bytes));
    } catch (error) {
      // A stranger has made it connect to the wrong one of the two ports.
      if (!(error instanceof ProtocolError)) throw error;
      this.#cnxns.set(cnxn, undefined);
    }
  }

  /** The same vote goes to every server, and is repeated. */
  #voted(vote: Notification): void {
    const { state, leader, zxid, peerEpoch } = vote;
    if (state !== 'looking' || leader !== this.#sid) return;
    if (this.#vote?.zxid === zxid && this.#vote.peerEpoch === peerEpoch) return;
    this.#vote = vote;
    this.#onClaim({ packet: 'vote', zxid, current: peerEpoch });
  }

  #packet(cnxn: number, { type, zxid, data }: PacketView): void {
    if (type === PacketType.FOLLOWERINFO || type === PacketType.OBSERVERINFO) {
      this.#onClaim({ packet: 'info', accepted: epochOf(zxid) });
      return;
    }
    // Later packets do not matter here, nor do those of a leader.
    this.#cnxns.set(cnxn, undefined);
    if (type === PacketType.ACKEPOCH) this.#onClaim({ packet: 'ackEpoch', zxid, current: readAckEpoch(data) });
  }
}
