import { PacketType, ProtocolError, writeEmptyPacket, writeQuorumPacket, Writer } from '@tskeeper/protocol';
import { describe, expect, test } from 'vitest';
import { ChannelRank } from '@tskeeper/core';
import { committedLogDefaults } from '@tskeeper/core/internal';
import { learnerPortDefaults } from '../../src/internal.ts';
import { addressOf, type NodeOptions, quorumPort, RawHost, Rig, RigNode, serverOf } from './peer-rig.ts';

const servers = [serverOf(1), serverOf(2), serverOf(3)];
const mebibyte = 1024 * 1024;

function packetOf(type: PacketType, zxid: number, data: Buffer | null = null): Buffer {
  const writer = new Writer();
  writeQuorumPacket(writer, { type, zxid, data, authinfo: null });
  return Buffer.from(writer.written());
}

const info = packetOf(PacketType.FOLLOWERINFO, 0, Buffer.alloc(20));
const ack = (zxid: number): Buffer => packetOf(PacketType.ACK, zxid);

async function open(setup: NodeOptions = {}): Promise<{ rig: Rig; node: RigNode }> {
  const rig = new Rig();
  return { rig, node: await new RigNode(rig, 1, servers, setup).listen() };
}

/** A leader and a raw learner that has introduced itself. */
async function withLearner(setup: NodeOptions = {}) {
  const { rig, node } = await open(setup);
  const end = new RawHost(rig, addressOf(2)).dial(addressOf(1), quorumPort);
  end.send(info);
  await rig.settle();
  const [channel] = node.channels;
  node.events.length = 0;
  return { rig, node, end, channel: channel!, cnxn: rig.cnxns[0]! };
}

/** A learner that has dialled its leader, a raw host. */
async function withLeader(setup: NodeOptions = {}) {
  const { rig, node } = await open(setup);
  const host = new RawHost(rig, addressOf(3));
  await host.listen(quorumPort);
  node.dialLeader(3);
  await rig.settle();
  const [channel] = node.channels;
  return { rig, node, host, end: host.accepted[0]!, channel: channel! };
}

describe('accepted channels', () => {
  test('are shown to the core with their first packet, and carry packets both ways', async () => {
    const { rig, node } = await open();
    const end = new RawHost(rig, addressOf(2)).dial(addressOf(1), quorumPort);
    end.send(info.subarray(0, 39));
    await rig.settle();
    expect(node.events).toEqual([]);
    end.send(Buffer.concat([info.subarray(39), ack(7)]));
    await rig.settle();
    expect(node.events).toEqual(['accepted 0', '0: type 11 zxid 0', '0: type 3 zxid 7']);
    node.runTurn(() => {
      for (const zxid of [8, 9]) writeEmptyPacket(node.learner.packets(0), PacketType.COMMIT, zxid);
    });
    await rig.settle();
    expect(end.received).toEqual(Buffer.concat([packetOf(PacketType.COMMIT, 8), packetOf(PacketType.COMMIT, 9)]));
    expect([end.pieces.length, node.network.sendCalls]).toEqual([1, 1]);
  });

  test('are reported as gone once, whichever side ends them and however', async () => {
    for (const how of ['end', 'reset', 'closeChannel', 'garbage', 'closeChannel and reset'] as const) {
      const { rig, node, end, channel } = await withLearner();
      if (how === 'end') end.end();
      if (how.includes('closeChannel')) node.closeChannel(channel);
      if (how === 'garbage') end.send(Buffer.alloc(16, 0x77));
      if (how.includes('reset')) end.reset();
      await rig.run(5000, 500);
      expect(node.events).toEqual([`gone ${channel}`]);
      expect(node.network.streamCount).toBe(0);
      expect(node.learner.deadline()).toBeUndefined();
    }
  });

  test('deliver everything that the other side sent before its end', async () => {
    const { rig, node, end, channel } = await withLearner();
    end.send(Buffer.concat(Array.from({ length: 3000 }, (_, zxid) => ack(zxid))));
    end.end();
    await rig.run(5);
    expect(node.events.length).toBe(3001);
    expect(node.events.slice(-2)).toEqual([`${channel}: type 3 zxid 2999`, `gone ${channel}`]);
  });

  test('are still read when they were closed while input waited, so that their end is detected', async () => {
    const { rig, node, end, channel } = await withLearner();
    end.send(Buffer.concat([...Array.from({ length: 1500 }, (_, zxid) => ack(zxid)), Buffer.alloc(16, 0x77)]));
    await rig.run(5);
    expect(node.events.at(-1)).toBe(`gone ${channel}`);
    end.end();
    await rig.run(100);
    expect(node.network.streamCount).toBe(0);
  });

  test('spread a flood of packets over several turns', async () => {
    const { rig, node, end } = await withLearner();
    const before = node.turns;
    end.send(Buffer.concat(Array.from({ length: 5000 }, (_, zxid) => ack(zxid))));
    await rig.run(5);
    expect(node.events.length).toBe(5000);
    expect(node.turns - before).toBeGreaterThanOrEqual(4);
  });
});

