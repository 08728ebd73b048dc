/** Bytes that no honest server sends, and some that one does, for both ports of an ensemble. */
import {
  beginQuorumPacket,
  endQuorumPacket,
  type Id,
  type InitialMessage,
  operations,
  notificationVersion,
  openAcl,
  type PacketType,
  type SessionId,
  sessionHigh,
  sessionLow,
  type Sid,
  writeAckEpoch,
  writeInitialMessage,
  writeLearnerInfo,
  writeNotification,
  Writer,
  type Zxid,
} from '@tskeeper/protocol';
import type { SeededRandom } from '@tskeeper/runtime';

/** A 64-bit number, in halves. */
export type Long = readonly [high: number, low: number];

export function longOf(value: number): Long {
  return [Math.floor(value / 2 ** 32) | 0, value | 0];
}

export function pick<T>(random: SeededRandom, from: readonly T[]): T {
  return from[random.below(from.length)]!;
}

/** The ends of the range, and the numbers next to them. */
const extremeLongs: readonly Long[] = [
  [0, 0],
  [0, 1],
  [-1, -1],
  [-1, -2],
  [0x7fffffff, -1],
  [-0x80000000, 0],
  [-0x80000000, 1],
  longOf(Number.MAX_SAFE_INTEGER),
  longOf(Number.MAX_SAFE_INTEGER - 1),
  [0x200000, 0],
  [0x7fffffff, 0],
];

export const extremeInts = [0, 1, -1, 2, 0x7fffffff, -0x80000000, 0x10000] as const;

/** An extreme number, or one near `near`: the same, the next, or one of the epochs around it. */
export function anyLong(random: SeededRandom, near: Zxid): Long {
  if (random.below(2) === 0) return pick(random, extremeLongs);
  const [high, low] = longOf(near);
  const step = random.below(5) - 2;
  return random.below(2) === 0 ? [high, low + step] : [high + step, random.below(2) === 0 ? 0 : low];
}

export function garbage(random: SeededRandom, bytesMax: number): Buffer {
  return Buffer.from(Array.from({ length: 1 + random.below(bytesMax) }, () => random.below(256)));
}

function written(write: (writer: Writer) => void): Buffer {
  const writer = new Writer(256);
  write(writer);
  return Buffer.from(writer.written());
}

// --- Quorum port

export function packet(type: number, zxid: Long, data: Uint8Array | null, authinfo: readonly Id[] | null = null): Buffer {
  return written((writer) => {
    const at = beginQuorumPacket(writer, type as PacketType, 0);
    if (data !== null) writer.raw(data);
    endQuorumPacket(writer, at, authinfo);
    writer.bytes.writeInt32BE(zxid[0] | 0, at - 8);
    writer.bytes.writeInt32BE(zxid[1] | 0, at - 4);
  });
}

/** The data of FOLLOWERINFO and OBSERVERINFO. */
export function learnerInfo(serverId: number, configVersion = 0): Buffer {
  return written((writer) => writeLearnerInfo(writer, { serverId, configVersion }));
}

export function ackEpoch(epoch: number): Buffer {
  return written((writer) => writeAckEpoch(writer, epoch));
}

export function forwarded(session: Long, cxid: number, opCode: number, body: Uint8Array): Buffer {
  return written((writer) => {
    writer.int64Halves(...session);
    writer.int32(cxid);
    writer.int32(opCode);
    writer.raw(body);
  });
}

/** The data of REVALIDATE, and of each session in a PING. */
export function sessionWithTimeout(session: Long, timeoutMs: number): Buffer {
  return written((writer) => {
    writer.int64Halves(...session);
    writer.int32(timeoutMs);
  });
}

export function longOfSession(session: SessionId): Long {
  return [sessionHigh(session), sessionLow(session)];
}

const paths = ['/', '/a', '/b', '/zookeeper', '/zookeeper/config', '/hostile', '/hostile/x', '', 'a', '/a//b'] as const;

/** A complete record of some operation; it is sent under any opcode. */
function validBody(random: SeededRandom): Buffer {
  const path = pick(random, paths);
  return written((writer) => {
    switch (random.below(6)) {
      case 0:
        operations.create.request.write(writer, { path, data: garbage(random, 40), acl: openAcl, flags: random.below(8) });
        return;
      case 1:
        operations.setData.request.write(writer, { path, data: garbage(random, 40), version: pick(random, extremeInts) });
        return;
      case 2:
        operations.delete.request.write(writer, { path, version: pick(random, extremeInts) });
        return;
      case 3:
        operations.createTTL.request.write(writer, { path, data: null, acl: openAcl, flags: random.below(8), ttl: random.below(2000) });
        return;
      case 4:
        writer.int32(pick(random, extremeInts));
        return;
      default:
        writer.ustring(path);
    }
  });
}

