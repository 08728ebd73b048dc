/**
 * The host of a follower loses power without notifying its leader, which sees the old connection as
 * a silent one.
 */
import { makeZxid, PacketType, Writer, writeAckEpoch, writeLearnerInfo, writeQuorumPacket } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { EnsembleRuntimeRig } from './ensemble-runtime-rig.ts';
import { quorumPort } from './ports/peer-rig.ts';

const epoch = 1;

function packetOf(type: number, zxid: number, write?: (writer: Writer) => void): Buffer {
  const data = new Writer(32);
  write?.(data);
  const packet = new Writer(64);
  writeQuorumPacket(packet, { type, zxid, data: write === undefined ? null : data.written(), authinfo: null });
  return Buffer.from(packet.written());
}

describe('a follower that restarts while its leader still has its old connection', () => {
  it.each([1000, 2000, 6000])('serves within 2 s of its start, with ticks of %i ms', async (tickTimeMs) => {
    const rig = new EnsembleRuntimeRig({ zab: { tickTimeMs } });
    const [lost, ...others] = rig.nodes;
    await Promise.all([...others.map((node) => rig.boot(node)), rig.rig.run(50)]);
    await rig.until(() => others.some(({ role }) => role === 'leader') && others.some(({ role }) => role === 'follower'), 20_000);
    const { leader } = rig;

    const before = rig.dial(leader, quorumPort);
    before.send(packetOf(PacketType.FOLLOWERINFO, 0, (writer) => writeLearnerInfo(writer, { serverId: lost!.sid, configVersion: 0 })));
    await rig.rig.run(50);
    before.send(packetOf(PacketType.ACKEPOCH, 0, (writer) => writeAckEpoch(writer, 0)));
    await rig.rig.run(50);
    before.send(packetOf(PacketType.ACK, makeZxid(epoch, 0)));
    await rig.rig.run(50);
    expect(await rig.word(leader, 'mntr')).toMatch(/^zk_synced_followers\t2$/m);

    const beganMs = rig.rig.clock.now().elapsedMs;
    await Promise.all([rig.boot(lost!), rig.until(() => lost!.role === 'follower', 20_000)]);
    const tookMs = rig.rig.clock.now().elapsedMs - beganMs;
    expect(tookMs).toBeLessThan(2000);
    expect(before.closed ?? before.ended).toBeTruthy();
    expect(leader.lines.join('\n')).toContain('the learner has reconnected, and this connection does not answer');
  });
});