describe('packets and snapshots', () => {
  const body = Buffer.from(Array.from({ length: 5000 }, (_, at) => at & 0xff));
  const stream = Buffer.concat([
    packetOf(PacketType.LEADERINFO, 1, Buffer.alloc(4)),
    packetOf(PacketType.SNAP, 2),
    body,
    packetOf(PacketType.NEWLEADER, 3, Buffer.from('version=0')),
  ]);

  for (const pieceBytes of [1, 7, 4096, Infinity]) {
    test(`a snapshot between packets is handed over raw, in pieces of ${pieceBytes}`, async () => {
      const { rig, node, end, channel } = await withLeader();
      node.snapshots.push(body.length);
      node.events.length = 0;
      Object.assign(rig.cnxns[0]!.backward.conditions, { pieceBytes });
      end.send(stream);
      await rig.run(5);
      expect(node.events).toEqual([17, 15, 10].map((type, at) => `${channel}: type ${type} zxid ${at + 1}`));
      expect(Buffer.concat(node.snapshot)).toEqual(body);
    });
  }

  test('a reset at any byte of the stream ends the channel once', async () => {
    for (let at = 0; at <= 140; at++) {
      const { rig, node, end, channel } = await withLeader();
      node.snapshots.push(20);
      rig.cnxns[0]!.backward.resetAfter(at);
      end.send(Buffer.concat([packetOf(PacketType.LEADERINFO, 1, Buffer.alloc(4)), packetOf(PacketType.SNAP, 2), Buffer.alloc(96)]));
      await rig.settle();
      expect(node.events.filter((event) => event.startsWith('gone'))).toEqual([`gone ${channel}`]);
      expect(node.network.streamCount).toBe(0);
    }
  });

  test('an invalid snapshot closes the channel with one line', async () => {
    const { rig, node, end, channel } = await withLeader();
    node.snapshots.push(10);
    node.feedSnapshot = () => {
      throw new ProtocolError('a snapshot', 3);
    };
    end.send(Buffer.concat([packetOf(PacketType.SNAP, 2), Buffer.alloc(10)]));
    await rig.settle();
    expect(node.events.at(-1)).toBe(`gone ${channel}`);
    expect(node.lines).toEqual(['10.0.0.3:2888 was closed on the quorum port: expected a snapshot at byte 3.']);
  });

  test('a packet that the core cannot read closes its channel with one line, and no other', async () => {
    const { rig, node, end, channel } = await withLearner();
    const other = new RawHost(rig, addressOf(3)).dial(addressOf(1), quorumPort);
    other.send(info);
    await rig.settle();
    node.events.length = 0;
    node.onPacket = (from) => {
      if (from === channel) throw new ProtocolError('a sensible packet', 0);
    };
    end.send(Buffer.concat([ack(1), ack(2)]));
    other.send(ack(3));
    await rig.settle();
    expect(node.events).toEqual([`${channel}: type 3 zxid 1`, expect.stringContaining('zxid 3'), `gone ${channel}`]);
    expect(node.lines.length).toBe(1);
    expect([end.closed, other.closed]).toEqual(['end', undefined]);
  });

  test('a channel that the core closes at a packet delivers nothing more', async () => {
    const { rig, node, end, channel } = await withLearner();
    node.onPacket = () => node.learner.closeChannel(channel, 'stopped', 'enough');
    end.send(Buffer.concat([ack(1), ack(2)]));
    await rig.settle();
    end.send(ack(3));
    await rig.run(5);
    expect(node.events).toEqual([`${channel}: type 3 zxid 1`, `gone ${channel}`]);
  });
});