/** An empty, complete, truncated, extended or random record. */
export function anyBody(random: SeededRandom): Buffer {
  const whole = validBody(random);
  switch (random.below(6)) {
    case 0:
      return Buffer.alloc(0);
    case 1:
      return whole.subarray(0, random.below(whole.length));
    case 2:
      return Buffer.concat([whole, garbage(random, 30)]);
    case 3:
      return garbage(random, 60);
    default:
      return whole;
  }
}

// --- Election port

export function initialMessage(message: InitialMessage): Buffer {
  return written((writer) => writeInitialMessage(writer, message));
}

/** The first bytes of a connection to the election port, as no server would send them. */
export function malformedInitialMessage(random: SeededRandom): Buffer {
  const text = pick(random, ['', 'a', ':', 'host:', 'host:99999', '[::1:3888', 'a:1|', '|', 'server-1:3888|server-1:3888', '\u0000:1']);
  return written((writer) => {
    switch (random.below(4)) {
      case 0:
        // An unknown version, or a number that cannot be one.
        writer.int64Halves(-1, pick(random, [-1, -2, -65534, -65537]));
        return;
      case 1:
        writer.int64Halves(...pick(random, extremeLongs));
        writer.int64Halves(...pick(random, extremeLongs));
        writer.int32(pick(random, [0, -1, 2049, 0x7fffffff, -0x80000000]));
        return;
      case 2:
        writer.int64Halves(-1, -65535);
        writer.int64Halves(...pick(random, extremeLongs));
        writer.ustring(text);
        return;
      default:
        writer.raw(garbage(random, 60));
    }
  });
}

const configTexts = [
  '',
  'version=0',
  'version=ffff',
  'server.1=',
  'version=zz\n=',
  'server.1=a:1:2:participant\nversion=100000000',
] as const;

/**
 * A notification with arbitrary values in some fields; one in four is invalid. `sids` are the ids
 * worth naming.
 */
export function anyNotification(random: SeededRandom, near: Zxid, sids: readonly number[]): Buffer {
  if (random.below(4) === 0) return malformedFrame(random);
  // Most have one wrong number: an unreadable one invalidates the whole message.
  const orExtreme = (usual: Long): Long => (random.below(5) === 0 ? pick(random, extremeLongs) : usual);
  return written((writer) => {
    const start = writer.beginFrame();
    writer.int32(random.below(10) === 0 ? pick(random, extremeInts) : random.below(4));
    writer.int64Halves(...orExtreme(longOf(pick(random, sids))));
    writer.int64Halves(...orExtreme(anyLong(random, near)));
    writer.int64Halves(...orExtreme(pick(random, plausibleRounds)));
    writer.int64Halves(...orExtreme(longOf(Math.floor(near / 2 ** 32) + random.below(3))));
    const version = pick(random, [0, 1, 2, 2, 2, 3, -1, 0x7fffffff]);
    writer.int32(version);
    if (version >= 2) writer.ustring(pick(random, configTexts));
    writer.endFrame(start);
  });
}

/** A notification of a server that looks for a leader, as a server sends it. */
export function lookingNotification(leader: Sid, zxid: Zxid, electionEpoch: number): Buffer {
  return written((writer) => {
    const start = writer.beginFrame();
    const peerEpoch = Math.floor(zxid / 2 ** 32);
    writeNotification(writer, { state: 'looking', leader, zxid, peerEpoch, electionEpoch, version: notificationVersion, config: '' });
    writer.endFrame(start);
  });
}

/** Early rounds, later ones, much later ones, and the highest possible numbers. */
const plausibleRounds = [1, 2, 3, 5, 8, 100, 2 ** 31, 2 ** 32, Number.MAX_SAFE_INTEGER - 1, Number.MAX_SAFE_INTEGER].map(longOf);

function malformedFrame(random: SeededRandom): Buffer {
  return written((writer) => {
    switch (random.below(4)) {
      case 0:
        writer.int32(pick(random, [0, -1, 524_289, 0x7fffffff, -0x80000000]));
        return;
      case 1: {
        const body = garbage(random, 80);
        writer.int32(body.length);
        writer.raw(body);
        return;
      }
      case 2:
        // Announces more than it sends.
        writer.int32(5000);
        writer.raw(garbage(random, 40));
        return;
      default:
        writer.int32(28);
        writer.raw(Buffer.alloc(28, 0xff));
    }
  });
}
