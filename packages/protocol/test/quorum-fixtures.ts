/**
 * Packets between the servers of two ensembles (fixtures/README.md), and the data of every packet
 * decoded and encoded again.
 */
import {
  type Id,
  type PacketConsumer,
  PacketDecoder,
  PacketType,
  type PacketView,
  readAckEpoch,
  readDesignatedLeader,
  Reader,
  readLearnerRequest,
  readLeaderInfo,
  readLearnerInfo,
  readRevalidateReply,
  readRevalidateRequest,
  readTouchedSessions,
  readTxn,
  type TxnLogEntry,
  type Txn,
  sessionIdOf,
  writeAckEpoch,
  writeDesignatedLeader,
  writeLearnerRequest,
  writeLeaderInfo,
  writeLearnerInfo,
  type Writer,
  writeRevalidateReply,
  writeRevalidateRequest,
  writeTouchedSession,
  writeTxn,
} from '../src/index.ts';
import { fixtureJson } from './fixtures.ts';

export interface RecordedMessage {
  readonly dir: 'initiator>acceptor' | 'acceptor>initiator';
  readonly offset: number;
  readonly hex: string;
  // On the election port.
  readonly initial?: { protocolVersion: number; sid: number; address: string };
  readonly notification?: { state: number; leader: unknown; zxid: unknown; electionEpoch: unknown; peerEpoch: unknown; config: string };
  // On the learner port.
  readonly packet?: keyof typeof PacketType;
  readonly type?: number;
  readonly zxid?: string;
  readonly authinfo?: readonly Id[] | null;
  readonly decoded?: Record<string, unknown>;
  readonly snapshotBody?: { sessions: unknown[]; aclCache: unknown[]; nodes: { path: string }[] };
}

interface RecordedConnection {
  readonly port: 'election' | 'learner';
  readonly messages: readonly RecordedMessage[];
}

/** One direction of one connection, in order. */
export interface RecordedStream {
  readonly title: string;
  readonly fromInitiator: boolean;
  readonly messages: readonly RecordedMessage[];
  readonly bytes: Buffer;
}

const ensembles = ['ensemble-mixed.json', 'ensemble-reconfig.json'] as const;

export function recordedStreams(port: RecordedConnection['port']): RecordedStream[] {
  return ensembles.flatMap((name) => {
    const { connections } = fixtureJson(name) as { connections: RecordedConnection[] };
    return connections.flatMap((connection, index) => {
      if (connection.port !== port) return [];
      return (['initiator>acceptor', 'acceptor>initiator'] as const).map((dir) => {
        const messages = connection.messages.filter((message) => message.dir === dir).sort((a, b) => a.offset - b.offset);
        const bytes = Buffer.from(messages.map(({ hex }) => hex).join(''), 'hex');
        return { title: `${name} ${index} ${dir}`, fromInitiator: dir === 'initiator>acceptor', messages, bytes };
      });
    });
  });
}

/** Decoded data in the form of the fixtures, and how to encode it again. */
export interface PacketData {
  readonly decoded: Record<string, unknown> | undefined;
  readonly write: ((writer: Writer) => void) | undefined;
}

const recordNames: Record<string, string> = {
  create: 'CreateTxn',
  createContainer: 'CreateContainerTxn',
  createTTL: 'CreateTTLTxn',
  delete: 'DeleteTxn',
  setData: 'SetDataTxn',
  setACL: 'SetACLTxn',
  createSession: 'CreateSessionTxn',
  closeSession: 'CloseSessionTxn',
  multi: 'MultiTxn',
  error: 'ErrorTxn',
};

const hex64 = (high: number, low: number): string => `0x${BigInt.asUintN(64, sessionIdOf(high, low)).toString(16)}`;

/** A txn's record under the fixtures' name for it. */
function describeRecord(txn: Txn): Record<string, unknown> {
  const { kind, ...fields } = txn;
  if (txn.kind !== 'multi') return { [recordNames[kind]!]: fields };
  return { MultiTxn: { txns: txn.txns.map((member) => ({ type: member.type, ...describeRecord(member.txn) })) } };
}

function describeTxn({ header, txn, digest }: TxnLogEntry): Record<string, unknown> {
  const { clientHigh, clientLow, cxid, zxid, time, type } = header;
  return {
    TxnHeader: { clientId: hex64(clientHigh, clientLow), cxid, zxid, time, type },
    ...describeRecord(txn),
    ...(digest === undefined ? {} : { TxnDigest: { version: digest.version, treeDigest: hex64(digest.high, digest.low) } }),
  };
}

