/** A server of an ensemble as its parts work together: what it listens to, whom it lets in, what it says of itself. */
import { writeConnectRequest, Writer } from '@tskeeper/protocol';
import { describe, expect, it } from 'vitest';
import { addressOf, quorumPort } from './ports/peer-rig.ts';
import { clientPort, MemberRig } from './member-rig.ts';

describe('the quorum port', () => {
  it('is listened to by the server that leads, and by no other', async () => {
    const rig = await MemberRig.start({ observers: 1, servers: 4 });
    const ends = rig.nodes.map((node) => rig.dial(node, quorumPort));
    await rig.rig.run(20);
    const refused = rig.nodes.filter((_, index) => ends[index]!.closed === 'ECONNREFUSED');
    expect(refused).toEqual(rig.learners);
  });

  it('is given up with the leadership, and taken by whoever leads next', async () => {
    const rig = await MemberRig.start();
    const old = rig.leader;
    const others = rig.learners;
    for (const { sid } of others) rig.rig.wire.cut(addressOf(old.sid), addressOf(sid));
    await rig.until(() => old.role === 'looking' && others.some(({ role }) => role === 'leader'), 20_000);
    const end = rig.dial(old, quorumPort);
    await rig.rig.run(20);
    expect(end.closed).toBe('ECONNREFUSED');
    for (const { sid } of others) rig.rig.wire.heal(addressOf(old.sid), addressOf(sid));
    await rig.until(() => rig.isWhole, 20_000);
    expect(old.role).toBe('follower');
  });

  it('that cannot be had keeps a server from leading, until it can', async () => {
    const rig = new MemberRig();
    const best = rig.nodes[2]!;
    const squatter = await rig.rig.wire.stack(addressOf(best.sid)).listen({ address: undefined, port: quorumPort, backlog: undefined });
    await Promise.all([...rig.nodes.map((node) => rig.boot(node)), rig.rig.run(50)]);
    const complaint = /^error The quorum port, 10.0.0.3:2888, could not be bound: .* This server cannot lead without it.$/;
    await rig.until(() => best.lines.some((line) => complaint.test(line)), 10_000);
    expect(rig.isWhole).toBe(false);
    await squatter.close();
    await rig.until(() => rig.isWhole, 20_000);
  });
});

describe('leaderServes=no', () => {
  it('leaves clients to the others: the leader turns them away, and says that it does not serve', async () => {
    const rig = new MemberRig({ options: { leaderServes: false } });
    await Promise.all([...rig.nodes.map((node) => rig.boot(node)), rig.rig.run(50)]);
    await rig.until(() => rig.nodes.filter(({ role }) => role === 'follower').length === 2, 5000);
    const leader = rig.nodes.find(({ role }) => role !== 'follower')!;
    expect(await rig.word(leader, 'srvr')).toBe('This ZooKeeper instance is not currently serving requests\n');
    expect(
      await rig.word(
        rig.nodes.find((node) => node !== leader)!,
        'srvr',
      ),
    ).toContain('Mode: follower\n');
    const [refused, served] = [leader, rig.nodes.find((node) => node !== leader)!].map((node) => {
      const end = rig.dial(node, clientPort);
      end.send(handshake());
      return end;
    });
    await rig.until(() => refused!.closed !== undefined && served!.received.length > 0, 1000);
    expect(refused!.received).toHaveLength(0);
    // The length of the answer, and the protocol version that it begins with.
    expect(served!.received.subarray(0, 8)).toEqual(Buffer.from('0000002500000000', 'hex'));
  });
});

function handshake(): Buffer {
  const writer = new Writer();
  const start = writer.beginFrame();
  const passwd = Buffer.alloc(16);
  writeConnectRequest(writer, { protocolVersion: 0, lastZxidSeen: 0, timeOut: 6000, sessionId: 0n, passwd, readOnly: false });
  writer.endFrame(start);
  return Buffer.from(writer.written());
}