describe('dialling the leader', () => {
  test('a connected dial is reported to the core, and its first packet is sent in the same turn', async () => {
    const { rig, node } = await open();
    const host = new RawHost(rig, addressOf(3));
    await host.listen(quorumPort);
    node.dialled = (channel) => {
      node.channels.add(channel);
      node.learner.packets(channel).raw(info);
    };
    node.dialLeader(3);
    await rig.settle();
    expect(host.accepted[0]!.received).toEqual(info);
  });

  test('a dial to a leader that refuses, does not resolve, or is not in the configuration, fails', async () => {
    for (const [sid, reason] of [
      [3, 'ECONNREFUSED'],
      [4, 'does not resolve'],
      [9, 'it is not in the configuration'],
    ] as const) {
      const rig = new Rig();
      const node = await new RigNode(rig, 1, [...servers, serverOf(4, 'zk4')]).listen();
      rig.wire.stack(addressOf(3));
      node.dialLeader(sid);
      await rig.run(5);
      expect(node.events).toEqual([`dialFailed ${sid === 3 ? 'refused' : 'unanswered'}`]);
      // After every election a learner that is faster than its leader is refused, so that is not a
      // warning.
      const [quiet, loud] = sid === 3 ? [node.lines, node.debugLines] : [node.debugLines, node.lines];
      expect(quiet).toEqual([]);
      expect(loud).toEqual([expect.stringMatching(`^The leader, server ${sid}, cannot be reached: .*${reason}`)]);
    }
  });

  test('A55: a dial to the port for observers of a follower that is unknown, or without that port, fails', async () => {
    for (const [sid, reason] of [
      [3, 'observerMasterPort is not set here'],
      [9, 'it is not in the configuration'],
    ] as const) {
      const rig = new Rig();
      const node = await new RigNode(rig, 1, servers).listen();
      node.dialLeader(sid, 'observer master');
      await rig.run(5);
      expect([node.events, node.lines]).toEqual([
        ['dialFailed unanswered'],
        [`Server ${sid}, at its port for observers, cannot be reached: ${reason}.`],
      ]);
    }
  });

  test('A60: several addresses share the time limit, connectToLearnerMasterLimit; a dial without an answer fails when it is over', async () => {
    const rig = new Rig();
    const three = { ...serverOf(3), quorumAddresses: ['10.0.1.1', '10.0.1.2'].map((host) => ({ host, port: quorumPort })) };
    const node = await new RigNode(rig, 1, [serverOf(1), three], { learner: { dialTimeoutMs: 4000 } }).listen();
    for (const address of ['10.0.1.1', '10.0.1.2']) rig.wire.cut(addressOf(1), new RawHost(rig, address).address);
    node.dialLeader(3);
    await rig.run(3999);
    expect(node.events).toEqual([]);
    await rig.run(1);
    expect(node.events).toEqual(['dialFailed unanswered']);
    expect(node.lines[0]).toBe('The leader, server 3, cannot be reached: 10.0.1.1:2888 (no answer), 10.0.1.2:2888 (no answer).');
    rig.wire.heal(addressOf(1), '10.0.1.2');
    await new RawHost(rig, '10.0.1.2').listen(quorumPort);
    node.dialLeader(3);
    await rig.run(1999);
    expect(node.events.length).toBe(1);
    await rig.run(2);
    expect(node.events.at(-1)).toMatch(/^dialled/);
    expect(node.network.streamCount).toBe(1);
  });

  test('a new dial replaces an older one, which is no longer reported', async () => {
    const { rig, node } = await open();
    const slow = new RawHost(rig, addressOf(2));
    await slow.listen(quorumPort);
    const host = new RawHost(rig, addressOf(3));
    await host.listen(quorumPort);
    rig.wire.conditionsOf = (_from, to) => ({ delayMs: to === addressOf(2) ? 20 : 1 });
    node.dialLeader(2);
    await rig.run(20);
    node.dialLeader(3);
    await rig.run(100);
    expect(node.events.length).toBe(1);
    expect(host.accepted.length).toBe(1);
    expect(slow.accepted.every(({ closed }) => closed !== undefined)).toBe(true);
    expect(node.network.streamCount).toBe(1);
    node.runTurn(() => [2, 9, 3].forEach((sid) => node.learner.dialLeader(sid)));
    await rig.run(100);
    expect(node.events.length).toBe(2);
    expect(host.accepted.length).toBe(2);
  });

  test('a cancelled dial is not reported', async () => {
    const { rig, node } = await open();
    const host = new RawHost(rig, addressOf(3));
    await host.listen(quorumPort);
    node.runTurn(() => {
      node.learner.dialLeader(3);
      node.learner.cancelDial();
    });
    node.dialLeader(3);
    node.runTurn(() => node.learner.cancelDial());
    await rig.run(100);
    expect(node.events).toEqual([]);
    expect(host.accepted.every(({ closed }) => closed !== undefined)).toBe(true);
    expect(node.network.streamCount).toBe(0);
  });

  test('the next dial uses a new configuration', async () => {
    const { rig, node } = await open();
    const moved = new RawHost(rig, '10.0.1.1');
    await moved.listen(quorumPort);
    node.runTurn(() => node.learner.setServers([serverOf(3, '10.0.1.1')]));
    node.dialLeader(3);
    await rig.settle();
    expect(moved.accepted.length).toBe(1);
  });
});