/** The data of a packet, by its type and sender. */
export function readPacketData(type: number, fromLearner: boolean, data: Reader, hasData: boolean): PacketData {
  switch (type) {
    case PacketType.FOLLOWERINFO:
    case PacketType.OBSERVERINFO: {
      const info = readLearnerInfo(data, hasData);
      const { serverId = -1, configVersion = 0, protocolVersion } = info;
      return {
        decoded: {
          LearnerInfo: { serverid: `0x${serverId.toString(16)}`, protocolVersion, configVersion: `0x${configVersion.toString(16)}` },
        },
        write: (writer) => writeLearnerInfo(writer, { serverId, configVersion }),
      };
    }
    case PacketType.LEADERINFO:
      return {
        decoded: { protocolVersion: `0x${readLeaderInfo(data).protocolVersion.toString(16)}` },
        write: (writer) => writeLeaderInfo(writer),
      };
    case PacketType.ACKEPOCH: {
      const currentEpoch = readAckEpoch(data);
      return { decoded: { currentEpoch }, write: (writer) => writeAckEpoch(writer, currentEpoch) };
    }
    case PacketType.REQUEST: {
      const request = readLearnerRequest(data);
      const { sessionHigh, sessionLow, cxid, type: opcode, payload } = request;
      return {
        decoded: { sessionId: hex64(sessionHigh, sessionLow), cxid, opcode, payload: Buffer.from(payload).toString('hex') },
        write: (writer) => writeLearnerRequest(writer, request),
      };
    }
    case PacketType.REVALIDATE: {
      if (fromLearner) {
        const asked = readRevalidateRequest(data);
        const sessionId = hex64(asked.sessionHigh, asked.sessionLow);
        return { decoded: { sessionId, timeout: asked.timeOut }, write: (writer) => writeRevalidateRequest(writer, asked) };
      }
      const answer = readRevalidateReply(data);
      const sessionId = hex64(answer.sessionHigh, answer.sessionLow);
      return { decoded: { sessionId, valid: answer.valid }, write: (writer) => writeRevalidateReply(writer, answer) };
    }
    case PacketType.PING: {
      if (!hasData) return { decoded: undefined, write: undefined };
      const touched: { sessionId: string; timeout: number }[] = [];
      const sessions: [number, number, number][] = [];
      readTouchedSessions(data, (high, low, timeout) => {
        sessions.push([high, low, timeout]);
        touched.push({ sessionId: hex64(high, low), timeout });
      });
      return {
        decoded: touched.length === 0 ? undefined : { touched },
        write: (writer) => sessions.forEach((session) => writeTouchedSession(writer, ...session)),
      };
    }
    case PacketType.COMMITANDACTIVATE: {
      const designatedLeader = readDesignatedLeader(data);
      return { decoded: { designatedLeader }, write: (writer) => writeDesignatedLeader(writer, designatedLeader) };
    }
    case PacketType.INFORMANDACTIVATE: {
      const designatedLeader = readDesignatedLeader(data);
      const txn = readTxn(data);
      return {
        decoded: { designatedLeader, ...describeTxn(txn) },
        write: (writer) => {
          writeDesignatedLeader(writer, designatedLeader);
          writeTxn(writer, txn);
        },
      };
    }
    case PacketType.PROPOSAL:
    case PacketType.INFORM: {
      const txn = readTxn(data);
      return { decoded: describeTxn(txn), write: (writer) => writeTxn(writer, txn) };
    }
    case PacketType.NEWLEADER: {
      const config = data.remainingBytes().toString('utf8');
      return { decoded: { config }, write: (writer) => writer.raw(Buffer.from(config, 'utf8')) };
    }
    default:
      return { decoded: undefined, write: undefined };
  }
}

/** A fixture's value of the data, without explanations. */
export function recordedData({ decoded }: RecordedMessage): unknown {
  if (decoded === undefined) return undefined;
  const text = JSON.stringify(decoded, (key, value: unknown) => (key === 'op' || key === 'dataLength' ? undefined : value));
  return JSON.parse(text);
}

/**
 * Takes packets as hex, and after each SNAP as many raw bytes as the next number in `rawLengths`
 * says. Everything for which `accepts` returns false waits.
 */
export class RecordingConsumer implements PacketConsumer {
  readonly cutter: PacketDecoder;
  readonly taken: string[] = [];
  /** Lengths of the raw parts to come. */
  readonly rawLengths: number[];
  accepts = (): boolean => true;
  /** Maximum size of a piece of a raw part. */
  rawAppetite = Number.POSITIVE_INFINITY;
  #rawLeft = 0;
  #raw = '';

  constructor(rawLengths: readonly number[] = [], lengthMax = 0x1ffffe) {
    this.cutter = new PacketDecoder(lengthMax);
    this.rawLengths = [...rawLengths];
  }

  packet(packet: PacketView): boolean {
    this.taken.push(packet.bytes.toString('hex', packet.start, packet.end));
    if (packet.type === PacketType.SNAP) {
      this.#rawLeft = this.rawLengths.shift()!;
      this.#raw = '';
      this.cutter.beginRaw();
    }
    return this.accepts();
  }

  raw(bytes: Buffer, start: number, end: number): number {
    const count = Math.min(this.#rawLeft, this.rawAppetite, end - start);
    this.#raw += bytes.toString('hex', start, start + count);
    this.#rawLeft -= count;
    if (this.#rawLeft === 0) {
      this.taken.push(this.#raw);
      this.cutter.endRaw();
    }
    return start + count;
  }

  feed(bytes: Buffer, start = 0, end: number = bytes.length): boolean {
    return this.cutter.feed(bytes, start, end, this);
  }

  resume(): boolean {
    return this.cutter.resume(this);
  }
}
