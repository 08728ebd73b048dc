import {
  beginQuorumPacket,
  endQuorumPacket,
  InitialMessageVersion,
  makeZxid,
  type Notification,
  PacketType,
  writeAckEpoch,
  writeEmptyPacket,
  writeInitialMessage,
  writeLearnerInfo,
  writeNotification,
  Writer,
} from '@tskeeper/protocol';
import { describe, expect, test } from 'vitest';
import { PeerClaims, type PeerClaim } from '../src/record/peer-claims.ts';

function vote(changes: Partial<Notification> = {}): Buffer {
  const writer = new Writer(64);
  writer.int32(0);
  const notification = {
    state: 'looking',
    leader: 2,
    zxid: makeZxid(3, 4),
    electionEpoch: 5,
    peerEpoch: 3,
    version: 2,
    config: '',
  } as const;
  writeNotification(writer, { ...notification, ...changes });
  writer.bytes.writeInt32BE(writer.offset - 4, 0);
  return Buffer.from(writer.written());
}

function greeting(): Buffer {
  const writer = new Writer(64);
  writeInitialMessage(writer, { sid: 2, protocolVersion: InitialMessageVersion.oneAddress, addresses: [{ host: 'server-2', port: 3888 }] });
  return Buffer.from(writer.written());
}

function joining(): Buffer {
  const writer = new Writer(64);
  const info = beginQuorumPacket(writer, PacketType.FOLLOWERINFO, makeZxid(7, 0));
  writeLearnerInfo(writer, { serverId: 2, configVersion: 0 });
  endQuorumPacket(writer, info);
  const ack = beginQuorumPacket(writer, PacketType.ACKEPOCH, makeZxid(3, 4));
  writeAckEpoch(writer, 6);
  endQuorumPacket(writer, ack);
  writeEmptyPacket(writer, PacketType.ACK, makeZxid(8, 0));
  return Buffer.from(writer.written());
}

function heard(port: 'election' | 'quorum', ...bytes: Buffer[]): PeerClaim[] {
  const words: PeerClaim[] = [];
  const listener = new PeerClaims(2, (word) => words.push(word));
  for (const byte of Buffer.concat(bytes)) listener.sent(1, port, Buffer.of(byte));
  return words;
}

const ownVote = { packet: 'vote', zxid: makeZxid(3, 4), current: 3 };

describe('PeerClaims', () => {
  test.each([
    ['that the server dialled', [greeting(), vote()]],
    ['that the other server dialled', [vote()]],
  ])('extracts a vote for the server itself from a connection %s', (_what, bytes) => {
    expect(heard('election', ...bytes)).toEqual([ownVote]);
  });

  test('extracts a repeated vote once, and then a different vote', () => {
    const words = heard('election', greeting(), vote(), vote({ electionEpoch: 6 }), vote({ zxid: makeZxid(3, 5) }));
    expect(words).toEqual([ownVote, { ...ownVote, zxid: makeZxid(3, 5) }]);
  });

  test('extracts no vote for another server, and no vote after an election', () => {
    expect(heard('election', vote({ leader: 1 }), vote({ state: 'leading' }))).toEqual([]);
  });

  test('extracts no claim from bytes on the wrong port', () => {
    expect(heard('quorum', greeting(), vote())).toEqual([]);
    expect(heard('election', greeting(), joining())).toEqual([]);
  });

  test('extracts the introduction of a server to a leader and its ACKEPOCH', () => {
    expect(heard('quorum', joining())).toEqual([
      { packet: 'info', accepted: 7 },
      { packet: 'ackEpoch', zxid: makeZxid(3, 4), current: 6 },
    ]);
  });
});