describe('output', () => {
  test('a channel is full above 1 MiB, and the core is notified once when there is room again', async () => {
    const { rig, node, channel, cnxn } = await withLearner();
    cnxn.backward.conditions.windowBytes = 0;
    node.write(channel, Buffer.alloc(mebibyte));
    expect(node.learner.channelIsFull(channel)).toBe(false);
    node.write(channel, Buffer.alloc(1));
    expect(node.learner.channelIsFull(channel)).toBe(true);
    await rig.settle();
    expect(node.events).toEqual([]);
    cnxn.backward.conditions.windowBytes = mebibyte;
    cnxn.backward.conditionsChanged();
    await rig.run(5);
    expect(node.events).toEqual([`drained ${channel}`]);
    expect(node.learner.channelIsFull(channel)).toBe(false);
    expect(cnxn.backward.deliveredBytes).toBe(mebibyte + 1);
  });

  test('the core is notified of progress while a large packet is received, and while one is sent', async () => {
    const { rig, node, channel, cnxn, end } = await withLearner();
    node.write(channel, Buffer.alloc(2 * mebibyte));
    cnxn.backward.conditions.windowBytes = 0;
    await rig.settle();
    node.moves.clear();
    cnxn.backward.conditions.windowBytes = mebibyte;
    cnxn.backward.conditionsChanged();
    await rig.run(5);
    expect(node.moves.get(channel)).toBeGreaterThan(0);
    node.moves.clear();
    end.send(packetOf(PacketType.REQUEST, -1, Buffer.alloc(1000)).subarray(0, 500));
    await rig.run(5);
    expect([node.moves.get(channel), node.events]).toEqual([1, []]);
  });

  test('packets that the core writes when it is notified are sent as well', async () => {
    const { rig, node, channel, cnxn } = await withLearner();
    let left = 5;
    node.onDrained = (drained) => {
      if (left-- > 0) node.learner.packets(drained).raw(Buffer.alloc(2 * mebibyte));
      node.learner.channelIsFull(drained);
    };
    node.runTurn(() => {
      node.learner.packets(channel).raw(Buffer.alloc(2 * mebibyte));
      node.learner.channelIsFull(channel);
    });
    await rig.run(20);
    expect(cnxn.backward.deliveredBytes).toBe(12 * mebibyte);
  });

  test('bytes arrive in order and unchanged through a narrow pipe, whatever is written meanwhile', async () => {
    const { rig, node, channel, cnxn, end } = await withLearner();
    Object.assign(cnxn.backward.conditions, { windowBytes: 50_000, pieceBytes: 10_000, pieceIntervalMs: 1 });
    const sent: Buffer[] = [];
    for (let round = 0; round < 60; round++) {
      const bytes = Buffer.alloc(1 + ((round * 37_171) % 90_000), round);
      sent.push(bytes);
      node.write(channel, bytes);
      await rig.run(2);
    }
    await rig.run(1000);
    expect(end.received.equals(Buffer.concat(sent))).toBe(true);
  });

  test('a learner that reads nothing is cut off above 64 MiB, and the others are served meanwhile', async () => {
    const { rig, node, channel, cnxn } = await withLearner();
    const other = new RawHost(rig, addressOf(3)).dial(addressOf(1), quorumPort);
    other.send(info);
    await rig.settle();
    const second = [...node.channels].find((id) => id !== channel)!;
    node.events.length = 0;
    cnxn.backward.conditions.windowBytes = 0;
    const chunk = Buffer.alloc(mebibyte);
    let rounds = 0;
    while (node.channels.has(channel) && rounds < 200) {
      rounds++;
      node.write(channel, chunk);
      node.write(second, ack(rounds));
      await rig.settle();
    }
    expect(rounds).toBe(66);
    expect(node.events).toEqual([`gone ${channel}`]);
    expect(node.lines).toEqual([
      '10.0.0.2:32768 was cut off: 69206016 bytes wait for it, and it does not read them. ' +
        'Check its disk and the link to it; it may reconnect, and is sent what it lacks.',
    ]);
    expect(other.received.length).toBe(rounds * 20);
  });

  test('of all channels is discarded by dropAll, which resets them at once, with both their ends', async () => {
    const { rig, node, channel, cnxn, end } = await withLearner();
    const other = new RawHost(rig, addressOf(3)).dial(addressOf(1), quorumPort);
    await rig.settle();
    cnxn.backward.conditions.windowBytes = 0;
    node.write(channel, Buffer.alloc(mebibyte));
    node.runTurn((now) => node.learner.dropAll(now));
    await rig.settle();
    expect(node.events).toEqual([`gone ${channel}`]);
    expect([end.closed, end.received.length, other.closed]).toEqual(['ECONNRESET', 0, 'ECONNRESET']);
    expect(rig.cnxns).toEqual([]);
  });

  // After the end of a snapshot, which the learner may not have read yet, follow the committed txns
  // that memory holds and new proposals.
  test('the limit of the output that waits for a learner is at least twice the size of the committed txns in memory', () => {
    expect(learnerPortDefaults.queuedBytesMax).toBeGreaterThanOrEqual(2 * committedLogDefaults.bytesMax);
  });

  test('the output of one turn may exceed the limit of 64 MiB when the learner reads it', async () => {
    const { rig, node, channel, cnxn } = await withLearner();
    node.write(channel, Buffer.alloc(80 * mebibyte));
    await rig.run(200);
    expect(cnxn.backward.deliveredBytes).toBe(80 * mebibyte);
    expect(node.channels.has(channel)).toBe(true);
  });

  test('output that waits for learners has a common limit, above which learners of the last rank are cut off first', async () => {
    const { rig, node, channel, cnxn } = await withLearner();
    const others = Array.from({ length: 39 }, (_, at) => new RawHost(rig, `10.0.1.${at}`).dial(addressOf(1), quorumPort));
    for (const other of others) other.send(info);
    await rig.settle();
    const channels = [...node.channels];
    expect(channels).toHaveLength(40);
    for (const each of rig.cnxns) each.backward.conditions.windowBytes = 0;
    for (const [at, id] of channels.entries())
      if (id !== channel) node.ranks.set(id, at < 10 ? ChannelRank.observer : ChannelRank.stranger);
    for (let round = 0; round < 40; round++) {
      for (const id of channels) node.learner.packets(id).raw(Buffer.alloc(mebibyte / 4));
      node.runTurn(() => {});
    }
    // 40 times 10 MiB were written.
    expect(node.channels.size * 10).toBeLessThanOrEqual(128);
    expect(node.channels.has(channel)).toBe(true);
    expect(channels.slice(1, 10).filter((id) => node.channels.has(id))).toHaveLength(9);
    expect(node.lines[0]).toMatch(
      / was cut off: \d+ bytes wait for all learners, more than the limit of 134217728, and most of them for this one\. Check /,
    );
    cnxn.backward.conditions.windowBytes = mebibyte;
    cnxn.backward.conditionsChanged();
    await rig.run(1000);
    expect(cnxn.backward.deliveredBytes).toBe(10 * mebibyte);
  });

  test('bytes for many channels are held once, and each gets them in order with its own output', async () => {
    const { rig, node } = await withLearner();
    const ends = Array.from({ length: 39 }, (_, at) => new RawHost(rig, `10.0.1.${at}`).dial(addressOf(1), quorumPort));
    for (const end of ends) end.send(info);
    await rig.settle();
    for (const each of rig.cnxns) each.backward.conditions.windowBytes = 0;
    const channels = [...node.channels].slice(1);
    const sent: Buffer[] = [];
    // 40 MiB, which would be 1.6 GiB if each had its own.
    for (let round = 0; round < 40; round++) {
      const bytes = Buffer.alloc(round % 4 === 3 ? 100 : mebibyte, round);
      node.runTurn(() => {
        for (const id of channels) {
          node.learner.packets(id).int32(round);
          node.learner.writeShared(id, bytes, 5);
        }
      });
      const number = Buffer.alloc(4);
      number.writeInt32BE(round);
      sent.push(number, bytes.subarray(5));
    }
    expect(node.lines).toEqual([]);
    for (const each of rig.cnxns) {
      each.backward.conditions.windowBytes = mebibyte;
      each.backward.conditionsChanged();
    }
    await rig.run(1000);
    for (const end of ends) expect(end.received.equals(Buffer.concat(sent))).toBe(true);
    expect(node.channels.size).toBe(40);
  });

  test('output written before a channel is closed is sent before its end; the core is notified at once', async () => {
    const { rig, node, channel, cnxn, end } = await withLearner();
    cnxn.backward.conditions.windowBytes = 0;
    node.runTurn(() => {
      node.learner.packets(channel).raw(Buffer.alloc(1000, 1));
      node.learner.closeChannel(channel, 'stopped', 'enough');
    });
    expect(node.events).toEqual([`gone ${channel}`]);
    node.write(channel, Buffer.from('late'));
    await rig.settle();
    expect(end.ended).toBe(false);
    cnxn.backward.conditions.windowBytes = 1000;
    cnxn.backward.conditionsChanged();
    await rig.settle();
    expect(end.received).toEqual(Buffer.alloc(1000, 1));
    expect([end.closed, node.network.streamCount]).toEqual(['end', 0]);
    expect(node.lines).toEqual(['The connection with 10.0.0.2:32768 was closed: enough.']);
  });

  test('output written before a channel is closed is sent before its end, however much it is and however slowly it is read', async () => {
    const { rig, node, channel, cnxn, end } = await withLearner();
    Object.assign(cnxn.backward.conditions, { windowBytes: 10_000, pieceBytes: 10_000, pieceIntervalMs: 50 });
    node.runTurn(() => {
      node.learner.packets(channel).raw(Buffer.alloc(mebibyte, 1));
      node.learner.closeChannel(channel, 'stopped', 'enough');
    });
    await rig.run(10_000, 10);
    expect([end.received.length, end.closed]).toEqual([mebibyte, 'end']);
  });

  test('a closed channel that reads nothing is reset after two seconds, and nothing waits for it', async () => {
    const { rig, node, channel, cnxn, end } = await withLearner();
    cnxn.backward.conditions.windowBytes = 0;
    node.runTurn(() => {
      node.learner.packets(channel).raw(Buffer.alloc(1000, 1));
      node.learner.closeChannel(channel, 'stopped', 'enough');
    });
    await rig.run(1999);
    expect(end.closed).toBeUndefined();
    await rig.run(2);
    expect(end.closed).toBe('ECONNRESET');
    expect(node.network.streamCount).toBe(0);
  });

  test('a peer that never closes its side is reset after two seconds', async () => {
    const { rig, node, channel, cnxn } = await withLearner();
    cnxn.backward.cut();
    node.closeChannel(channel);
    await rig.run(2001);
    expect(node.network.streamCount).toBe(0);
  });
});

