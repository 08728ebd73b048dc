/**
 * The messages of servers in an election, one after the other on the election port: the sender's
 * state, its vote, and its configuration.
 *
 *     int   state
 *     long  leader
 *     long  zxid
 *     long  electionEpoch
 *     long  peerEpoch       not in messages of 28 bytes, which are those before 3.4
 *     int   version         taken for 0 in messages of 40 bytes, which are those of 3.4 and end here
 *     text  config          since version 2
 *     text  pendingConfig   ours, and only if there is one; servers of ZooKeeper do not read it
 */
import { epochOf, type Zxid } from '../jute/numbers.ts';
import { ProtocolError } from '../jute/protocol-error.ts';
import type { Reader } from '../jute/reader.ts';
import type { Writer } from '../jute/writer.ts';

/**
 * A server's number in its ensemble (`myid`), an integer within the exact range of numbers. An
 * observer without a number of its own gets a negative one from the server it dials.
 */
export type Sid = number;

/** The state of a server. LOOKING: it takes part in an election. */
export type ServerState = 'looking' | 'following' | 'leading' | 'observing';

/**
 * -2^63: the leader, zxid and peerEpoch in the proposal of a server that does not vote. It is exact
 * as a number.
 */
export const noVote = -(2 ** 63);

export interface Notification {
  /** Of the sender. */
  readonly state: ServerState;
  /**
   * The server for which it votes, and the last zxid and the currentEpoch of that server as known
   * to it.
   */
  readonly leader: Sid;
  readonly zxid: Zxid;
  readonly peerEpoch: number;
  /** The sender's round: its logical clock. */
  readonly electionEpoch: number;
  /** 2 since 3.5; 0 and 1 are those of older servers, whose messages lack the rest. */
  readonly version: number;
  /** Text of the sender's current configuration; undefined if the message has none. */
  readonly config: string | undefined;
  /** Text of a configuration that the sender has in its log, and that may not be committed. */
  readonly pendingConfig?: string | undefined;
}

/**
 * Notifications are framed: an int with the number of bytes that follow, within these bounds. A
 * FrameDecoder splits them.
 */
export const notificationBytesMin = 1;
export const notificationBytesMax = 524_288;

/** The version sent by current servers: with a config. */
export const notificationVersion = 2;

/** In the order of their numbers on the wire. */
const serverStates: readonly ServerState[] = ['looking', 'following', 'leading', 'observing'];

/** Length of a message that ends before peerEpoch. */
const oldestBytes = 28;
/**
 * Length of a message that ends before config. The releases of 3.4 differ in the meaning of its
 * version, so it is ignored.
 */
const olderBytes = 40;

/** A number of a vote, which is `noVote` if its sender does not vote. */
function readVoteNumber(reader: Reader, expected: string): number {
  const { bytes, offset } = reader;
  const value = reader.int64();
  if (Number.isSafeInteger(value)) return value;
  if (bytes.readInt32BE(offset) === -0x80000000 && bytes.readInt32BE(offset + 4) === 0) return noVote;
  throw new ProtocolError(`${expected} below 2^53`, offset);
}

function readState(reader: Reader): ServerState {
  const at = reader.offset;
  const code = reader.int32();
  const state = serverStates[code];
  if (state === undefined) throw new ProtocolError(`the state of a server, not ${code}`, at);
  return state;
}

/**
 * Decodes the message between the reader's offset and its limit; other bytes at the end belong to a
 * newer version and are ignored. On a ProtocolError the message is dropped; the connection stays,
 * as in ZooKeeper.
 */
export function readNotification(reader: Reader): Notification {
  const length = reader.remaining;
  const state = readState(reader);
  const leader = readVoteNumber(reader, 'a leader');
  const zxid = readVoteNumber(reader, 'a zxid');
  const electionEpoch = reader.exactInt64('a round');
  const peerEpoch = length === oldestBytes ? epochOf(zxid) : readVoteNumber(reader, 'an epoch');
  const version = length === oldestBytes || length === olderBytes ? 0 : reader.int32();
  const config = version < notificationVersion ? undefined : reader.text('a configuration');
  const pendingConfig = config === undefined ? undefined : maybeReadText(reader);
  return { state, leader, zxid, peerEpoch, electionEpoch, version, config, pendingConfig };
}

/** A text, if that is what follows. */
function maybeReadText(reader: Reader): string | undefined {
  if (reader.remaining <= 4) return undefined;
  const { bytes, offset } = reader;
  const length = bytes.readInt32BE(offset);
  return length >= 0 && length <= reader.remaining - 4 ? reader.text('a configuration') : undefined;
}

/**
 * Writes the message of servers of that version: before version 2 the 40 bytes without a config.
 */
export function writeNotification(writer: Writer, notification: Notification): void {
  writer.int32(serverStates.indexOf(notification.state));
  writer.int64(notification.leader);
  writer.int64(notification.zxid);
  writer.int64(notification.electionEpoch);
  writer.int64(notification.peerEpoch);
  writer.int32(notification.version);
  if (notification.version < notificationVersion) return;
  writer.ustring(notification.config ?? '');
  if (notification.pendingConfig !== undefined) writer.ustring(notification.pendingConfig);
}