describe('half-open connections and hostile input', () => {
  test('a connection without a packet within initLimit is closed, and not reported to the core', async () => {
    const { rig, node } = await open();
    const end = new RawHost(rig, '10.0.9.9').dial(addressOf(1), quorumPort);
    end.send(info.subarray(0, 20));
    await rig.run(19_999, 1000);
    expect(end.closed).toBeUndefined();
    await rig.run(2);
    expect(end.closed).toBe('ECONNRESET');
    expect(node.events).toEqual([]);
    expect(node.lines).toEqual(['10.0.9.9:32768 did not introduce itself within 20000 ms to the quorum port, and was closed.']);
  });

  test('a channel that was dialled may wait for its first packet', async () => {
    const { rig, node, end } = await withLeader();
    await rig.run(60_000, 1000);
    expect(end.closed).toBeUndefined();
    expect(node.channels.size).toBe(1);
  });

  test('ten thousand silent connections take a limited number of places, and none from an honest learner', async () => {
    const { rig, node } = await open();
    const host = new RawHost(rig, '10.0.9.9');
    for (let count = 0; count < 5000; count++) host.dial(addressOf(1), quorumPort);
    const honest = new RawHost(rig, addressOf(2)).dial(addressOf(1), quorumPort);
    for (let count = 0; count < 5000; count++) host.dial(addressOf(1), quorumPort);
    await rig.settle();
    expect(node.network.streamCount).toBeLessThanOrEqual(learnerPortDefaults.halfOpenMax + 1);
    honest.send(Buffer.concat([info, ack(4)]));
    await rig.settle();
    expect(node.events.length).toBe(3);
    expect(node.lines.length).toBeLessThan(30);
    await rig.run(20_000, 1000);
    expect(node.network.streamCount).toBe(1);
  });

  test('a long first packet or a false length closes its connection and takes no memory', async () => {
    const { rig, node } = await open();
    const host = new RawHost(rig, '10.0.9.9');
    const long = host.dial(addressOf(1), quorumPort);
    long.send(packetOf(PacketType.FOLLOWERINFO, 0, Buffer.alloc(100_000)).subarray(0, 50_000));
    const lie = host.dial(addressOf(1), quorumPort);
    const bytes = Buffer.from(info);
    bytes.writeInt32BE(0x7fffffff, 12);
    lie.send(bytes);
    await rig.settle();
    expect([long.closed, lie.closed]).toEqual(['end', 'end']);
    expect([node.events.length, node.lines.length]).toEqual([0, 2]);
  });

  test('random bytes never harm an honest learner', async () => {
    const { rig, node, end, channel } = await withLearner();
    const host = new RawHost(rig, '10.0.9.9');
    let state = 1;
    const byte = (): number => (state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0) >>> 24;
    for (let round = 1; round <= 1000; round++) {
      const noise = Buffer.from(Array.from({ length: 1 + (byte() % 80) }, byte));
      const hostile = host.dial(addressOf(1), quorumPort);
      if (round % 2 === 0) hostile.send(info);
      hostile.send(noise);
      end.send(ack(round));
      await rig.run(1);
      expect(node.events).toContain(`${channel}: type 3 zxid ${round}`);
      node.events.length = 0;
      hostile.reset();
    }
    expect(end.closed).toBeUndefined();
  });

  test('a port that stops listening refuses, keeps its channels, and can listen again', async () => {
    const { rig, node, channel, end } = await withLearner();
    const address = { host: addressOf(1), port: quorumPort };
    node.runTurn(() => void node.learner.stopListening());
    const host = new RawHost(rig, addressOf(3));
    const refused = host.dial(addressOf(1), quorumPort);
    end.send(ack(1));
    await rig.settle();
    expect(refused.closed).toBe('ECONNREFUSED');
    expect(node.events).toEqual([`${channel}: type 3 zxid 1`]);
    const overtaken = node.learner.listen(address);
    void node.learner.stopListening();
    await rig.settle();
    expect(await overtaken).toBeUndefined();
    await node.learner.listen(address);
    const accepted = host.dial(addressOf(1), quorumPort);
    accepted.send(info);
    await rig.settle();
    expect([accepted.closed, node.channels.size]).toEqual([undefined, 2]);
  });

  test('a port that is shut down does not accept or dial, and its channels are closed', async () => {
    const { rig, node, channel } = await withLearner();
    node.runTurn((now) => {
      node.learner.packets(channel).raw(ack(1));
      void node.learner.shutDown(now);
    });
    node.dialLeader(3);
    const late = new RawHost(rig, addressOf(3)).dial(addressOf(1), quorumPort);
    await rig.run(5000, 500);
    expect(node.events).toEqual([`gone ${channel}`]);
    expect([late.closed, node.network.streamCount]).toEqual(['ECONNREFUSED', 0]);
  });
});
